// Apart from the table, because the command line names them before it opens a database.

/** The kinds of what needs a person, with how each is called. */
export const ISSUE_NOUNS = {
  reject: 'reject',
  withdrawal: 'withheld withdrawal',
  suspicious: 'suspicious response',
  corporate_action: 'corporate action',
  finding: 'finding',
} as const;

export type IssueKind = keyof typeof ISSUE_NOUNS;

export const ISSUE_KINDS = Object.keys(ISSUE_NOUNS) as [IssueKind, ...IssueKind[]];

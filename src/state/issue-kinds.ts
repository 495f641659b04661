import { count, plural } from '../core/wording.ts';

// Apart from the table, because the command line names them before it opens a database.

/** The kinds of what needs a person, with how each is called. */
export const ISSUE_NOUNS = {
  reject: 'reject',
  withdrawal: 'withheld withdrawal',
  suspicious: 'suspicious response',
  corporate_action: 'corporate action',
  finding: 'finding',
  missing_right: 'missing right',
} as const;

export type IssueKind = keyof typeof ISSUE_NOUNS;

export const ISSUE_KINDS = Object.keys(ISSUE_NOUNS) as [IssueKind, ...IssueKind[]];

/** Corporate actions that move a price by less than this many percent are one issue of a list. */
export const SMALL_EFFECT = 5;

/** How many issues there are, and of each kind: `472 issues: 468 corporate actions, 4 with 10 findings`. */
export function issueCountsText(
  counts: readonly { readonly kind: IssueKind; readonly issues: number; readonly items: number }[],
): string {
  const total = counts.reduce((sum, count) => sum + count.issues, 0);
  const kinds = counts.map(({ kind, issues, items }) => {
    const noun = plural(items, ISSUE_NOUNS[kind]);
    return issues === items ? noun : `${count(issues)} with ${noun}`;
  });
  return `${plural(total, 'issue')}: ${kinds.join(', ')}`;
}

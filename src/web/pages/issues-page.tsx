import type { Config } from '../../core/config.ts';
import { count, plural, priceEffectText, sentenceCase } from '../../core/wording.ts';
import type { QueueContext } from '../../jobs/context.ts';
import { type CheckedDays, listFindings, readCheckedDays } from '../../state/findings.ts';
import { ISSUE_KINDS, ISSUE_NOUNS, issueCountsText, SMALL_EFFECT } from '../../state/issue-kinds.ts';
import { countIssues, type Issue, issuesIn, listIssues } from '../../state/issues.ts';
import { openRejects } from '../../state/rejects.ts';
import { COMMANDS, factorNotes, issueCommand, reconcileCommand } from '../commands.ts';
import { Command, Moment, Section } from '../components/basics.tsx';
import { DAYS, Table } from '../components/data-table.tsx';
import { Badge } from '../components/marks.tsx';
import { DataSet, DataSetLink } from '../components/names.tsx';
import { FindingsTable, RejectsTable } from '../components/quality-tables.tsx';
import { Heading, type Page, type Requested } from '../page.tsx';

const LISTED = 100;

/** What needs a person, in one list; of one kind of it, every detail. */
export async function issuesPage(context: QueueContext, { query }: Requested): Promise<Page> {
  const { db, config } = context;
  const zone = config.EOD_TIMEZONE;
  const kind = ISSUE_KINDS.find((word) => word === query.get('kind'));
  const [counts, issues, rejects, { findings }, checked] = await Promise.all([
    countIssues(db.drizzle),
    listIssues(db.drizzle, kind === undefined ? {} : { kinds: [kind] }, LISTED),
    kind === 'reject' ? openRejects(db.drizzle, {}, LISTED) : [],
    kind === 'finding' ? listFindings(db.drizzle, { limit: LISTED }) : { findings: [] },
    readCheckedDays(db.drizzle),
  ]);
  const total = counts.reduce((sum, entry) => sum + entry.issues, 0);
  const remarks = [
    ...(total > 0 ? [issueCountsText(counts)] : []),
    ...(checked.unchecked > 0 ? [plural(checked.unchecked, 'unchecked day')] : []),
  ];
  const areItems = kind === 'reject' || kind === 'finding';
  const listed = areItems
    ? rejects.length + findings.length
    : issues.reduce((sum, issue) => sum + issuesIn(issue), 0);
  const all = counts
    .filter((entry) => kind === undefined || entry.kind === kind)
    .reduce((sum, entry) => sum + (areItems ? entry.items : entry.issues), 0);
  return {
    title: 'Issues',
    main: (
      <>
        <Heading title="Issues">
          {remarks.length === 0 ? 'Nothing needs a person.' : `${remarks.join('; ')}.`}
        </Heading>
        {total === 0 ? null : (
          <>
            <nav class="years" aria-label="Kinds of issues">
              <ul>
                <li>
                  <a href="/issues" aria-current={kind === undefined ? 'true' : undefined}>
                    All
                  </a>
                </li>
                {counts.map((entry) => (
                  <li key={entry.kind}>
                    <a
                      href={`/issues?kind=${entry.kind}`}
                      aria-current={entry.kind === kind ? 'true' : undefined}
                    >
                      {plural(entry.items, ISSUE_NOUNS[entry.kind])}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            <Section
              id="issues"
              title="What needs a person"
              note={
                all > listed
                  ? `the first ${count(listed)} of ${count(all)}`
                  : 'The most urgent first, then the newest'
              }
            >
              {kind === 'reject' ? (
                <RejectsTable rejects={rejects} zone={zone} />
              ) : kind === 'finding' ? (
                <FindingsTable findings={findings} />
              ) : (
                <>
                  {issuesTable(issues, config)}
                  {factorNotes(issues).map((note) => (
                    <p key={note} class="muted">
                      {sentenceCase(note)}.
                    </p>
                  ))}
                </>
              )}
              {issues.some((issue) => issue.kind === 'reject') ? (
                <p>
                  <Command>{COMMANDS.retryRejects}</Command> reads rejected records again with the current
                  code.
                </p>
              ) : null}
            </Section>
          </>
        )}
        {checksSection(checked, zone)}
      </>
    ),
  };
}

/** How urgent an issue is, by its priority. */
const PRIORITIES = { 1: 'missing', 2: 'suspicious' } as const;

function issuesTable(issues: readonly Issue[], config: Config) {
  return (
    <Table
      caption="What needs a person"
      rows={issues}
      stacked
      columns={[
        {
          head: 'Issue',
          cell: ({ kind, items, priority }) => (
            <Badge mark={priority === 1 || priority === 2 ? PRIORITIES[priority] : 'none'}>
              {items === 1 ? ISSUE_NOUNS[kind] : plural(items, ISSUE_NOUNS[kind])}
            </Badge>
          ),
        },
        { head: 'Of', cell: issueSubject },
        DAYS,
        {
          head: 'Why',
          wide: true,
          cell: (issue) => (issue.items > 1 ? `for example: ${issue.text}` : issue.text),
        },
        { head: 'Effect', cell: effectText },
        { head: 'To settle it', cell: (issue) => <Command>{issueCommand(issue, config)}</Command> },
      ]}
    />
  );
}

/** What an issue is about, with a link to its details. */
function issueSubject({ kind, operation, exchange, exchanges, from, to, subject }: Issue) {
  if (operation === '') return exchange;
  if (kind === 'corporate_action') return [subject, exchanges.join(' and ')].filter(Boolean).join(', ');
  if (kind === 'finding') {
    return (
      <>
        <a href="/issues?kind=finding">{subject?.replaceAll('_', ' ')}</a>,{' '}
        <DataSet operation={operation} exchange={exchange} />
      </>
    );
  }
  return (
    <DataSetLink
      operation={operation}
      exchange={exchange}
      day={from !== null && from === to ? from : undefined}
    />
  );
}

/** How large an issue is, where the row does not say so already. */
function effectText({ kind, subject, effect, items }: Issue): string | null {
  if (effect === null) return null;
  if (kind === 'corporate_action' && items > 1) return `less than ${SMALL_EFFECT} % of the price each`;
  if (kind === 'corporate_action') return priceEffectText(subject?.split(' ').at(-1) ?? '', effect);
  return kind === 'withdrawal' ? plural(effect, 'row') : null;
}

/** Which days with prices were compared with the other data sets: of others nothing is known. */
function checksSection({ loaded, unchecked, from, to, checkedAt }: CheckedDays, zone: string) {
  return (
    <Section id="checks" title="Checks">
      {unchecked > 0 && from !== null && to !== null ? (
        <p>
          {count(unchecked)} of {plural(loaded, 'day')} with prices, between {from} and {to}, were not checked
          since they were loaded: <Command>{reconcileCommand(from, to)}</Command>.
        </p>
      ) : (
        <p>
          {loaded === 0 ? (
            'No prices are loaded to check.'
          ) : (
            <>
              Of {plural(loaded, 'day')} with prices all are checked, the last at{' '}
              <Moment iso={checkedAt} zone={zone} />.
            </>
          )}{' '}
          Checks run after each night; <Command>{COMMANDS.reconcile}</Command> runs them now.
        </p>
      )}
    </Section>
  );
}

import { usageError } from '../../core/errors.ts';
import type { Context } from '../../jobs/context.ts';
import { pairTitle } from '../../operations/registry.ts';
import type { CheckedDays, Finding } from '../../state/findings.ts';
import { type Cli, print, printJson } from '../cli.ts';
import { defineCommand, type OptionValues } from '../define-command.ts';
import {
  exchangeOption,
  flag,
  limit,
  numberInList,
  onlyDays,
  parseOpenRange,
  SEVERITIES,
  text,
  words,
} from '../options.ts';
import { type Column, count, memberColumns, momentText, plural, table } from '../output.ts';
import { settlementText } from '../shared-texts.ts';

const ID: Column<Finding> = { head: 'finding', cell: ({ id }) => id };
const FINDING_COLUMNS = memberColumns<Finding>(
  'date',
  'severity',
  'check',
  'exchange',
  'instrument',
  'expected',
  'found',
);

const STATE: Column<Finding> = {
  head: 'state',
  cell: ({ resolvedAt, acceptedAt }) =>
    resolvedAt !== null ? 'resolved' : acceptedAt !== null ? 'accepted' : 'open',
};

/** Which findings are meant. */
export const findingFilterOptions = {
  ...onlyDays('days'),
  check: text('<name>', 'only findings of this check'),
  exchange: exchangeOption,
  severity: words('only these severities: info, warning, error', SEVERITIES, 'severity'),
};

/** The findings that options mean. @throws PipelineError `usage` */
export async function readFindingFilter(values: OptionValues<typeof findingFilterOptions>) {
  const { parseCheckName } = await import('../../quality/index.ts');
  const { check, exchange, severity } = values;
  return {
    check: check === undefined ? undefined : parseCheckName('--check', check),
    exchanges: exchange,
    severity,
    ...parseOpenRange(values),
  };
}

export default defineCommand({
  path: 'findings',
  group: 'Repair',
  summary: 'List the open findings of "eod reconcile", the newest days first; with a number, show that one.',
  args: { id: numberInList('finding', 'number of a finding, to show that one') },
  options: {
    ...findingFilterOptions,
    resolved: flag('also findings that a later check resolved, and accepted ones'),
    limit: limit(100),
  },
  json: 'a list of findings',
  examples: [
    'eod findings',
    'eod findings 3',
    'eod findings --check previous_close --severity error,warning --json',
  ],
  async run(cli, { id, resolved, limit, json, ...values }) {
    if (id !== undefined) return showFinding(cli, id, json);
    const { listFindings, readCheckedDays } = await import('../../state/findings.ts');
    const { openContext } = await import('../open-context.ts');
    const filter = { ...(await readFindingFilter(values)), resolved, limit };
    const { db } = await openContext(cli);
    const { total, findings } = await listFindings(db.drizzle, filter);
    if (json) return printJson(cli, findings);
    if (total === 0) {
      const days = await readCheckedDays(db.drizzle, filter);
      return print(cli, `no findings${days.loaded === 0 ? ': no prices are loaded' : uncheckedText(days)}`);
    }
    const more =
      total > findings.length ? `\n\n${count(findings.length)} of ${count(total)}; --limit shows more` : '';
    const columns = [ID, ...(resolved ? [STATE] : []), ...FINDING_COLUMNS];
    print(cli, `${table(columns, findings)}${more}`);
  },
});

async function showFinding(cli: Cli, id: number, json: boolean): Promise<void> {
  const { checks } = await import('../../quality/index.ts');
  const { listFindings } = await import('../../state/findings.ts');
  const { openContext } = await import('../open-context.ts');
  const { db, config } = await openContext(cli);
  const [finding] = (await listFindings(db.drizzle, { id, resolved: true, limit: 1 })).findings;
  if (finding === undefined)
    throw usageError(`there is no finding ${id} ("eod findings" lists the open ones)`);
  if (json) return printJson(cli, finding);
  const rule = checks.find(({ name }) => name === finding.check)?.rule ?? '';
  print(cli, findingText(finding, rule, config.EOD_TIMEZONE));
}

function findingText(finding: Finding, rule: string, timeZone: string): string {
  const { id, check, severity, operation, exchange, date, instrument, runId } = finding;
  const at = (iso: string) => `${momentText(iso, timeZone)} (${timeZone})`;
  return [
    `finding ${id}: ${check}, ${severity}`,
    ...(rule === '' ? [] : [rule]),
    [pairTitle({ operation, exchange }), date, instrument].filter(Boolean).join(' '),
    `expected  ${finding.expected ?? 'nothing'}`,
    `found     ${finding.found ?? 'nothing'}`,
    `found at ${at(finding.foundAt)}${runId === null ? '' : `, after run ${runId}`}`,
    settlementText(finding, timeZone),
  ].join('\n');
}

/** Which days were never compared, and how to do so: what follows a sentence that nothing was found. */
export async function readUnchecked({ db }: Pick<Context, 'db'>): Promise<string> {
  const { readCheckedDays } = await import('../../state/findings.ts');
  return uncheckedText(await readCheckedDays(db.drizzle));
}

/** Which days nobody can say anything about, and the command that checks them; empty if there are none. */
function uncheckedText({ unchecked, from, to }: CheckedDays): string {
  return unchecked === 0
    ? ''
    : `, but ${plural(unchecked, 'loaded day')} ${unchecked === 1 ? 'was' : 'were'} not checked:
eod reconcile --from ${from} --to ${to}`;
}

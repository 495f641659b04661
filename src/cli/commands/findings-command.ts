import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import type { Context } from '../../jobs/context.ts';
import { pairTitle } from '../../operations/registry.ts';
import { checks, parseCheckName } from '../../quality/index.ts';
import {
  acceptFindings,
  type CheckedDays,
  type Finding,
  readCheckedDays,
  listFindings as readFindings,
  type Severity,
} from '../../state/findings.ts';
import { type Cli, type JsonFlag, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { parseOpenRange, type RangeFlags } from '../options.ts';
import { type Column, count, memberColumns, momentText, plural, table } from '../output.ts';
import { stateText } from './rejects-command.ts';

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

interface FilterFlags extends RangeFlags, JsonFlag {
  readonly check?: string;
  readonly exchange?: readonly string[];
  readonly severity?: Severity[];
}

interface FindingFlags extends FilterFlags {
  readonly resolved?: boolean;
  readonly limit: number;
}

export async function listFindings(cli: Cli, flags: FindingFlags): Promise<void> {
  const { resolved, limit } = flags;
  const filter = { ...readFilter(flags), resolved, limit };
  const { db } = await openContext(cli);
  const { total, findings: listed } = await readFindings(db.drizzle, filter);
  if (flags.json === true) return printJson(cli, listed);
  if (total === 0) {
    const days = await readCheckedDays(db.drizzle, filter);
    return print(cli, `no findings${days.loaded === 0 ? ': no prices are loaded' : uncheckedText(days)}`);
  }
  const more =
    total > listed.length ? `\n\n${count(listed.length)} of ${count(total)}; --limit shows more` : '';
  const columns = [ID, ...(resolved === true ? [STATE] : []), ...FINDING_COLUMNS];
  print(cli, `${table(columns, listed)}${more}`);
}

function readFilter(flags: FilterFlags) {
  const { check, exchange, severity } = flags;
  return {
    check: check === undefined ? undefined : parseCheckName('--check', check),
    exchanges: exchange,
    severity,
    ...parseOpenRange(flags),
  };
}

/** Accepts one finding, or all that match. */
export async function accept(cli: Cli, id: number | undefined, flags: FilterFlags): Promise<void> {
  const { check, exchange, severity, from, to } = flags;
  if ([id, check, exchange, severity, from, to].every((value) => value === undefined))
    throw usageError('say which: eod findings accept 3, or --check, --exchange, --from and --to');
  const filter = readFilter(flags);
  const { db } = await openContext(cli);
  const accepted = await acceptFindings(db.drizzle, { ...filter, id }, requesterName());
  if (id !== undefined && accepted === 0)
    throw usageError(`there is no open finding ${id} ("eod findings" lists them)`);
  if (flags.json === true) return printJson(cli, { accepted });
  print(
    cli,
    accepted === 0
      ? 'no open finding matches'
      : `${plural(accepted, 'finding')} accepted: listed again once either value changes`,
  );
}

export async function showFinding(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const { db, config } = await openContext(cli);
  const [finding] = (await readFindings(db.drizzle, { id, resolved: true, limit: 1 })).findings;
  if (finding === undefined)
    throw usageError(`there is no finding ${id} ("eod findings" lists the open ones)`);
  if (flags.json === true) return printJson(cli, finding);
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
    stateText(finding, timeZone),
  ].join('\n');
}

/** Which days were never compared, and how to do so: what follows a sentence that nothing was found. */
export const readUnchecked = async ({ db }: Pick<Context, 'db'>) =>
  uncheckedText(await readCheckedDays(db.drizzle));

/** Which days nobody can say anything about, and the command that checks them; empty if there are none. */
function uncheckedText({ unchecked, from, to }: CheckedDays): string {
  return unchecked === 0
    ? ''
    : `, but ${plural(unchecked, 'loaded day')} ${unchecked === 1 ? 'was' : 'were'} not checked:
eod reconcile --from ${from} --to ${to}`;
}

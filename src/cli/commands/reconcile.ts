import { clockOf, today } from '../../core/clock.ts';
import { addDays, type DayRange } from '../../core/days.ts';
import { type CheckResult, checkQuality } from '../../jobs/quality/check-quality.ts';
import type { Database } from '../../load/database/database.ts';
import { severities } from '../../load/market/checks/index.ts';
import { compareSums } from '../../load/state/coverage/sum-of-facts.ts';
import { readCheckedDays, type Severity } from '../../load/state/findings.ts';
import { clockLead } from '../../load/state/position-sql.ts';
import { pairTitle } from '../../operations/registry.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { bounded, type Check, failed, type Outcome, ok, warning } from '../doctor/check.ts';
import { openContext } from '../open-context.ts';
import { parseOpenRange, parseRange, type RangeFlags, SEVERITIES } from '../options.ts';
import { type Column, columnsOf, duration, firstFew, plural, table } from '../output.ts';

const CHECK_COLUMNS: readonly Column<CheckResult>[] = [
  ...columnsOf<CheckResult>('check', 'severity', 'open'),
  { head: 'new', cell: ({ fresh }) => fresh },
  ...columnsOf<CheckResult>('resolved'),
];

interface ReconcileFlags extends RangeFlags, JsonFlag {
  readonly failOn?: Severity;
}

export async function reconcile(cli: Cli, flags: ReconcileFlags): Promise<void> {
  const config = await loadSettings(cli);
  // A mistake in EOD_FINDING_SEVERITY is reported before anything is opened.
  severities(config);
  const clock = clockOf(config);
  // Read first, because the default of the first day depends on it.
  const { to = today(clock, config.EOD_TIMEZONE) } = parseOpenRange(
    flags.to === undefined ? {} : { to: flags.to },
    { config, clock },
  );
  const from = flags.from ?? addDays(to, -config.EOD_HISTORY_DAYS);
  const range = parseRange({ from, to }, { config, clock });
  const context = await openContext(cli, { config });
  const results = await checkQuality(context, range);
  const { loaded } = await readCheckedDays(context.db.drizzle, range);
  const store = await storeChecks(context.db);
  if (flags.json === true) printJson(cli, { ...range, days: loaded, checks: results, store });
  else print(cli, [summary(range, loaded, results), ...store.flatMap(storeText)].join('\n\n'));
  const severe = flags.failOn === undefined ? [] : SEVERITIES.slice(SEVERITIES.indexOf(flags.failOn));
  const found = [
    ...results.flatMap(({ open, severity }) => (open > 0 ? [severity] : [])),
    ...store.map(({ state }) => (state === 'failed' ? 'error' : state)),
  ];
  if (severe.some((severity) => found.includes(severity))) cli.exitCode = EXIT.failed;
}

/** What is wrong with what is stored, and what to do about it. */
const storeText = ({ name, found, remedy }: Check): string[] =>
  remedy === null ? [] : [`${name}: ${found}\nWhat to do: ${remedy}`];

function summary({ from, to }: DayRange, days: number, results: readonly CheckResult[]): string {
  const open = results.filter((result) => result.open > 0).length;
  const nothing = days === 0 ? 'no prices of these days are loaded, so little was compared' : 'nothing found';
  const tail =
    open === 0
      ? nothing
      : `${open} of ${results.length} checks found something: "eod findings" lists what, docs/completeness.md explains it`;
  return `${table(CHECK_COLUMNS, results)}\n\n${from} to ${to}, ${plural(days, 'day')} with prices: ${tail}`;
}

/** Time limit of each check, longer than those of its queries. */
const LIMIT_MS = 120_000;

/** Checks that what is known of the responses agrees with itself, on all days. */
async function storeChecks(db: Database): Promise<readonly Check[]> {
  const checks = { coverage: coverageCheck, positions: positionsCheck };
  const made: Check[] = [];
  for (const [name, check] of Object.entries(checks)) {
    for (const one of await bounded(name, LIMIT_MS, 'see "eod doctor"', () => check(db))) made.push(one);
  }
  return made;
}

/** How long all coverage is compared with what is kept of the responses. */
const SUMS_MS = 60_000;

/** Checks that the coverage is the sum of what is kept with the responses. */
async function coverageCheck(db: Database): Promise<Outcome> {
  const { differing, left } = await compareSums(db, SUMS_MS);
  const [first] = differing;
  const unknown =
    left.length === 0
      ? ''
      : `; too many entries to compare in ${SUMS_MS / 1_000} s more than those of the last day: ${firstFew(left)}`;
  if (first === undefined) {
    return ok(`the coverage is what its responses said${unknown}`);
  }
  const found = differing.map(
    ({ operation, exchange, entries, day, instrument, variant, registers }) =>
      `${plural(entries, 'entry')} of ${pairTitle({ operation, exchange })}, the first of ${[day, instrument, variant].filter((part) => part !== '').join(' ')} (${registers.join(', ')})`,
  );
  const { operation, exchange, day } = first;
  return failed(
    `the coverage is not what the responses said: ${found.join('; ')}${unknown}`,
    `the tables were changed by hand: "eod replay ${operation} --exchange ${exchange} --from ${day} --to ${day}" reads the kept responses of a day again`,
  );
}

/**
 * Positions that are further ahead show that the clock was set back: otherwise they are ahead by as many microseconds
 * as were taken at once.
 */
const CLOCK_LEAPT_MS = 1_000;

/** Checks that the positions of new responses are the times of their calls. */
async function positionsCheck(db: Database): Promise<Outcome> {
  const lead = await clockLead(db.drizzle);
  if (lead < CLOCK_LEAPT_MS) return ok('responses are ordered');
  return warning(
    `the last response has a position ${duration(lead / 1_000)} ahead of the clock of Postgres, which was set back since`,
    'correct the clock of that machine if it is wrong now. The order of responses stays right: until the clock has caught up, each gets a position a microsecond after the one before, which is not the time of its call',
  );
}

import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { clockOf, systemClock, today } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { addDays } from '../../core/days.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import { createSource } from '../../extract/index.ts';
import type { SavedResponse } from '../../sandbox/index.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openCalendar, openContext, openEnabledOperations, sourceSettings } from '../open-context.ts';
import { parseDay } from '../options.ts';
import { bold, type Column, columnsOf, plural, rangeText, table } from '../output.ts';
import { type Made, type MadeCall, makeCalls } from '../probe/make-calls.ts';
import {
  callRow,
  datesOf,
  fieldsFound,
  formatsOf,
  judge,
  limitHeaders,
  type PointReport,
  refusedInstruments,
  responsesOf,
  rightsOf,
  settingsOf,
} from '../probe/observations.ts';
import { type PlannedCall, type ProbedDays, planCalls } from '../probe/planned-calls.ts';
import { writeSettingsFile } from '../probe/settings-file.ts';

interface ProbeFlags extends JsonFlag {
  readonly trialDay?: string;
  readonly calls: number;
  readonly dryRun?: boolean;
  readonly write?: boolean;
  readonly save?: string;
}

/** A call takes no longer, because somebody is waiting. */
const LONGEST_CALL_MS = 30_000;

/** Finds out with a few calls how the source behaves where its documentation leaves it open. */
export async function probe(cli: Cli, flags: ProbeFlags): Promise<void> {
  const config = await loadSettings(cli);
  const calendar = openCalendar(cli, config);
  const days = probedDays(config, flags.trialDay, (day) => calendar.lastSessions('NSE', day, 2));
  const settings = { ...sourceSettings(config), connections: 1 };
  if (flags.dryRun === true) {
    await openEnabledOperations(cli, config);
    return showPlan(cli, planCalls(config, days).slice(0, flags.calls), flags);
  }
  const { db, log } = await openContext(cli, { config });
  const timeoutMs = Math.min(config.EOD_TIMEOUT_MS, LONGEST_CALL_MS);
  const wayOf = async (own: Config) => ({
    config: own,
    planned: planCalls(own, days),
    source: await cli.life.open(async () =>
      createSource({ ...settings, dateDialect: own.EOD_DATE_DIALECT, timeoutMs }, log),
    ),
  });
  const way = await wayOf(config);
  if (flags.json !== true) showPlan(cli, way.planned.slice(0, flags.calls), flags);
  const other = config.EOD_DATE_DIALECT === 'epoch' ? 'iso-date' : 'epoch';
  const inOtherDialect = () => wayOf({ ...config, EOD_DATE_DIALECT: other });
  const made = await makeCalls({ ...way, cli, db, calendar, days, most: flags.calls, inOtherDialect });
  const report = reportOf(made, config, days);
  // Responses that show nothing are no success either.
  const isDecided = report.openPoints.some(({ state }) => state !== 'undecided');
  cli.exitCode = cli.life.cutShort() ?? (isDecided ? EXIT.done : EXIT.failed);
  const folder = flags.save === undefined ? null : resolve(cli.cwd, flags.save);
  const saved = folder === null ? null : { folder, responses: saveResponses(folder, made.calls) };
  const mayWrite = flags.write === true && report.settings.length > 0;
  if (flags.json !== true) showReport(cli, report);
  const written = mayWrite ? writeSettingsFile(cli.cwd, report.settings) : null;
  if (flags.json === true) printJson(cli, { ...report, saved, written });
  else showFiles(cli, flags, saved, written);
}

/** The last session, or the trial day, and the session before it. */
function probedDays(
  config: Config,
  typed: string | undefined,
  lastTwo: (day: string) => readonly string[],
): ProbedDays {
  const own = { ...config, EOD_TRIAL_DAY: undefined };
  const trial =
    typed === undefined
      ? config.EOD_TRIAL_DAY
      : parseDay('--trial-day', typed, { config: own, clock: systemClock });
  const now = today(clockOf(config), config.EOD_TIMEZONE);
  const [first = addDays(now, -1), second = first] = lastTwo(addDays(now, -1));
  if (trial === undefined) return { day: second, before: first, today: now };
  const [before = addDays(trial, -1)] = lastTwo(addDays(trial, -1)).slice(-1);
  return { day: trial, before, today: trial };
}

const PLAN: readonly Column<PlannedCall>[] = [
  { head: 'operation', cell: ({ operation }) => operation.name },
  { head: 'exchange', cell: ({ requested }) => requested.exchange },
  { head: 'days', cell: ({ requested: { from, to } }) => rangeText({ from, to }) },
  { head: 'format', cell: ({ variation }) => variation.format ?? null },
  { head: 'to see', cell: ({ purpose }) => purpose },
];

function showPlan(cli: Cli, planned: readonly PlannedCall[], { json, dryRun, calls }: ProbeFlags): void {
  if (json === true) {
    printJson(cli, {
      calls: planned.map(({ name, purpose, operation, requested, variation }) => ({
        name,
        purpose,
        operation: operation.name,
        exchange: requested.exchange,
        from: requested.from,
        to: requested.to,
        instruments: requested.instruments,
        format: variation.format ?? null,
      })),
      most: calls,
    });
    return;
  }
  const left = calls - planned.length;
  const more =
    left > 0
      ? ` ${plural(left, 'more call')} at most: for what the key may do, how far back the source goes, and responses that are not ready.`
      : '';
  print(cli, `${table(PLAN, planned)}\n`);
  print(
    cli,
    `${plural(planned.length, 'call')}, counted like those of a night.${more}${dryRun === true ? ' None was made.' : ''}`,
  );
}

function reportOf(made: Made, { EOD_DATE_DIALECT }: Config, { day, before }: ProbedDays) {
  const responses = responsesOf(made.calls, made.config);
  const points = judge(responses);
  const dialect = made.config.EOD_DATE_DIALECT;
  const isOther = dialect !== EOD_DATE_DIALECT;
  const settings = isOther ? [{ name: 'EOD_DATE_DIALECT', value: dialect } as const] : [];
  return {
    day,
    before,
    counted: made.counted,
    stopped: made.stopped,
    notMade: made.notMade.map(({ name }) => name),
    openPoints: points,
    settings: [...settings, ...settingsOf(points)],
    rights: rightsOf(made.calls),
    refusedInstruments: refusedInstruments(made.calls),
    key: made.limitation,
    limitHeaders: limitHeaders(made),
    formats: formatsOf(responses),
    dates: datesOf(responses),
    history: made.history,
    fields: fieldsFound(made.calls),
    calls: made.calls.map(callRow),
  };
}

type Report = ReturnType<typeof reportOf>;

const POINT_COLUMNS: readonly Column<PointReport>[] = [
  ...columnsOf<PointReport>('state', 'point'),
  {
    head: 'seen',
    cell: ({ evidence, setting }) =>
      setting === null ? evidence : `${evidence}: set ${setting.name}=${setting.value}`,
  },
];

const CALL_COLUMNS = columnsOf<Report['calls'][number]>(
  'operation',
  'exchange',
  'format',
  'records',
  'seconds',
  'problem',
);

function showReport(cli: Cli, report: Report): void {
  const { calls, openPoints, settings, stopped, notMade } = report;
  print(cli, `\n${bold('Calls')}\n${table(CALL_COLUMNS, calls)}\n`);
  print(cli, `${bold('What the documentation leaves open')}\n${table(POINT_COLUMNS, openPoints)}\n`);
  print(cli, `${bold('What else was seen')}\n${otherLines(report).join('\n')}\n`);
  const counts = (['settled', 'contradicts', 'undecided'] as const).map(
    (state) => openPoints.filter((one) => one.state === state).length,
  );
  print(
    cli,
    `${plural(report.counted, 'call')}. Of ${openPoints.length} open points ${counts[0]} are as assumed, ${counts[1]} are otherwise, ${counts[2]} undecided.`,
  );
  for (const { name, value } of settings) print(cli, `set ${name}=${value}`);
  if (stopped !== null)
    print(cli, `It ended early: ${stopped}.${notMade.length > 0 ? ` Not made: ${notMade.join(', ')}.` : ''}`);
}

function showFiles(
  cli: Cli,
  { write = false }: ProbeFlags,
  saved: { readonly folder: string; readonly responses: number } | null,
  written: ReturnType<typeof writeSettingsFile> | null,
): void {
  if (saved !== null) print(cli, `saved ${plural(saved.responses, 'response')} in ${saved.folder}`);
  if (written === null) {
    if (write) print(cli, '.env stays as it is: no setting needs to be changed');
    return;
  }
  print(cli, `changed ${written.file}:`);
  for (const { before, after } of written.changed) {
    if (before !== null) print(cli, `  - ${before}`);
    print(cli, `  + ${after}`);
  }
  const overruled = written.changed
    .map(({ after }) => after.split('=')[0] ?? '')
    .filter((name) => cli.env[name]);
  if (overruled.length > 0)
    print(cli, `The environment sets ${overruled.join(', ')}, too, and takes precedence: change it there.`);
}

function otherLines({
  rights,
  refusedInstruments,
  key,
  limitHeaders,
  formats,
  dates,
  history,
  fields,
}: Report): string[] {
  const refused = rights.filter(({ isServed }) => !isServed);
  const named = (list: typeof rights) => list.map(({ operation, exchange }) => `${operation} ${exchange}`);
  const headers = Object.entries(limitHeaders).map(([name, value]) => `${name}: ${value}`);
  const allowance =
    key === null
      ? 'the service does not say'
      : `${key.callsPerHour ?? 'not stated'} calls an hour, ${key.callsPerMonth ?? 'not stated'} a month`;
  const reach =
    history === null
      ? 'not tried'
      : `${plural(history.served, 'day')} back are served${history.refused === null ? '' : `, ${plural(history.refused, 'day')} are not`}`;
  return [
    `served: ${named(rights.filter(({ isServed }) => isServed)).join(', ') || 'nothing'}`,
    ...refused.map(({ operation, exchange, problem }) => `not served: ${operation} ${exchange} (${problem})`),
    ...(refusedInstruments.length === 0
      ? []
      : [
          `the key may not request ${refusedInstruments.join(', ')} by name: set EOD_INSTRUMENTS to an instrument that it may`,
        ]),
    `quota of the key: ${allowance}${headers.length > 0 ? ` (${headers.join(', ')})` : ''}`,
    `a range of days: ${dates.isInclusive === null ? 'not seen' : dates.isInclusive ? 'has its first and its last day' : 'lacks its first or its last day'}`,
    `history: ${reach}`,
    ...formats.map(
      ({ compared, values, differences }) =>
        `${compared}: ${differences.length === 0 ? `all ${values} values are the same` : `${differences.length} of ${values} values differ: ${differences.slice(0, 3).join('; ')}`}`,
    ),
    ...fields.flatMap(({ operation, added, missing }) => [
      ...(added.length > 0 ? [`new fields of ${operation}: ${added.join(', ')}`] : []),
      ...(missing.length > 0 ? [`missing fields of ${operation}: ${missing.join(', ')}`] : []),
    ]),
  ];
}

/** Headers that are kept: the others may name an account. */
const KEPT = /^(?:content-type|date|retry-after)$|limit|remaining|quota/i;

/**
 * Writes each response as a file, and what was requested as another. The access key is in neither: it is no parameter,
 * and bodies and headers are received without it.
 *
 * @returns how many were written.
 */
function saveResponses(folder: string, calls: readonly MadeCall[]): number {
  let saved = 0;
  try {
    mkdirSync(folder, { recursive: true });
    for (const { call, response } of calls) {
      if (response === null) continue;
      saved += 1;
      const name = `${String(saved).padStart(2, '0')}-${call.operation.name}`;
      const body = `${name}.${call.variation.format?.toLowerCase() ?? 'txt'}`;
      const record: SavedResponse = {
        operation: call.operation.name,
        params: response.params,
        status: response.status,
        headers: Object.fromEntries(Object.entries(response.headers).filter(([header]) => KEPT.test(header))),
        body,
      };
      writeFileSync(join(folder, body), response.body);
      writeFileSync(join(folder, `${name}.response.json`), `${JSON.stringify(record, null, 2)}\n`);
    }
    return saved;
  } catch (error) {
    throw usageError(`responses cannot be saved in ${folder}: ${messageOf(error)}`);
  }
}

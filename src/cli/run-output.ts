import { isTooOld } from '../core/errors.ts';
import { groupBy } from '../core/iterables.ts';
import { causeOf, emptyTradingDaysText, runDaysText, runStateText } from '../core/wording.ts';
import type { Forecast } from '../jobs/runs/forecast.ts';
import { pairTitle, titleOf } from '../operations/registry.ts';
import type { OperationReport, RunReport } from '../state/runs/reports.ts';
import { EXIT } from './cli.ts';
import {
  type Column,
  count,
  duration,
  firstLines,
  fittedTable,
  memberColumns,
  momentText,
  plural,
  rangeText,
} from './output.ts';
import { dataSetColumns, retryLines } from './shared-texts.ts';

type OperationForecast = Forecast['operations'][number];

const NAME = dataSetColumns<OperationReport>();

/** The most important first: columns that do not fit become notes. */
const COUNTS: readonly Column<OperationReport>[] = [
  { head: 'windows', cell: (row) => row.windows.total },
  { head: 'failed', cell: (row) => row.windows.failed + row.windows.blocked },
  ...memberColumns<OperationReport>('fetched', 'inserted', 'updated', 'unchanged', 'rejected'),
  { head: 'skipped', cell: (row) => row.windows.skipped },
  ...memberColumns<OperationReport>('withdrawn', 'stale', 'duplicate'),
];

/** A report without its failures, which `failuresText` prints. */
type ReportedRun = Omit<RunReport, 'failures'>;

/** A run for people: a summary, a table of counts, and what needs attention. */
export function runText(report: ReportedRun, timeZone: string): string {
  const { runId, windows, requests, seconds, skips } = report;
  const calls = report.callsPerLoadedWindow;
  const total: OperationReport = { ...report, operation: 'total', exchange: '' };
  const ended = runStateText(report) === report.state ? report.state : 'completed without records';
  return [
    `run ${runId} (${runDaysText(report)}): ${ended} after ${seconds < 60 ? `${seconds} s` : duration(seconds)}`,
    `${plural(windows.total, 'window')}, ${plural(requests, 'request')}${calls !== null && calls > 1 ? ` (${calls} for each window that loaded)` : ''}`,
    `started ${momentText(report.startedAt, timeZone)} (${timeZone})`,
    ...(report.operations.length === 0
      ? []
      : ['', fittedTable(NAME, COUNTS, [...report.operations, total], pairTitle)]),
    '',
    `database state ${stateText(report.states)}`,
    ...(windows.open > 0 ? ['', `${plural(windows.open, 'window')} left to do`] : []),
    ...retryLines(report.retries, timeZone),
    ...(skips.length > 0 ? [''] : []),
    ...skips.map(({ reason, windows: skipped }) => `${plural(skipped, 'window')} skipped: ${reason}`),
    ...(report.kind === 'backfill' && skips.some(({ reason }) => reason.startsWith('loaded already'))
      ? ['what is loaded already is requested again with --force']
      : []),
    ...warningLines(report),
    ...withoutRecordsLines(report),
    ...emptyLines(report),
    ...suspiciousLines(report),
    ...withdrawnLines(report),
    ...(report.error === null ? [] : ['', `stopped by: ${report.error}`]),
  ].join('\n');
}

const stateText = ({ before, after }: RunReport['states']) =>
  before === after ? `${after}, as before` : `${before} → ${after} (every load makes a new one)`;

/** A paragraph with a line for each of the first items; none without items. */
const paragraph = <Item>(items: readonly Item[], line: (item: Item) => string): string[] =>
  items.length === 0 ? [] : ['', ...firstLines(items, line, (left) => `… and ${left} more`)];

/** What was odd about responses, each warning once. */
const warningLines = ({ warnings }: ReportedRun): string[] =>
  paragraph(
    warnings,
    ({ operation, warning, windows }) =>
      `warning: ${titleOf(operation)}: ${warning}${windows === 1 ? '' : ` (${plural(windows, 'window')})`}`,
  );

/** Data sets that were requested, and of which no response had a record. */
const withoutRecordsLines = ({ withoutRecords }: ReportedRun): string[] =>
  paragraph(
    withoutRecords,
    (dataSet) => `no records: ${pairTitle(dataSet)}, in ${plural(dataSet.windows, 'window')}`,
  );

/** Trading days for which the source sent nothing, though each should have records. */
function emptyLines({ emptySessions }: ReportedRun): string[] {
  if (emptySessions.length === 0) return [];
  return [
    '',
    ...emptySessions.map((dataSet) => `${pairTitle(dataSet)}: ${emptyTradingDaysText(dataSet)}`),
    'if the source should have them, "eod gaps fill" requests them again',
  ];
}

/** Responses that are suspicious. */
const suspiciousLines = ({ suspicious }: ReportedRun): string[] =>
  paragraph(
    suspicious,
    (window) => `suspicious: ${pairTitle(window)} ${rangeText(window)}: ${window.reason}`,
  );

/** Days that lost rows; those that lost all of them first. */
function withdrawnLines({ withdrawals }: ReportedRun): string[] {
  const done = withdrawals.filter(({ state }) => state === 'withdrawn' || state === 'accepted');
  return paragraph(
    done.sort((a, b) => Number(b.remainingRows === 0) - Number(a.remainingRows === 0)),
    ({ operation, exchange, day, unlistedRows, remainingRows }) =>
      `withdrawn: ${[pairTitle({ operation, exchange }), day].filter(Boolean).join(' ')}: ${plural(unlistedRows, 'row')} not listed any more, ${remainingRows === 0 ? 'none is left' : `${count(remainingRows)} left`}`,
  );
}

/** The windows that failed, or null if none did. */
export function failuresText({ failures, runId, kind, error: stoppedBy }: RunReport): string | null {
  if (failures.length === 0) return null;
  const head = `${plural(failures.length, 'window')} did not load:`;
  // Only a refused key stops a run as a whole.
  const isKey = stoppedBy !== null && failures.every(({ error }) => error === stoppedBy);
  const resume = `"eod runs resume ${runId}" requests ${failures.length === 1 ? 'it' : 'them'} again`;
  const tooOld = failures.filter(({ error }) => isTooOld(error)).length;
  const again = !RESUMABLE.includes(kind)
    ? []
    : [
        ...(tooOld === failures.length
          ? []
          : [isKey ? `set another EOD_ACCESS_KEY; then ${resume}` : resume]),
        ...(tooOld === 0 ? [] : ['days that are too old for the source can only be imported ("eod import")']),
      ];
  const why = ({ error }: RunReport['failures'][number]) => error ?? 'no reason is known';
  const byCause = [...groupBy(failures, (failure) => `${failure.state}: ${causeOf(why(failure))}`).values()];
  const [only] = byCause;
  if (only?.[0] !== undefined && byCause.length === 1 && failures.length > 1)
    return [`${head} ${only[0].state}: ${why(only[0])}`, ...again].join('\n');
  const lines = firstLines(byCause, (windows) => {
    const [first] = windows as [RunReport['failures'][number]];
    const windowTexts = windows.slice(0, NAMED_WINDOWS).map(windowText).join('; ');
    const more = windows.length - NAMED_WINDOWS;
    return `  ${first.state}: ${windowTexts}${more > 0 ? `; and ${plural(more, 'other')}` : ''}: ${why(first)}`;
  });
  return [head, ...lines, ...again].join('\n');
}

/** Kinds of runs of which failed windows are requested again. */
const RESUMABLE: readonly RunReport['kind'][] = ['backfill', 'nightly', 'gap_fill'];

/** How many windows are named that failed for the same reason. */
const NAMED_WINDOWS = 3;

function windowText(window: RunReport['failures'][number]): string {
  const { instruments, variant } = window;
  return [pairTitle(window), rangeText(window), ...instruments.slice(0, 3), variant]
    .filter(Boolean)
    .join(' ');
}

/** States of a run that did not do all of its work; `paused`: the source refused the key in another run. */
const UNFINISHED: readonly RunReport['state'][] = ['failed', 'cancelled', 'paused'];

/** 0 only if every window was loaded, empty where that is normal, or skipped for a reason. */
export function runExitCode({ windows, state, emptySessions }: RunReport): number {
  const bad = windows.failed + windows.blocked + windows.cancelled;
  return bad === 0 && emptySessions.length === 0 && !UNFINISHED.includes(state) ? EXIT.done : EXIT.failed;
}

const FORECAST_COLUMNS = [
  ...dataSetColumns<OperationForecast>(),
  ...memberColumns<OperationForecast>('windows', 'requests'),
];

const FORECAST_NOTES: readonly Column<OperationForecast>[] = [
  ...memberColumns<OperationForecast>('skipped'),
  { head: 'out of reach', cell: (row) => row.outOfReach },
  { head: '', cell: (row) => (row.isEstimated ? 'planned once the prices are loaded' : '') },
];

/** How many calls a run would make, and when it would be done; in the demo no limit of calls applies. */
export function forecastText(forecast: Forecast, timeZone: string, isDemo = false): string {
  const { operations, isEstimated, requests, outOfReach } = forecast;
  const total = { ...forecast, operation: 'total', exchange: '', isEstimated: false };
  return [
    fittedTable(FORECAST_COLUMNS, FORECAST_NOTES, [...operations, total], pairTitle),
    '',
    `${forecast.from} to ${forecast.to}: ${isEstimated ? 'about ' : ''}${plural(requests, 'request')}; no call was made`,
    `${isDemo ? 'the sandbox does not limit calls' : limitText(forecast)}: ${whenText(forecast, timeZone)}`,
    ...(outOfReach === 0
      ? []
      : [
          `${plural(outOfReach, 'window')} begin before ${forecast.reachesBackTo}, the first day the source is expected to serve (EOD_HISTORY_DAYS)`,
        ]),
  ].join('\n');
}

function limitText({ kind, callsPerHour, leftThisHour }: Forecast): string {
  const runs = kind === 'nightly' ? 'nightly runs' : 'backfills';
  return `${runs} may use ${callsPerHour} calls an hour; ${leftThisHour} are left in this one`;
}

function whenText({ hours, finishAt }: Forecast, timeZone: string): string {
  if (hours === null || finishAt === null)
    return 'it would never end, because all calls are reserved for the night';
  const when = minuteText(finishAt, timeZone);
  return hours === 0 ? 'nothing to do' : `done in ${plural(hours, 'clock hour')}, by ${when} (${timeZone})`;
}

const minuteText = (moment: string, timeZone: string) => momentText(moment, timeZone).slice(0, -':00'.length);

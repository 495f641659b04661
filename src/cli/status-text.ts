import type { Config } from '../core/config.ts';
import { type Pair, pairName } from '../core/exchanges.ts';
import { isUnusual, observedTradingDayText } from '../core/wording.ts';
import { chooseQueue } from '../jobs/queue/queue.ts';
import type { QuotaStatus, Status } from '../jobs/runs/read-status.ts';
import { listedAs, pairTitle } from '../operations/registry.ts';
import { MISSING_OF } from '../state/coverage/freshness.ts';
import type { OpenRunProgress } from '../state/runs/reports.ts';
import { FIRST_STEPS } from '../web/commands.ts';
import { type Column, clockTime, count, fittedTable, memberColumns, plural, table } from './output.ts';
import { dataSetColumns, noWorkersText, pipelineLines, retryLines } from './shared-texts.ts';

type OperationStatus = Status['operations'][number];

/** A line of the table: what is known by trading day, or a list. */
type Line = Pair &
  Pick<OperationStatus, 'completeTo' | 'lastComplete' | 'lastRecords' | 'isRequested'> &
  Partial<OperationStatus>;

const listLine = ({ operation, exchange, day, records, isDaily }: Status['lists'][number]): Line => ({
  operation,
  exchange,
  completeTo: isDaily ? 'daily' : 'a list',
  lastComplete: day ?? 'no day',
  lastRecords: records,
  isRequested: false,
});

const COLUMNS: readonly Column<Line>[] = [
  ...dataSetColumns<Line>(),
  { head: 'complete to', cell: (line) => line.completeTo ?? 'no complete day yet' },
  { head: 'latest', cell: (line) => line.lastComplete ?? 'nothing' },
];

const RUN_COLUMNS: readonly Column<OpenRunProgress>[] = [
  { head: 'run', cell: (run) => run.runId },
  ...memberColumns<OpenRunProgress>('kind', 'state'),
  { head: 'windows', cell: (run) => run.total },
  { head: 'done', cell: (run) => run.ended },
  ...memberColumns<OpenRunProgress>('fetched'),
];

/**
 * What `eod status` prints.
 *
 * @param queueProblem why Redis cannot be used; null if it can, or if none is set.
 * @param isDemo whether this is the database of the demo, whose source and workers ended with it.
 */
export function statusText(
  status: Status,
  config: Config,
  queueProblem: string | null,
  isDemo: boolean,
): string {
  const { operations, lists, openRuns, issues, underivedLoads, quota, database } = status;
  const { EOD_TIMEZONE: timeZone, EOD_BASE_URL, EOD_ACCESS_KEY } = config;
  const hasSource = EOD_BASE_URL !== undefined && EOD_ACCESS_KEY !== undefined;
  // Imports need none.
  const isImported =
    operations.length + lists.length > 0 && operations.every(({ isScheduled }) => !isScheduled);
  const needsNoWorker = isDemo || (isImported && openRuns.length === 0);
  const noWorkers = needsNoWorker ? null : noWorkersText(status.workers, timeZone);
  const demoIsPartial = isDemo && operations.some(({ lastComplete }) => lastComplete === null);
  return [
    ...pipelineLines(status, timeZone),
    ...(status.isUnused && openRuns.length === 0 && !isDemo
      ? [firstSteps(hasSource)]
      : [operationsText(operations, lists)]),
    ...(demoIsPartial ? ['', 'the demo was stopped before its end; "eod demo" loads what is missing'] : []),
    '',
    openRuns.length === 0 ? 'no open runs' : table(RUN_COLUMNS, openRuns),
    '',
    ...openRuns.flatMap(({ runId, state, error, retries }) =>
      [
        ...(state === 'paused'
          ? [`paused${error === null ? '' : ` by ${error}`}; "eod runs resume ${runId}" continues it`]
          : []),
        ...retryLines(retries, timeZone),
      ].map((line) => `run ${runId}: ${line}`),
    ),
    ...openRuns.filter(({ kind }) => kind === 'replay').map(replayText),
    ...status.observedSessions.map(observedTradingDayText),
    ...(underivedLoads === 0 ? [] : [underivedText(underivedLoads)]),
    ...(quota === null ? [] : [quotaText(quota, openRuns, timeZone)]),
    ...(noWorkers === null ? [] : [noWorkers]),
    ...(queueProblem === null ? [] : [queueProblem]),
    `database: ${database === 'private' ? 'private Postgres (EOD_DATA_DIR)' : database}; queue: ${status.queue}`,
    ...(issues === 0
      ? []
      : [`${plural(issues, 'issue')} ${issues === 1 ? 'needs' : 'need'} a person: eod issues`]),
  ].join('\n');
}

/** What an open replay means for the rows. */
const replayText = ({ runId, ended, total }: OpenRunProgress) =>
  `replay ${runId} has folded ${count(ended)} of ${plural(total, 'part')}: rows of the others may not be what the kept responses say`;

const underivedText = (loads: number) =>
  `names of instruments, corporate events and price factors lack what ${plural(loads, 'load')} changed; the end of a run brings them up to date`;

/** `630 of 900 calls made since 21:00; backfills are waiting for 22:00 IST`. */
function quotaText(quota: QuotaStatus, openRuns: readonly OpenRunProgress[], timeZone: string): string {
  const clock = (iso: string) => clockTime(iso, timeZone);
  const callsText = `${quota.calls} of ${quota.limit} calls made since ${clock(quota.hour)}`;
  const waiting = [
    { kind: 'nightly', name: 'nightly runs', until: quota.nightsWaitUntil },
    { kind: 'backfill', name: 'backfills', until: quota.backfillsWaitUntil },
  ].flatMap(({ kind, name, until }) => {
    const open = openRuns.some((run) => chooseQueue(run.kind) === kind && run.state === 'running');
    return until !== null && open ? [`${name} are waiting for ${clock(until)}`] : [];
  });
  return [callsText, ...waiting].join('; ');
}

function operationsText(operations: readonly OperationStatus[], lists: Status['lists']): string {
  const counts: readonly Column<Line>[] = [
    { head: 'late', cell: (line) => (line.isLate === true ? 'yes' : '') },
    { head: 'missing', cell: (line) => line.missingSessions ?? '' },
    { head: 'rows', cell: (line) => line.lastRecords },
    { head: 'open rejects', cell: (line) => line.openRejects ?? '' },
    { head: 'suspicious', cell: (line) => line.suspiciousWindows ?? '' },
  ];
  const notes = operations.flatMap(unusualText);
  const lines: Line[] = [...operations, ...lists.map(listLine)];
  lines.sort((a, b) => (pairName(a) < pairName(b) ? -1 : 1));
  const names = [...new Set(lines.filter(isFromFiles).map(({ operation }) => listedAs(operation)))];
  const isMissing = operations.some(({ missingSessions }) => missingSessions > 0);
  return [
    fittedTable(COLUMNS, counts, lines, pairTitle),
    ...(names.length === 0 ? [] : ['', `come from files: ${names.join(', ')}`]),
    ...(isMissing
      ? ['', `“missing” counts the last ${MISSING_OF} trading days; eod gaps lists all of them`]
      : []),
    ...(notes.length === 0 ? [] : ['', ...notes]),
  ].join('\n');
}

/** Files alone fill it, or have filled it so far. */
const isFromFiles = ({ isRequested, hasBeenRequested, lastComplete }: Line) =>
  !isRequested || (hasBeenRequested === false && lastComplete !== null);

function unusualText(operation: OperationStatus): string[] {
  const { lastComplete, lastRecords, medianRecords } = operation;
  if (lastRecords === null || medianRecords === null || !isUnusual(lastRecords, medianRecords)) return [];
  const rows = `${count(lastRecords)} rows, usually ${count(Math.round(medianRecords))}`;
  return [`${pairTitle(operation)}: ${lastComplete} has ${rows}`];
}

/** What a new user can do first. */
const firstSteps = (hasSource: boolean): string =>
  [
    'nothing is loaded yet; first steps:',
    '',
    ...(hasSource
      ? []
      : [
          '  set EOD_BASE_URL and EOD_ACCESS_KEY in the environment or in .env:',
          '  the address of the data service, and your key for it',
          '',
        ]),
    ...FIRST_STEPS.flatMap(({ command, does }) => [`  ${command}`, `  ${does}`, '']),
    '"eod --demo status" shows what "eod demo" has loaded',
  ].join('\n');

import { today } from '../../core/clock.ts';
import { addDays, type Day, type DayRange, daysBetween, eachDay } from '../../core/days.ts';
import { isPipelineError } from '../../core/errors.ts';
import { windowEnded } from '../../core/events.ts';
import { pairName } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { windowFacts } from '../../core/log.ts';
import type { StepTimes } from '../../core/steps.ts';
import { dataSetNamed, operationNamed } from '../../operations/registry.ts';
import { databaseError } from '../../postgres/database-errors.ts';
import { transaction } from '../../postgres/transaction.ts';
import { writeCoverage } from '../../state/coverage/coverage.ts';
import { takePosition } from '../../state/position-sql.ts';
import { NOT_ALLOWED } from '../../state/registers.ts';
import { stopRuns } from '../../state/runs/runs.ts';
import { type CallLimit, closeHour } from '../../state/source/call-budget.ts';
import { noteKeyRefused } from '../../state/source/source-state.ts';
import type { ClaimedWindow } from '../../state/windows/claim.ts';
import type { NewWindow } from '../../state/windows/plan.ts';
import { readWindow } from '../../state/windows/read-windows.ts';
import {
  endWindows,
  type FailureInfo,
  noteNotStored,
  releaseWindow,
  type Selection,
  skipWindow,
  splitWindow,
} from '../../state/windows/windows.ts';
import { keyAlert } from '../alerts/alert.ts';
import { raiseAlerts } from '../alerts/send-alerts.ts';
import type { Context, QueueContext } from '../context.ts';
import { decideLocalFailure, type FailureAction, failureInfo } from '../policy/failure-policy.ts';
import { enqueueOpenWindows } from '../queue/enqueue.ts';
import type { WindowJob } from '../queue/queue.ts';
import { listEntries } from '../responses/response-coverage.ts';

/** A failed window, and what was decided about it. */
interface Failure {
  readonly job: WindowJob;
  /** Null if it could not be claimed. */
  readonly window: ClaimedWindow | null;
  readonly callLimit: CallLimit;
  readonly error: unknown;
  readonly action: FailureAction;
  /** How long its steps took. */
  readonly times?: StepTimes;
}

type EndAction = Extract<FailureAction, { act: 'end' }>;
type SplitAction = Extract<FailureAction, { act: 'split' }>;

/**
 * Stores what was decided about a failed window, for it and for the other windows in the scope of the decision. Does
 * not throw if Postgres cannot be reached: then the window stays as it is, and its job is tried again.
 *
 * @returns the runs of which windows have ended.
 */
export async function applyFailure(context: QueueContext, failure: Failure): Promise<readonly number[]> {
  const { job, error, action } = failure;
  const { runId, windowId } = job;
  const { log, db } = context;
  const info = buildFailureInfo(failure);
  // Without Postgres only its ids are logged.
  const window = failure.window ?? (await readWindow(db.drizzle, windowId).catch(() => null));
  const facts = window === null ? { runId, windowId } : windowFacts(window);
  const attempt = failure.window === null ? {} : { attempt: failure.window.failedAttempts + 1 };
  log[chooseLogLevel(failure)](
    { ...facts, ...attempt, ms: failure.times, err: error, action },
    action.act === 'keep_response'
      ? 'a response could not be stored; it is kept and stored later'
      : 'window did not load',
  );
  try {
    return await writeAction(context, failure, info);
  } catch (thrown) {
    const err = databaseError(thrown);
    const next = decideLocalFailure(err);
    if (next.act !== 'end') {
      log.warn({ ...facts, err }, 'could not store the failure of the window');
      return [];
    }
    // An open window would be requested again and again.
    log.error({ ...facts, err }, 'could not store the failure of the window; it ends as failed');
    await transaction(db, (tx) => endWindows(tx, { runId, windowId }, next.state, info));
    return [runId];
  }
}

/** The message to store; where the key may not use what was requested, it begins as completeness and issues expect. */
function buildFailureInfo({ error, action }: Failure): FailureInfo {
  const info = failureInfo(error);
  if (action.act !== 'end' || action.state !== 'skipped') return info;
  const text = `${NOT_ALLOWED} ${action.scope}: ${info.diagnostic ?? info.error}`;
  return { error: text, diagnostic: text };
}

/** `error` for what needs a person, `warn` for what is tried again, and less for what is normal. */
function chooseLogLevel({ action, error }: Failure): 'error' | 'warn' | 'info' | 'debug' {
  const { act } = action;
  // Days that are too old for the source are one sentence at the end of the run.
  if (act === 'end' && action.state === 'skipped') return 'warn';
  if (act === 'end') return action.scope === 'older' ? 'info' : 'error';
  if (act === 'retry') return 'warn';
  // A Postgres that is unreachable has its own line in the log.
  if (act === 'keep_response') return isPipelineError(error, 'database_unreachable') ? 'info' : 'warn';
  return isPipelineError(error, 'not_ready') ? 'debug' : 'info';
}

/**
 * The same for a window that is loaded without the queue, from a file or a kept response: it ends as failed.
 *
 * @returns the error message.
 * @throws the error if the window stays open, because the work may continue later.
 */
export async function applyLocalFailure({ db }: Context, windowId: number, error: unknown): Promise<string> {
  const problem = databaseError(error);
  const action = decideLocalFailure(problem);
  if (action.act !== 'end') throw problem;
  await endWindows(db.drizzle, { windowId }, action.state, { error: problem.message });
  return problem.message;
}

/** @returns the runs of which windows have ended. */
async function writeAction(context: QueueContext, failure: Failure, info: FailureInfo): Promise<number[]> {
  const { job, window, callLimit, action } = failure;
  const { db } = context;
  const line = info.diagnostic ?? info.error;
  // If another worker has claimed the window since, only that worker decides about it.
  const claim = window?.attempts;
  const release = (
    failureInfo: FailureInfo | null,
    options: Omit<Parameters<typeof releaseWindow>[3], 'claim'>,
  ) => releaseWindow(db.drizzle, job.windowId, failureInfo, { ...options, claim });
  switch (action.act) {
    case 'keep_response':
      await noteNotStored(db.drizzle, job.windowId, info, claim);
      break;
    case 'retry':
    case 'postpone':
    case 'await_data':
    case 'put_back':
      await release(action.act === 'put_back' ? null : info, action);
      break;
    case 'rate_limit':
      if (action.isHourClosed) await closeHour(db.drizzle, callLimit, line);
      // The wait for the next hour is not counted as time in which the source prepares the response.
      await release(info, { act: 'put_back', delayMs: action.delayMs });
      break;
    case 'split':
      // The windows that replace it advance the run.
      if (window !== null) await splitAndEnqueue(context, window, action, info.diagnostic ?? null);
      break;
    case 'skip':
      await skipWindow(db.drizzle, job.windowId, action.reason);
      return [job.runId];
    case 'end': {
      const runs = await endWithCoverage(context, job, window, action, info);
      if (action.scope === 'key') {
        // Where the run has been paused by the refusal of another call, the window waits until it is resumed.
        await release(null, { act: 'put_back' });
        await noteKeyRefused(db.drizzle, callLimit, line);
        await raiseAlerts(context, [keyAlert(callLimit.keyHash, line)]);
      }
      if (window !== null) {
        const { operation, exchange } = window;
        windowEnded.publish({ operation, exchange, state: action.state, rows: {}, hasUnknownFields: false });
      }
      return runs;
    }
  }
  return [];
}

/**
 * Ends the windows in the scope of an action and records the coverage of their days, in one transaction. A refusal of
 * the key ends its run and pauses the others, because all of them use the key.
 *
 * @returns the runs of these windows.
 */
async function endWithCoverage(
  { db, calendar, clock, config }: Context,
  job: WindowJob,
  window: ClaimedWindow | null,
  action: EndAction,
  info: FailureInfo,
): Promise<number[]> {
  // Outside of the transaction, because every process that takes a position waits for the one before.
  const position = window?.position ?? (await takePosition(db.drizzle));
  return transaction(db, async (tx) => {
    // Runs are locked before windows, as everywhere, so that two writers cannot deadlock.
    if (action.scope === 'key') await stopRuns(tx, job.runId, info.error);
    const calledOn = today(clock, config.EOD_TIMEZONE);
    const oldestKept = addDays(calledOn, -config.EOD_HISTORY_DAYS);
    const selection = selectWindowsToEnd(job, window, action, oldestKept);
    const ended = await endWindows(tx, selection, action.state, info);
    const state = action.state === 'skipped' ? 'blocked' : action.state;
    const failed = { state, records: 0, diagnostic: info.diagnostic ?? info.error } as const;
    const pairs = [...groupBy(ended, pairName)].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [, ofPair] of pairs) {
      const [first] = ofPair;
      const entries = new Map<string, Parameters<typeof writeCoverage>[1]['coverage'][number]>();
      for (const { id, runId, ...endedWindow } of ofPair) {
        const tradingDays = calendar.tradingDays(endedWindow.exchange, endedWindow.from, endedWindow.to);
        for (const entry of listEntries(
          dataSetNamed(endedWindow.operation),
          endedWindow,
          tradingDays,
          calledOn,
        )) {
          entries.set(Object.values(entry).join('|'), { ...entry, ...failed, runId, windowId: id });
        }
      }
      await writeCoverage(tx, {
        operation: first.operation,
        exchange: first.exchange,
        runId: first.runId,
        windowId: first.id,
        position,
        coverage: [...entries.values()],
      });
    }
    return [...new Set([job.runId, ...ended.map((endedWindow) => endedWindow.runId)])];
  });
}

function selectWindowsToEnd(
  { runId, windowId }: WindowJob,
  window: ClaimedWindow | null,
  { scope }: EndAction,
  oldestKept: Day,
): Selection {
  if (scope === 'key') return { runId };
  if (scope === 'operation' && window !== null) return { runId, operation: window.operation };
  if (scope === 'exchange' && window !== null) return { runId, exchange: window.exchange };
  const only = { runId, windowId, claim: window?.attempts };
  // Of a quarter, or another range that cannot be split, it is not known which day was refused.
  if (scope !== 'older' || window === null || window.from !== window.to) return only;
  const { operation, exchange, variant, to } = window;
  return { ...only, operation, exchange, older: { day: to, variant, isExpected: to < oldestKept } };
}

/** Splits a window that the source does not serve as a whole. */
async function splitAndEnqueue(
  context: QueueContext,
  window: ClaimedWindow,
  { days }: SplitAction,
  diagnostic: string | null,
): Promise<void> {
  const { id, runId, operation, attempts } = window;
  const pieces = divideRange(context, window, days);
  await transaction(context.db, (tx) => splitWindow(tx, id, pieces, { diagnostic, claim: attempts }));
  const span = daysBetween(window.from, window.to) + 1;
  context.log.info({ windowId: id, operation, span, days }, 'window split');
  await enqueueOpenWindows(context, [runId]);
}

type Range = Pick<NewWindow, 'operation' | 'exchange' | 'from' | 'to'>;

/**
 * Divides a range into pieces of at most `days` days, oldest first. If the operation has no records of days without a
 * trading day, each piece begins at a trading day, and pieces without any are left out.
 */
function divideRange({ calendar }: Context, { operation, exchange, from, to }: Range, days: number) {
  const { windows } = operationNamed(operation);
  const hasRecordsOfAnyDay = windows.per !== 'range' || windows.everyDay;
  const needed = hasRecordsOfAnyDay ? eachDay(from, to) : calendar.tradingDays(exchange, from, to);
  const pieces: DayRange[] = [];
  for (const day of needed) {
    const last = addDays(day, days - 1);
    if (day > (pieces.at(-1)?.to ?? '')) pieces.push({ from: day, to: last < to ? last : to });
  }
  return pieces;
}

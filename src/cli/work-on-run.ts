import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../core/config.ts';
import { isPipelineError, messageOf } from '../core/errors.ts';
import { retryText } from '../core/wording.ts';
import type { Context, QueueContext, WorkContext } from '../jobs/context.ts';
import { workReplay } from '../jobs/replay/work-replay.ts';
import { unknownYears } from '../jobs/responses/sync-sessions.ts';
import { followUpRuns } from '../jobs/runs/finish.ts';
import { forecastRun } from '../jobs/runs/forecast.ts';
import { quotaStatus, usedUpText, waitsUntil } from '../jobs/runs/read-status.ts';
import { startRun } from '../jobs/runs/run-control.ts';
import { type RunningWorker, startWorker } from '../jobs/worker/worker.ts';
import type { RunRequest } from '../state/request.ts';
import {
  listRetries,
  type Progress,
  type RunReport,
  readRunProgress,
  reportRun,
} from '../state/runs/reports.ts';
import { pauseRun } from '../state/runs/runs.ts';
import { readWorkers } from '../state/workers.ts';
import { type Cli, logNote, logStderr, print, printJson } from './cli.ts';
import { openContext } from './open-context.ts';
import { clockTime, count, plural } from './output.ts';
import { progressView } from './progress.ts';
import { failuresText, forecastText, runExitCode, runText } from './run-output.ts';
import { logUnknownYears, noWorkersText } from './shared-texts.ts';

/** How often the progress of a run is read. */
const PROGRESS_EVERY_MS = 250;

/** The options that say what to do with a request. */
interface RunValues {
  readonly dryRun: boolean;
  readonly detach?: boolean;
  readonly json: boolean;
}

/**
 * Starts a run for a request and works on it to its end. With `--detach` it leaves the work to others; with `--dry-run`
 * it only prints a forecast.
 *
 * @param makeRequest makes the request; null if there is nothing to request, which the command then reports.
 */
export async function runRequest(
  cli: Cli,
  { dryRun, detach = false, json }: RunValues,
  config: Config,
  makeRequest: (context: Context) => Promise<RunRequest | null>,
): Promise<void> {
  const readRequest = async (context: Context) => {
    const request = await makeRequest(context);
    if (request !== null) logUnknownYears(cli, unknownYears(context.calendar, request.targets));
    return request;
  };
  if (dryRun) {
    const context = await openContext(cli, { config });
    const request = await readRequest(context);
    if (request === null) return;
    const forecast = await forecastRun(context, request);
    if (json) return printJson(cli, forecast);
    return print(cli, forecastText(forecast, config.EOD_TIMEZONE, cli.demo));
  }
  if (detach) {
    const context = await openContext(cli, { config, queue: true, wait: 'short' });
    const request = await readRequest(context);
    if (request === null) return;
    const { drizzle } = context.db;
    const report = await reportRun(context, await startNewRun(context, request));
    const noWorkers = noWorkersText(await readWorkers(drizzle), config.EOD_TIMEZONE);
    if (noWorkers !== null) logNote(cli, noWorkers);
    if (json) return printJson(cli, report);
    return print(cli, `run ${report.runId} enqueued: ${plural(report.windows.open, 'window')}`);
  }
  const context = await openContext(cli, { config, source: true, wait: 'short' });
  const request = await readRequest(context);
  if (request === null) return;
  const isAttended = cli.stdout.isTTY === true || cli.stderr.isTTY === true;
  const runId = await startNewRun(context, { ...request, ...(isAttended ? { isAttended } : {}) });
  printEnding(cli, await workOnRun(cli, context, runId), json, config);
}

/** Plans and enqueues a new run. */
export async function startNewRun(context: QueueContext, request: RunRequest): Promise<number> {
  const runId = await startRun(context, request);
  if (runId === null) throw new Error('a run without a tick always has a number');
  return runId;
}

/** How the work of a command on a run ended. */
interface Ending {
  readonly report: RunReport;
  /** Stopped by a signal before its end. */
  readonly isInterrupted: boolean;
}

/** Prints the report, what failed and how to go on, and sets the exit code. */
export function printEnding(cli: Cli, ending: Ending, json: boolean, config: Config): void {
  const { report } = ending;
  if (json) printJson(cli, report);
  else print(cli, runText(report, config.EOD_TIMEZONE));
  const failures = failuresText(report);
  if (failures !== null) logStderr(cli, failures);
  cli.exitCode = concludeRun(cli, ending);
}

/**
 * Prints how to go on with a run that a signal, or a refused key, has stopped.
 *
 * @returns the exit code of the command.
 */
export function concludeRun(cli: Cli, { report, isInterrupted }: Ending): number {
  if (!isInterrupted && report.state !== 'paused') return runExitCode(report);
  const { runId, windows } = report;
  const left = plural(windows.open, 'window');
  logStderr(cli, `stopped: run ${runId} has ${left} left; go on with: eod runs resume ${runId}`);
  return cli.life.cutShort() ?? runExitCode(report);
}

/** What pauses a run when the command that works on it is stopped. */
const SIGNAL = 'a signal (Ctrl-C or SIGTERM)';

/**
 * Works on a run as one more worker and shows its progress, until the run ends or a signal comes. After a signal the
 * run is paused, and windows in progress finish or roll back.
 */
export async function workOnRun(cli: Cli, context: WorkContext, runId: number): Promise<Ending> {
  const { life } = cli;
  const view = progressView(cli, runId);
  let worker: RunningWorker | undefined;
  let hasEnded = false;
  try {
    worker = await life.open(
      () => startWorker(context),
      (opened) => opened.stop(),
    );
    hasEnded = await followRun(cli, context, runId, view.update);
    // Awaited here: after a first fill the checks take longer than the worker may take to stop, and with cron no other
    // process would make them before the next night.
    if (hasEnded) await Promise.race([followUp(context, runId), life.stopped]);
  } catch (error) {
    if (!life.signal.aborted) throw error;
  } finally {
    view.end();
    if (!hasEnded && life.signal.aborted) await pauseRun(context.db.drizzle, runId, SIGNAL);
    await worker?.stop();
  }
  return { report: await reportRun(context, runId), isInterrupted: !hasEnded };
}

/** Makes the checks and alerts that follow the end of a run, or waits for them. They do not change how it ended. */
async function followUp(context: Context, runId: number): Promise<void> {
  await followUpRuns(context, runId).catch((err) =>
    context.log.warn(
      { runId, err },
      'the checks and alerts that follow the run are left to the next process',
    ),
  );
}

/** Why no calls are made for a run now; null if some are. */
async function pauseText(context: WorkContext, kind: Progress['kind']): Promise<string | null> {
  if ((await readWorkers(context.db.drizzle)).cannotStore !== null)
    return 'Postgres cannot store responses, waiting until it can';
  const quota = await quotaStatus(context);
  const until = waitsUntil(quota, kind);
  if (until === null) return null;
  return `${usedUpText(quota, kind)}, waiting until ${clockTime(until, context.config.EOD_TIMEZONE)}`;
}

/** What failed so far and is tried again; null if nothing is. */
async function retriesText({ config, db }: WorkContext, runId: number): Promise<string | null> {
  const [first, ...others] = await listRetries(db.drizzle, [runId]);
  if (first === undefined) return null;
  const more = others.length === 0 ? '' : `, and ${count(others.length)} more such`;
  return `${retryText(first, config.EOD_TIMEZONE)}${more}`;
}

/**
 * Waits for the end of a run.
 *
 * @returns false if a signal came first.
 * @throws PipelineError if Postgres stays unreachable.
 */
async function followRun(
  { life }: Cli,
  context: WorkContext,
  runId: number,
  show: (progress: Progress, pause: string | null, retries: string | null) => void,
): Promise<boolean> {
  while (!life.signal.aborted) {
    const progress = await readRunProgress(context.db.drizzle, runId);
    show(progress, await pauseText(context, progress.kind), await retriesText(context, runId));
    if (progress.state !== 'running') return true;
    await sleep(PROGRESS_EVERY_MS, undefined, { signal: life.signal }).catch(() => undefined);
  }
  return false;
}

/**
 * Works on a replay and shows its progress, until it ends or a signal comes, which pauses it. If Postgres becomes
 * unreachable meanwhile, the replay continues once it is back.
 */
export async function workOnReplay(cli: Cli, context: Context, runId: number): Promise<Ending> {
  const { life } = cli;
  const { db } = context;
  const view = progressView(cli, runId);
  const done = new AbortController();
  const work = workReplay(context, runId, life.signal).finally(() => done.abort());
  // It is awaited below. Until then an unhandled error would end the process before the run is paused.
  work.catch(() => undefined);
  const showProgress = async () => {
    // Errors are reported by the work itself; progress can be read another time.
    const progress = await readRunProgress(db.withoutRetry.drizzle, runId).catch(() => null);
    if (progress !== null) view.update(progress);
  };
  try {
    while (!done.signal.aborted) {
      await showProgress();
      await sleep(PROGRESS_EVERY_MS, undefined, { signal: done.signal }).catch(() => undefined);
    }
    await showProgress();
  } finally {
    view.end();
    // After an error the run stays open, to be resumed.
    await work.catch(async (error) => {
      // A run that another process works on is not ours to pause. While Postgres is unreachable pausing fails, which
      // does no harm: a run that is still running can be resumed too.
      if (!isPipelineError(error, 'usage'))
        await pauseRun(db.drizzle, runId, messageOf(error)).catch(() => undefined);
      throw error;
    });
  }
  const { state } = await readRunProgress(db.drizzle, runId);
  const isInterrupted = life.signal.aborted && state === 'running';
  if (isInterrupted) await pauseRun(context.db.drizzle, runId, SIGNAL);
  return { report: await reportRun(context, runId), isInterrupted };
}

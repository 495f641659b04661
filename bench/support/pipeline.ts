import { setTimeout as pause } from 'node:timers/promises';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { systemClock } from '../../src/core/clock.ts';
import { loadConfig } from '../../src/core/config.ts';
import { createLog } from '../../src/core/log.ts';
import type { QueueContext } from '../../src/jobs/context.ts';
import { openQueues } from '../../src/jobs/queue/queue.ts';
import { runState, startRun } from '../../src/jobs/runs/run-control.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import type { RunRequest } from '../../src/state/request.ts';
import { type RunReport, reportRun } from '../../src/state/runs/reports.ts';
import type { Site } from './bench.ts';
import { type ChildFigures, startChild } from './processes.ts';
import { EXCHANGE, type SourceMode } from './records.ts';

/** The settings as shipped, but for the hourly budget: above what the benchmarks use, so that none waits for the next clock hour. */
export function settingsFor(databaseUrl: string, sourceUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    EOD_BASE_URL: sourceUrl,
    EOD_ACCESS_KEY: 'bench',
    EOD_CALLS_PER_HOUR: '1000000',
    EOD_LOG_LEVEL: 'error',
  };
}

/** What plans runs and follows them, in this process. */
export async function openPlanner(settings: Readonly<Record<string, string>>) {
  const config = loadConfig(settings);
  const log = createLog(config);
  const db = openDatabase({ url: settings.DATABASE_URL ?? '', log });
  const queues = await openQueues({ db, config, log });
  const context: QueueContext = { config, log, db, queues, calendar: loadCalendar(), clock: systemClock };
  return {
    context,
    async close() {
      await queues.close();
      await db.close();
    },
  };
}

/** The pipeline on a database, with its workers in processes of their own. */
export interface BenchPipeline {
  /** Runs a request to its end. @throws Error unless every window loaded. */
  run(request: RunRequest): Promise<RunReport>;
  /** Stops the workers and returns what each took. */
  stop(): Promise<ChildFigures<unknown>[]>;
}

/** Opens the queue on Postgres and starts workers that call the source in this mode. */
export async function startPipeline(
  { source }: Pick<Site, 'source'>,
  databaseUrl: string,
  { workers = 1, mode = 'first' }: { readonly workers?: number; readonly mode?: SourceMode } = {},
): Promise<BenchPipeline> {
  const settings = settingsFor(databaseUrl, source.url(mode));
  const planner = await openPlanner(settings);
  const started = await Promise.all(Array.from({ length: workers }, () => startChild('work', settings)));
  return {
    run: (request) => runToEnd(planner.context, request),
    async stop() {
      const figures = await Promise.all(started.map((worker) => worker.finish()));
      await planner.close();
      return figures;
    },
  };
}

async function runToEnd(context: QueueContext, request: RunRequest): Promise<RunReport> {
  const runId = await startRun(context, request);
  if (runId === null) throw new Error('the run was not written');
  while ((await runState(context, runId)) === 'running') await pause(20);
  const report = await reportRun(context, runId);
  if (report.state !== 'completed' || report.windows.loaded !== report.windows.total) {
    throw new Error(`run ${runId} is ${report.state}: ${JSON.stringify(report.windows)} ${report.error}`);
  }
  return report;
}

/** The last day of the benchmarks' bhav copies. */
export const LAST_TRADING_DAY = '2025-10-31';

const calendar = loadCalendar();

/** So many trading days of the benchmarks' exchange, the last of them `LAST_TRADING_DAY`. */
export function tradingDaysBefore(count: number, exchange = EXCHANGE): string[] {
  return calendar.lastTradingDays(exchange, LAST_TRADING_DAY, count);
}

/** Requests the bhav copies of these days, once more where they are loaded. */
export function bhavRequest(days: readonly string[], again = false): RunRequest {
  const [from = '', to = ''] = [days[0], days.at(-1)];
  return {
    kind: 'backfill',
    targets: [{ operation: 'GetBhavCopyCM', exchange: EXCHANGE, from, to, refetchFrom: again ? from : null }],
    instruments: [],
    options: {},
    live: false,
  };
}

import { setTimeout as pause } from 'node:timers/promises';
import { loadCalendar } from '../../src/calendar/index.ts';
import { systemClock } from '../../src/core/clock.ts';
import { loadConfig } from '../../src/core/config.ts';
import { createLog } from '../../src/core/log.ts';
import type { QueueContext } from '../../src/jobs/context.ts';
import { runState, startRun } from '../../src/jobs/runs/run-control.ts';
import { openQueues } from '../../src/jobs/worker/queue.ts';
import { openDatabase } from '../../src/load/database/database.ts';
import { migrateDatabase } from '../../src/load/database/migrate.ts';
import { type RunReport, reportRun } from '../../src/load/state/reports.ts';
import type { RunRequest } from '../../src/load/state/run-request.ts';
import { type Helper, startHelper } from './process.ts';

export interface WorkerFigures {
  readonly peakRssBytes: number;
  readonly cpuSeconds: number;
}

/** The pipeline on a database of its own, with one worker in a process of its own. */
export interface BenchPipeline {
  readonly calendar: QueueContext['calendar'];
  /** Runs a request to its end. @throws Error unless every window loaded. */
  run(request: RunRequest): Promise<RunReport>;
  /** Stops the worker and tells what it took. */
  stop(): Promise<WorkerFigures>;
}

/** Migrates, opens the queue on Postgres and starts the worker, with the settings as shipped but for the hourly budget. */
export async function startPipeline(databaseUrl: string, sourcePort: number): Promise<BenchPipeline> {
  const settings = {
    DATABASE_URL: databaseUrl,
    EOD_BASE_URL: `http://127.0.0.1:${sourcePort}`,
    EOD_ACCESS_KEY: 'bench',
    // Above what the benchmarks ask, so that none waits for the next clock hour.
    EOD_CALLS_PER_HOUR: '1000000',
  };
  const config = loadConfig(settings);
  const log = createLog(config);
  const db = openDatabase({ url: databaseUrl, log });
  await migrateDatabase(db);
  const queues = await openQueues({ db, config, log });
  const context = { config, log, db, queues, calendar: loadCalendar(), clock: systemClock };
  const worker = startHelper('worker.ts');
  worker.send(settings);
  await worker.next();
  return {
    calendar: context.calendar,
    run: (request) => runToEnd(context, request),
    async stop() {
      const figures = await stopWorker(worker);
      await queues.close();
      await db.close();
      return figures;
    },
  };
}

async function runToEnd(context: QueueContext, request: RunRequest): Promise<RunReport> {
  const runId = await startRun(context, request);
  if (runId === null) throw new Error('the run was not written');
  while ((await runState(context, runId)) === 'running') await pause(20);
  const report = await reportRun(context.db.drizzle, runId);
  if (report.state !== 'completed' || report.windows.loaded !== report.windows.total) {
    throw new Error(`run ${runId} is ${report.state}: ${JSON.stringify(report.windows)} ${report.error}`);
  }
  return report;
}

async function stopWorker(worker: Helper): Promise<WorkerFigures> {
  worker.send({ stop: true });
  const figures = await worker.next<WorkerFigures>();
  await worker.stop();
  return figures;
}

import { randomBytes } from 'node:crypto';
import { afterEach } from 'vitest';
import { loadCalendar } from '../../src/calendar/index.ts';
import type { Clock } from '../../src/core/clock.ts';
import { loadConfig } from '../../src/core/config.ts';
import { createLog } from '../../src/core/log.ts';
import { createSource } from '../../src/extract/index.ts';
import type { Source } from '../../src/extract/types.ts';
import type { WorkContext } from '../../src/jobs/context.ts';
import { openQueues } from '../../src/jobs/queue.ts';
import { type RunReport, reportRun } from '../../src/jobs/report.ts';
import type { RunRequest } from '../../src/jobs/request.ts';
import { startRun } from '../../src/jobs/runs.ts';
import { type RunningWorker, startWorker } from '../../src/jobs/worker.ts';
import { openDatabase } from '../../src/load/database.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { type Behaviour, type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import { testDatabase } from '../support/database.ts';
import { freePrefix, redisUrl } from '../support/redis.ts';
import { waitFor } from '../support/wait-for.ts';

export type Backend = 'postgres' | 'redis';

/** A clock that showed `start` when it was made and goes on from there. */
export function clockFrom(start: string): Clock {
  const offset = Date.parse(start) - Date.now();
  return { now: () => Date.now() + offset };
}

/** Friday evening, an hour after the data is out, and far from the turn of the hour. */
export const EVENING = '2025-09-12T22:02:00+05:30';

export interface StageOptions {
  readonly behaviour?: Partial<Behaviour>;
  /** Something else than the sandbox to ask. */
  readonly sourceUrl?: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly backend?: Backend;
  readonly clock?: Clock;
  /** Of another stage, which must have been given the same settings where it matters. */
  readonly databaseUrl?: string;
  readonly accessKey?: string;
  readonly prefix?: string;
}

/** A sandbox that misbehaves as told, and all a real worker needs to meet it. */
export interface Stage extends WorkContext {
  readonly sandbox: Sandbox;
  readonly environment: Readonly<Record<string, string>>;
  /** Starts workers; they are stopped after the test. */
  work(workers?: number): Promise<void>;
  /** Plans a run, works on it and waits for its end. */
  run(asked: Asked): Promise<RunReport>;
}

const closing: (() => Promise<unknown>)[] = [];
const workers: RunningWorker[] = [];

afterEach(async () => {
  // The windows in flight of a test that has failed are not waited for.
  await Promise.all(workers.splice(0).map((worker) => worker.stop(500)));
  for (const close of closing.splice(0).reverse()) await close();
});

/** The stage of one test, on a database of its own. Everything is closed after the test. */
export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const clock = options.clock ?? clockFrom(EVENING);
  const sandbox = await startSandbox({
    clock,
    instrumentsPerExchange: 40,
    behaviour: options.behaviour ?? {},
  });
  closing.push(() => sandbox.close());
  const databaseUrl = options.databaseUrl ?? (await testDatabase()).url;
  const environment = {
    EOD_BASE_URL: options.sourceUrl ?? sandbox.url,
    EOD_ACCESS_KEY: options.accessKey ?? `key-${randomBytes(6).toString('hex')}`,
    EOD_QUEUE_PREFIX: options.prefix ?? freePrefix(),
    EOD_CONCURRENCY: '4',
    EOD_STALL_MS: '2000',
    EOD_BACKOFF_MS: '10',
    EOD_NOT_READY_WAIT_MS: '20',
    EOD_LOG_LEVEL: 'silent',
    EOD_HTTP_PORT: '0',
    DATABASE_URL: databaseUrl,
    ...(options.backend === 'redis' ? { REDIS_URL: redisUrl() } : {}),
    ...options.settings,
  };
  const config = loadConfig(environment);
  const log = createLog(config);
  const db = openDatabase({ url: databaseUrl, connections: config.EOD_CONCURRENCY + 3, log });
  closing.push(() => db.close());
  const queues = await openQueues({ databaseUrl, config, log });
  closing.push(() => queues.close());
  const source = sourceOf(environment);
  closing.push(() => source.close());
  const context: WorkContext = { config, log, db, queues, source, calendar: loadCalendar(), clock };
  const work = async (count = 1) => {
    for (let each = 0; each < count; each++) workers.push(await startWorker(context));
  };
  return {
    ...{ ...context, sandbox, environment, work },
    async run(asked) {
      const runId = await start(context, asked);
      await work();
      return ended(context, runId);
    },
  };
}

/** The source as the command line sets it up from these settings. */
export function sourceOf(environment: Readonly<Record<string, string>>): Source {
  const config = loadConfig({ ...environment });
  return createSource({
    ...{ baseUrl: config.EOD_BASE_URL ?? '', accessKey: config.EOD_ACCESS_KEY ?? '' },
    ...{ dateDialect: config.EOD_DATE_DIALECT, dateFormat: config.EOD_DATE_FORMAT },
    ...{ format: config.EOD_FORMAT, timeZone: config.EOD_TIMEZONE, timeoutMs: config.EOD_TIMEOUT_MS },
    maxResponseBytes: config.EOD_MAX_RESPONSE_MB * 1024 * 1024,
    ...{ connections: config.EOD_CONCURRENCY, tlsVerify: config.EOD_TLS_VERIFY },
  });
}

export interface Asked {
  readonly operations: readonly string[];
  readonly from: string;
  readonly to: string;
  /** The operation's own when not given. */
  readonly exchanges?: readonly string[];
  readonly instruments?: readonly string[];
  readonly options?: Readonly<Record<string, string>>;
  /** A scheduled run: its tick. */
  readonly tick?: string;
}

/** What `eod backfill` asks for, or a night when there is a tick. */
export function requestOf(asked: Asked): RunRequest {
  const { from, to } = asked;
  return {
    kind: asked.tick === undefined ? 'backfill' : 'nightly',
    targets: asked.operations.map(operationNamed).flatMap((operation) =>
      (asked.exchanges ?? operation.exchanges).map((exchange) => ({
        ...{ operation: operation.name, exchange, from, to, againFrom: null },
      })),
    ),
    instruments: asked.instruments ?? [],
    options: asked.options ?? {},
    live: false,
  };
}

/** Plans a run and gives its number; nobody works on it yet. */
export async function start(context: WorkContext, asked: Asked): Promise<number> {
  const options = asked.tick === undefined ? {} : { tick: asked.tick, requestedBy: 'schedule' };
  const runId = await startRun(context, requestOf(asked), options);
  if (runId === null) throw new Error('a run of this tick exists');
  return runId;
}

/** Waits for the end of a run. */
export function ended(
  { db }: Pick<WorkContext, 'db'>,
  runId: number,
  timeoutMs = 40_000,
): Promise<RunReport> {
  return waitFor(
    async () => {
      const report = await reportRun(db.pool, runId);
      return report.state === 'running' ? null : report;
    },
    { what: `the end of run ${runId}`, timeoutMs, everyMs: 40 },
  );
}

export interface WindowRow {
  readonly id: number;
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  readonly instruments: readonly string[];
  readonly state: string;
  readonly attempts: number;
  readonly requests: number;
  readonly fetched: number;
  readonly rejected: number;
  readonly parent: number | null;
  readonly error: string | null;
  readonly diagnostic: string | null;
}

/** The windows of a run in the order they were made. */
export async function windowsOf({ db }: Pick<WorkContext, 'db'>, runId: number): Promise<WindowRow[]> {
  const found = await db.pool.query<WindowRow>(
    `select id::int, operation, exchange, to_char(from_date, 'YYYY-MM-DD') as "from",
       to_char(to_date, 'YYYY-MM-DD') as "to", instruments, state, attempts, requests, fetched::int, rejected::int,
       parent_id::int as parent, error, diagnostic
     from etl.windows where run_id = $1 order by id`,
    [runId],
  );
  return found.rows;
}

export interface CoverageRow {
  readonly operation: string;
  readonly exchange: string;
  readonly day: string;
  readonly instrument: string;
  readonly state: string;
  readonly records: number;
  readonly diagnostic: string | null;
}

/** All coverage there is, in key order. */
export async function coverageRows({ db }: Pick<WorkContext, 'db'>): Promise<CoverageRow[]> {
  const found = await db.pool.query<CoverageRow>(
    `select operation, exchange, to_char(day, 'YYYY-MM-DD') as day, instrument, state, records::int, diagnostic
       from etl.coverage order by operation, exchange, day, instrument, part`,
  );
  return found.rows;
}

/** How many there are of each: `tally(['a', 'b', 'a'])` is `{a: 2, b: 1}`. */
export function tally(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

/** What must hold after any run, whatever happened in it. */
export async function accountsOf(stage: Stage, report: RunReport): Promise<void> {
  const { windows } = report;
  const ends = windows.loaded + windows.empty + windows.skipped + windows.blocked + windows.failed;
  if (ends + windows.cancelled !== windows.total || windows.open !== 0) {
    throw new Error(`windows do not add up: ${JSON.stringify(windows)}`);
  }
  const records = report.inserted + report.updated + report.unchanged + report.stale + report.duplicate;
  if (report.fetched !== records + report.rejected) throw new Error('records do not add up');
  const { requests } = stage.sandbox.stats();
  if (report.requests !== requests) throw new Error(`${report.requests} counted, ${requests} received`);
}

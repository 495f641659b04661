import { loadCalendar } from '../../src/calendar/calendar.ts';
import { type Clock, clockOf } from '../../src/core/clock.ts';
import { loadConfig } from '../../src/core/config.ts';
import { createLog } from '../../src/core/log.ts';
import { createSource } from '../../src/extract/index.ts';
import type { QueueContext, WorkContext } from '../../src/jobs/context.ts';
import { openQueues } from '../../src/jobs/queue/queue.ts';
import { startRun } from '../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { defaultOperations } from '../../src/operations/index.ts';
import { operationNamed, tables } from '../../src/operations/registry.ts';
import { DEFAULT_TIMEOUTS, openDatabase } from '../../src/postgres/database.ts';
import { transaction } from '../../src/postgres/transaction.ts';
import type { SandboxOptions } from '../../src/sandbox/index.ts';
import { writeExpectations } from '../../src/state/coverage/completeness.ts';
import type { RunRequest } from '../../src/state/request.ts';
import { type RunReport, reportRun } from '../../src/state/runs/reports.ts';
import { closeAfterFile } from './closing.ts';
import { testDatabase } from './database.ts';
import { isSlowLayer } from './layer.ts';
import { freePrefix, redisUrl } from './redis.ts';
import { openSandbox } from './sandbox.ts';
import { QUEUE_PREFIX } from './template.ts';
import { waitFor } from './wait-for.ts';

export type Backend = 'postgres' | 'redis';

/** Both homes of the queue: what a worker does must not depend on which it is. */
export const backends: readonly Backend[] = ['postgres', 'redis'];

/**
 * For tests of what the source, the key or the clock does to a worker: the queue has little to do with it, so that one
 * is enough each time. The slow layer runs them on both.
 */
export const mostly = (backend: Backend): readonly Backend[] => (isSlowLayer ? backends : [backend]);

/** An address at which nobody responds. */
const NOBODY = 'http://127.0.0.1:9';

export interface PipelineOptions {
  /** A database that is there; a new one when not given. */
  readonly databaseUrl?: string;
  /** The source; where neither this nor a sandbox is given, an address at which nobody responds. */
  readonly sourceUrl?: string;
  /** A sandbox of its own to ask, at the same time of day if it is given no other. */
  readonly sandbox?: SandboxOptions;
  /** Postgres when not given. */
  readonly backend?: Backend;
  /** Of another pipeline, to share its queue; a new one when not given. */
  readonly prefix?: string;
  readonly clock?: Clock;
  /** Settings beside those that make a test quick. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface Pipeline extends WorkContext {
  /** The settings as an environment, for `eod` processes that work on the same queue. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** All a worker needs, on real servers; closed after the file's last test if not before. */
export async function openPipeline(options: PipelineOptions): Promise<Pipeline> {
  const { backend = 'postgres' } = options;
  const sourceUrl = options.sourceUrl ?? (await sandboxUrl(options)) ?? NOBODY;
  const url = options.databaseUrl ?? (await testDatabase()).url;
  // Of a new database the first queue has its tables already.
  const isFirst = options.databaseUrl === undefined && backend === 'postgres';
  const environment: Record<string, string> = {
    EOD_BASE_URL: sourceUrl,
    EOD_ACCESS_KEY: 'a key for tests',
    EOD_QUEUE_PREFIX: options.prefix ?? (isFirst ? QUEUE_PREFIX : freePrefix()),
    EOD_CONCURRENCY: '3',
    // Tests of the budget set their own.
    EOD_CALLS_PER_HOUR: '1000000',
    EOD_STALL_MS: '5000',
    EOD_BACKOFF_MS: '10',
    EOD_NOT_READY_WAIT_MS: '20',
    EOD_LOG_LEVEL: 'silent',
    EOD_HTTP_PORT: '0',
    // Hours of calls are pruned by the time of Postgres, and clocks of tests show an earlier year.
    EOD_KEEP_RUNS_DAYS: '3650',
    DATABASE_URL: url,
    ...(backend === 'redis' ? { REDIS_URL: redisUrl() } : {}),
    ...options.settings,
  };
  const config = loadConfig(environment);
  const log = createLog(config);
  const db = openDatabase({
    url,
    connections: 2 * config.EOD_CONCURRENCY + 3,
    log,
    timeouts: { ...DEFAULT_TIMEOUTS, lockMs: config.EOD_LOCK_TIMEOUT_MS },
  });
  await writeExpectations(db.drizzle, config);
  const queues = await openQueues({ db, config, log });
  const source = createSource(
    {
      baseUrl: sourceUrl,
      accessKey: config.EOD_ACCESS_KEY ?? '',
      dateDialect: config.EOD_DATE_DIALECT,
      dateFormat: config.EOD_DATE_FORMAT,
      format: config.EOD_FORMAT,
      timeZone: config.EOD_TIMEZONE,
      timeoutMs: config.EOD_TIMEOUT_MS,
      maxResponseBytes: config.EOD_MAX_RESPONSE_MB * 1024 * 1024,
      connections: config.EOD_CONCURRENCY,
      tlsVerify: config.EOD_TLS_VERIFY,
      proxies: config,
    },
    log,
    options.clock,
  );
  let open = true;
  const pipeline: Pipeline = {
    config,
    log,
    db,
    queues,
    source,
    environment,
    calendar: loadCalendar(),
    clock: clockOf(config, options.clock),
    async close() {
      if (!open) return;
      open = false;
      await source.close();
      await queues.close();
      await db.close();
    },
  };
  closeAfterFile(pipeline.close);
  return pipeline;
}

async function sandboxUrl({ sandbox, clock }: PipelineOptions): Promise<string | undefined> {
  if (sandbox === undefined) return undefined;
  return (await openSandbox({ ...(clock === undefined ? {} : { clock }), ...sandbox })).url;
}

export interface BackfillOptions {
  readonly from: string;
  readonly to: string;
  /** Names; all when not given. */
  readonly operations?: readonly string[];
  /** Requested of these where the operation knows them; its own when not given. */
  readonly exchanges?: readonly string[];
  readonly instruments?: readonly string[];
  readonly options?: Readonly<Record<string, string>>;
  readonly force?: boolean;
}

/** What `eod backfill` requests. */
export function backfill({ from, to, ...options }: BackfillOptions): RunRequest {
  const chosen = options.operations?.map(operationNamed) ?? defaultOperations;
  return {
    kind: 'backfill',
    targets: chosen.flatMap((operation) =>
      (options.exchanges ?? operation.exchanges).map((exchange) => ({
        operation: operation.name,
        exchange,
        from,
        to,
        refetchFrom: options.force === true ? from : null,
      })),
    ),
    instruments: options.instruments ?? [],
    options: options.options ?? {},
    live: false,
  };
}

/** Starts a run and gives its number. */
export async function start(context: QueueContext, request: RunRequest): Promise<number> {
  const runId = await startRun(context, request);
  if (runId === null) throw new Error('a run of the same tick exists already');
  return runId;
}

/** Waits until a run has ended, no matter who works on it. */
export async function ended(context: QueueContext, runId: number, timeoutMs = 40_000): Promise<RunReport> {
  return waitFor(
    async () => {
      const report = await reportRun(context, runId);
      return report.state === 'running' ? null : report;
    },
    { what: `the end of run ${runId}`, everyMs: 50, timeoutMs },
  );
}

/** Waits until the queue has no job. That of a window is removed a moment after the window, and its run, has ended. */
export async function queueEmpty({ queues }: QueueContext): Promise<void> {
  const isEmpty = async () => {
    const counts = await Promise.all(Object.values(queues.windows).map((queue) => queue.getJobCounts()));
    return counts.every((states) => Object.values(states).every((count) => count === 0));
  };
  await waitFor(isEmpty, { what: 'the end of all jobs' });
}

/** Runs a request to its end with one worker. */
export async function runToEnd(context: WorkContext, request: RunRequest): Promise<RunReport> {
  return workToEnd(context, await start(context, request));
}

/** Works on a run that was started, to its end, with one worker. */
export async function workToEnd(context: WorkContext, runId: number): Promise<RunReport> {
  const worker = await startWorker(context);
  try {
    return await ended(context, runId);
  } finally {
    await worker.stop();
  }
}

/** The record counts of a run, without what differs between two runs of the same work. */
export function countsOf(report: RunReport) {
  const { windows, fetched, inserted, updated, unchanged, stale, duplicate, rejected, withdrawn } = report;
  return { windows, fetched, inserted, updated, unchanged, stale, duplicate, rejected, withdrawn };
}

/** Rows and a checksum of all data columns (not the load audit) of every market table, and of the views made of them. */
export async function marketContents({ db }: Pick<WorkContext, 'db'>): Promise<Record<string, Contents>> {
  const sources = tables.map(({ name, fields }) => ({
    name,
    columns: fields.map((field) => `"${field.column}"`).join(', '),
  }));
  for (const name of ['instruments', 'instrument_aliases']) sources.push({ name, columns: '*' });
  return transaction(db, async ({ client }) => {
    await client.query("set local timezone to 'UTC'");
    const contents: Record<string, Contents> = {};
    for (const { name, columns } of sources) {
      const result = await client.query<Contents>(
        `select count(*)::int as rows, md5(string_agg(r::text, '|' order by r::text collate "C")) as sum
           from (select ${columns} from market.${name}) r`,
      );
      contents[name] = result.rows[0] ?? { rows: 0, sum: null };
    }
    return contents;
  });
}

interface Contents {
  readonly rows: number;
  readonly sum: string | null;
}

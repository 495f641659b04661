import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, Queue, WorkerOptions } from 'bullmq';
import pg from 'pg';
import type { Config } from '../../core/config.ts';
import { errorCode, usageError } from '../../core/errors.ts';
import type { Logger } from '../../core/log.ts';
import { DISCONNECT_WITHIN_MS, endsWithin } from '../../core/waits.ts';
import { type Database, setUpSession } from '../../postgres/database.ts';
import { databaseId } from '../../state/database-identity.ts';
import type { RunKind } from '../../state/request.ts';
import { type Processor, type TickJob, type WindowJob, withRestoredData } from './job-ids.ts';

export type { TickJob, WindowJob } from './job-ids.ts';

export type WorkerSettings = Omit<WorkerOptions, 'connection' | 'prefix'>;

/** The part of BullMQ's Worker that we use. */
interface JobWorker {
  close(force?: boolean): Promise<void>;
}

/**
 * Is called when a job has ended and is no longer in the queue, with what its processor has returned; with undefined if
 * that has failed.
 */
type OnEnd<Data> = (data: Data, outcome: unknown) => void;

/** States of jobs that are still to be worked on. */
const QUEUED = ['active', 'wait', 'delayed', 'prioritized'] as const;

/** True if a job in this state is still to be worked on. BullMQ calls a job `waiting` whose list is `wait`. */
export const isQueued = (state: string): boolean =>
  state === 'waiting' || QUEUED.some((queued) => queued === state);

/** The ids of all jobs in a queue that are still to be worked on. */
export async function queuedIds(queue: Pick<Queue, 'getRanges'>): Promise<ReadonlySet<string>> {
  return new Set(await queue.getRanges([...QUEUED], 0, -1));
}

/** How many jobs in a queue are still to be worked on. */
export async function countQueued(queue: Pick<Queue, 'getJobCounts'>): Promise<number> {
  const [active, wait, delayed, prioritized] = QUEUED;
  const counts = await queue.getJobCounts(active, wait, delayed, prioritized);
  return Object.values(counts).reduce((sum, jobs) => sum + jobs, 0);
}

/** Nightly runs and backfills have a queue each, so that one can wait for the next hour while the other works. */
export const WINDOW_QUEUES = ['nightly', 'backfill'] as const;
export type WindowQueue = (typeof WINDOW_QUEUES)[number];

/** The queue of a run's windows: that of backfills for all but nightly runs. */
export function chooseQueue(kind: RunKind): WindowQueue {
  return kind === 'nightly' ? 'nightly' : 'backfill';
}

/** The queues, on Redis or on Postgres. */
export interface Queues {
  readonly windows: Readonly<Record<WindowQueue, Queue<WindowJob>>>;
  readonly ticks: Queue<TickJob>;
  /**
   * Calls `listener` whenever the queue's server can be reached again: it may have lost all jobs.
   *
   * @returns a function that ends this.
   */
  onReconnect(listener: () => void): () => void;
  work<Data>(
    queue: WindowQueue | 'ticks',
    processor: Processor<Data>,
    settings: WorkerSettings,
    onEnd?: OnEnd<Data>,
  ): JobWorker;
  close(): Promise<void>;
}

interface QueueSettings {
  readonly db: Database;
  readonly config: Pick<Config, 'REDIS_URL' | 'EOD_QUEUE_PREFIX'>;
  readonly log: Logger;
}

/**
 * Opens the queues: on Redis under `<prefix>:<id of the database>` if REDIS_URL is set, otherwise in the schema
 * `<prefix>_queue` of the database. Lost jobs do no harm: they are enqueued again from the stored windows. BullMQ is
 * imported only here, because that takes half of the time of a command that only reads.
 *
 * @throws PipelineError `usage` if the queue's tables in the database are missing and may not be created.
 */
export async function openQueues(settings: QueueSettings): Promise<Queues> {
  // The queue may be in Postgres too, so it is opened with the same retry.
  return settings.db.withRetry(async ({ drizzle }) => openOnce(settings, await databaseId(drizzle)));
}

async function openOnce(settings: QueueSettings, databaseId: string): Promise<Queues> {
  const { config, log } = settings;
  const { REDIS_URL } = config;
  const { UnrecoverableError } = await import('bullmq');
  const errors = errorLogger(log);
  const server =
    REDIS_URL === undefined
      ? await postgresServer(settings, errors)
      : await redisServer(settings, errors, databaseId, REDIS_URL);
  const windows = {
    nightly: server.open<WindowJob>('nightly'),
    backfill: server.open<WindowJob>('backfill'),
  };
  const ticks = server.open<TickJob>('ticks');
  const all: readonly Queue[] = [windows.nightly, windows.backfill, ticks];
  async function close(): Promise<void> {
    errors.mute();
    await endsWithin(Promise.all(all.map((queue) => queue.close())), DISCONNECT_WITHIN_MS);
    server.disconnect();
  }
  try {
    for (const queue of all) await errors.listen(queue).waitUntilReady();
  } catch (error) {
    // The caller may try again, so no connection may be left open.
    await close().catch(() => undefined);
    throw error;
  }
  return {
    windows,
    ticks,
    onReconnect: server.onReconnect,
    work: (name, processor, options, onEnd) =>
      server.work(name, withRestoredData(log, processor, UnrecoverableError), options, onEnd),
    close,
  };
}

/**
 * A client whose `error` events are ignored. While BullMQ prepares its schema it does not listen to them, and a broken
 * connection would end the process. The failed statement reports the same error.
 */
class QuietClient extends pg.Client {
  constructor(options?: pg.ClientConfig) {
    super(options);
    this.on('error', () => undefined);
  }
}

type MigrationClient = Parameters<typeof import('bullmq').runMigrations>[0];

/**
 * Creates the queue's tables in the database, or updates them to this version of BullMQ. If they are up to date,
 * nothing is written, and the role only needs the right to read and write rows.
 *
 * @throws PipelineError `usage` if the tables have to be changed and the role has no right to do so.
 */
export function prepareQueueTables({ db, config }: Pick<QueueSettings, 'db' | 'config'>): Promise<void> {
  return db.withRetry(({ pool }) => prepareTables(pool, config));
}

async function stateOfTables(client: pg.PoolClient, schema: string) {
  const { assertSchemaCompatibility, LATEST_SCHEMA_VERSION } = await import('bullmq');
  const { rows } = await client.query<{ schema: boolean; tables: boolean }>(
    "select to_regnamespace($1) is not null as schema, to_regclass($1 || '.migration') is not null as tables",
    [schema],
  );
  const row = rows[0];
  if (row?.tables !== true) return { hasSchema: row?.schema === true, tables: 'missing' as const };
  const isCurrent = (await assertSchemaCompatibility(client, schema)) >= LATEST_SCHEMA_VERSION;
  return { hasSchema: true, tables: isCurrent ? ('current' as const) : ('behind' as const) };
}

async function prepareTables(pool: pg.Pool, config: QueueSettings['config']): Promise<void> {
  const { runMigrations } = await import('bullmq');
  const schema = queueSchema(config);
  const client = await pool.connect();
  try {
    const { hasSchema, tables } = await stateOfTables(client, schema);
    if (tables === 'current') return client.release();
    // Even if the schema exists, Postgres refuses CREATE SCHEMA IF NOT EXISTS to roles that may not create schemas.
    const query = async (text: string, values?: unknown[]) =>
      hasSchema && text.startsWith('CREATE SCHEMA') ? undefined : client.query(text, values);
    // BullMQ only uses `query` of the client.
    await runMigrations({ query } as unknown as MigrationClient, schema);
    // Creates the sequences of job ids now; otherwise the first job of each queue would, which needs more rights.
    for (const name of [...WINDOW_QUEUES, 'ticks']) {
      await client.query(`select "${schema}".next_job_id($1)`, [name]);
    }
    client.release();
  } catch (error) {
    client.release(true);
    if (errorCode(error) !== '42501') throw error;
    throw usageError(
      `the tables of the queue (schema ${schema}) are missing or of an older version, and this role may not change that`,
      'migrate',
    );
  }
}

/**
 * BullMQ sends its schema in the startup parameter `options`, which pgbouncer refuses. Empty options in the address
 * override that; the schema is set when the session has begun.
 */
function withoutStartupOptions(url: string): string {
  if (new URL(url).searchParams.has('options')) return url;
  return `${url}${url.includes('?') ? '&' : '?'}options=`;
}

/** The schema of a queue in Postgres. */
export const queueSchema = ({ EOD_QUEUE_PREFIX }: Pick<Config, 'EOD_QUEUE_PREFIX'>) =>
  `${EOD_QUEUE_PREFIX}_queue`;

/** What BullMQ has on each of the two servers. */
interface QueueServer extends Pick<Queues, 'work' | 'onReconnect'> {
  /** A queue that connects. */
  open<Data>(name: string): Queue<Data>;
  /** Ends what the queues share. */
  disconnect(): void;
}

type ErrorLogger = ReturnType<typeof errorLogger>;

async function postgresServer({ db, config }: QueueSettings, errors: ErrorLogger): Promise<QueueServer> {
  const { createPostgresBackend, withBackend } = await import('bullmq');
  const { Queue: PostgresQueue, Worker } = withBackend(createPostgresBackend);
  await prepareTables(db.withoutRetry.pool, config);
  const connection = (max: number) => ({
    connectionString: withoutStartupOptions(db.url),
    schema: queueSchema(config),
    application_name: 'eod queue',
    onConnect: async (client: pg.ClientBase) => {
      await setUpSession(client, db.timeouts);
      await client.query(`set search_path to "${queueSchema(config)}"`);
    },
    max,
    Client: QuietClient,
  });
  return {
    // The type of the backend, in which these queues differ, is not needed.
    open: <Data>(name: string) =>
      new PostgresQueue<Data>(name, { connection: connection(1) }) as unknown as Queue<Data>,
    work: (name, processor, settings, onEnd) =>
      startReconnectingWorker(() => {
        const options = { ...settings, connection: connection(2), autorun: false };
        return reportEnds(errors.listen(new Worker(name, processor, options)), onEnd);
      }),
    // Jobs in Postgres cannot be lost without their windows.
    onReconnect: () => () => undefined,
    disconnect: () => undefined,
  };
}

async function redisServer(
  { config }: QueueSettings,
  errors: ErrorLogger,
  databaseId: string,
  url: string,
): Promise<QueueServer> {
  const [{ Queue, Worker }, { Redis }] = await Promise.all([import('bullmq'), import('ioredis')]);
  // BullMQ requires null, so that its blocking calls wait for a reconnect however long it takes.
  const connection = new Redis(url, { maxRetriesPerRequest: null, connectionName: 'eod' });
  errors.listen(connection);
  const options = { connection, prefix: `${config.EOD_QUEUE_PREFIX}:${databaseId}` };
  return {
    open: <Data>(name: string) => new Queue<Data>(name, options),
    work: (name, processor, settings, onEnd) =>
      reportEnds(errors.listen(new Worker(name, processor, { ...settings, ...options })), onEnd),
    onReconnect(listener) {
      connection.on('ready', listener);
      return () => void connection.off('ready', listener);
    },
    disconnect: () => connection.disconnect(),
  };
}

/** What a worker of BullMQ says when it has removed a job. */
interface Ending<Data> {
  on(event: 'completed', listener: (job: Job<Data>, outcome: unknown) => void): unknown;
  on(event: 'failed', listener: (job: Job<Data> | undefined) => void): unknown;
}

function reportEnds<Data, W extends Ending<Data>>(worker: W, onEnd: OnEnd<Data> | undefined): W {
  if (onEnd === undefined) return worker;
  worker.on('completed', (job, outcome) => onEnd(job.data, outcome));
  worker.on('failed', (job) => job !== undefined && onEnd(job.data, undefined));
  return worker;
}

/** Pause before a worker that could not connect is created again. */
const RECONNECT_MS = 1_000;

/** How long closing a worker waits for its first connection. */
const CONNECTING_MS = 5_000;

/** The part of a BullMQ worker, created with `autorun: false`, that is used here. */
interface Startable extends JobWorker {
  waitUntilReady(): Promise<unknown>;
  run(): Promise<unknown>;
  emit(event: 'error', error: Error): boolean;
}

/**
 * Starts a worker on Postgres, creating it anew until its first connection succeeds. BullMQ keeps the error of a failed
 * first connection: a running worker would meet it again and again, in a loop that blocks the process.
 */
function startReconnectingWorker(create: () => Startable): JobWorker {
  let worker = create();
  const closing = new AbortController();

  async function start(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await worker.waitUntilReady();
        if (!closing.signal.aborted) await worker.run();
        return;
      } catch (error) {
        worker.emit('error', error as Error);
      }
      await sleep(RECONNECT_MS, undefined, { signal: closing.signal }).catch(() => undefined);
      if (closing.signal.aborted) return;
      // Not awaited, because the worker has no job.
      void worker.close(true).catch(() => undefined);
      worker = create();
    }
  }

  void start();
  return {
    async close(force) {
      closing.abort();
      // Otherwise BullMQ would leave open the connection for notifications that it is about to make.
      await endsWithin(worker.waitUntilReady(), CONNECTING_MS).catch(() => undefined);
      return worker.close(force);
    },
  };
}

/** For this long the same error is not logged again. */
const REPEAT_MS = 5_000;

/**
 * Logs errors of connections; without a listener they would end the process. The drivers reconnect automatically. After
 * `mute` nothing is logged, because the server may stop while the queues are being closed.
 */
function errorLogger(log: Logger) {
  let closing = false;
  let last = { message: '', at: 0 };
  return {
    listen<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(emitter: T): T {
      emitter.on('error', (error) => {
        const { message } = error;
        const at = Date.now();
        // While a server cannot be reached, BullMQ tries many times a second and reports each failure.
        if (closing || (message === last.message && at - last.at < REPEAT_MS)) return;
        last = { message, at };
        // Of BullMQ's own errors, those about a job or its lock that is gone: its window is in the database.
        const isAboutJob =
          'code' in error ? typeof error.code === 'number' : /^could not renew/.test(message);
        if (isAboutJob) log.info({ reason: message }, 'the queue lost a job that was worked on');
        else log.warn({ err: error }, 'queue connection');
      });
      return emitter;
    },
    mute() {
      closing = true;
    },
  };
}

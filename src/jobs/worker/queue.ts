import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, JobSchedulerJson, JobsOptions, Telemetry, WorkerOptions } from 'bullmq';
import pg from 'pg';
import type { Config } from '../../core/config.ts';
import { usageError } from '../../core/errors.ts';
import type { Logger } from '../../core/log.ts';
import { type Database, setUpSession } from '../../load/database/database.ts';
import { databaseId } from '../../load/state/database-identity.ts';
import type { RunKind } from '../../load/state/run-request.ts';

/** What every job names: the database (its id) whose work it is. A worker of another one refuses it. */
interface DatabaseJob {
  readonly database: string;
}

/** A job names its window and carries nothing else: the database is the truth, and no secret travels. */
export interface WindowJob extends DatabaseJob {
  readonly runId: number;
  readonly windowId: number;
}

/** A tick of a schedule: plan the nightly run of one operation and exchange. */
export interface TickJob extends DatabaseJob {
  readonly operation: string;
  readonly exchange: string;
}

export interface NewJob<Data> {
  readonly name: string;
  readonly data: Data;
  readonly opts: JobsOptions;
}

/** What we use of BullMQ's Queue; the same on both backends. */
export interface JobQueue<Data> {
  addBulk(jobs: NewJob<Data>[]): Promise<unknown>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  isPaused(): Promise<boolean>;
  rateLimit(milliseconds: number): Promise<void>;
  /** Ends what `rateLimit` began. */
  removeRateLimitKey(): Promise<unknown>;
  getJobCounts(): Promise<Record<string, number>>;
  upsertJobScheduler(
    id: string,
    repeat: { pattern: string; tz: string },
    template: { name: string; data: Data; opts: JobsOptions },
  ): Promise<unknown>;
  getJobSchedulers(): Promise<JobSchedulerJson<Data>[]>;
  removeJobScheduler(id: string): Promise<boolean>;
}

export type WorkerSettings = Pick<
  WorkerOptions,
  | 'concurrency'
  | 'lockDuration'
  | 'stalledInterval'
  | 'maxStalledCount'
  | 'limiter'
  | 'runRetryDelay'
  | 'settings'
  | 'name'
>;

/** What we use of BullMQ's Worker. */
export interface JobWorker {
  close(force?: boolean): Promise<void>;
}

type Processor<Data> = (job: Job<Data>, token?: string) => Promise<void>;

/** Nightly runs and backfills have a queue each, so that one can wait for the clock hour while the other goes on. */
export const WINDOW_QUEUES = ['nightly', 'backfill'] as const;
export type WindowQueue = (typeof WINDOW_QUEUES)[number];

/** The queue of a run's windows: all but nightly runs wait with the backfills. */
export function queueOf(kind: RunKind): WindowQueue {
  return kind === 'nightly' ? 'nightly' : 'backfill';
}

/** A queue of BullMQ, whichever backend it has. */
type ShownQueue = import('bullmq').Queue;

/** The queue, on Redis or on Postgres. Nothing outside this file knows which. */
export interface Queues {
  readonly backend: 'redis' | 'postgres';
  /** Id of the database whose queues these are. */
  readonly databaseId: string;
  readonly windows: Readonly<Record<WindowQueue, JobQueue<WindowJob>>>;
  readonly ticks: JobQueue<TickJob>;
  /** All of them as BullMQ knows them, for a board that shows their jobs. */
  readonly shown: readonly ShownQueue[];
  /** No worker anywhere starts another window until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /**
   * Calls back whenever the queue's server is there again: it may have forgotten everything.
   *
   * @returns a function that ends this.
   */
  onReturn(listener: () => void): () => void;
  work<Data extends DatabaseJob>(
    queue: WindowQueue | 'ticks',
    processor: Processor<Data>,
    settings: WorkerSettings,
  ): JobWorker;
  close(): Promise<void>;
}

interface QueueSettings {
  readonly db: Database;
  readonly config: Pick<Config, 'REDIS_URL' | 'EOD_QUEUE_PREFIX'>;
  readonly log: Logger;
  /** Where BullMQ tells what it does, for traces. */
  readonly telemetry?: Telemetry | undefined;
}

/**
 * Opens the queues: on Redis under `<prefix>:<id of the database>` where REDIS_URL is set, else in the schema
 * `<prefix>_queue` of the database.
 * Either is disposable: what is lost there is enqueued again from the stored windows. BullMQ is loaded only
 * now, because loading it takes half of the time of a command that only reads.
 */
export async function openQueues(settings: QueueSettings): Promise<Queues> {
  const { db, config } = settings;
  const { REDIS_URL } = config;
  // The queue may be in Postgres too, and is then as far away as that.
  return db.withRetry(async ({ drizzle }) => {
    const id = await databaseId(drizzle);
    return REDIS_URL === undefined ? onPostgres(settings, id) : onRedis(settings, id, REDIS_URL);
  });
}

/** A processor that fails jobs of another database, for good: their windows are not ours. */
function refusingOthers<Data extends DatabaseJob>(
  databaseId: string,
  log: Logger,
  processor: Processor<Data>,
  refusal: new (message: string) => Error,
): Processor<Data> {
  return async (job, token) => {
    if (job.data.database === databaseId) return processor(job, token);
    log.error(
      { job: job.id, ofDatabase: job.data.database, databaseId },
      'refused a job of another database',
    );
    throw new refusal(`a job of database ${job.data.database}; this is ${databaseId}`);
  };
}

/**
 * While BullMQ prepares its schema, nothing listens to the connection it holds, and one that broke then
 * would end the process. The statement that fails reports the same error.
 */
class ListenedClient extends pg.Client {
  constructor(options?: pg.ClientConfig) {
    super(options);
    this.on('error', () => undefined);
  }
}

/** What is used of a connection to create the queue's tables. */
type MigrationClient = Parameters<typeof import('bullmq').runMigrations>[0];

/**
 * Creates the queue's tables in the database, or brings them up to this version of BullMQ. Where they are up to
 * date nothing is written, and reading and writing rows is all a role needs.
 *
 * @throws PipelineError `usage` when that is needed and this role may not.
 */
export function prepareQueueTables({ db, config }: Pick<QueueSettings, 'db' | 'config'>): Promise<void> {
  return db.withRetry(({ pool }) => prepareTables(pool, config));
}

/** Are the queue's tables in the database there, and of this version of BullMQ or a newer one? Changes nothing. */
export async function queueTablesState(
  { pool }: Database,
  config: Pick<Config, 'EOD_QUEUE_PREFIX'>,
): Promise<'missing' | 'behind' | 'current'> {
  const client = await pool.connect();
  try {
    return (await stateOfTables(client, queueSchema(config))).tables;
  } finally {
    client.release();
  }
}

async function stateOfTables(client: pg.PoolClient, schema: string) {
  const { assertSchemaCompatibility, LATEST_SCHEMA_VERSION } = await import('bullmq');
  const { rows } = await client.query<{ schema: boolean; tables: boolean }>(
    "select to_regnamespace($1) is not null as schema, to_regclass($1 || '.migration') is not null as tables",
    [schema],
  );
  const found = rows[0];
  if (found?.tables !== true) return { hasSchema: found?.schema === true, tables: 'missing' as const };
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
    // Asked to create a schema that is there, Postgres refuses whoever may not create schemas.
    const query = async (text: string, values?: unknown[]) =>
      hasSchema && text.startsWith('CREATE SCHEMA') ? undefined : client.query(text, values);
    // Nothing but `query` is used of the client.
    await runMigrations({ query } as unknown as MigrationClient, schema);
    // The first job of a queue would create its sequence.
    for (const name of [...WINDOW_QUEUES, 'ticks']) {
      await client.query(`select "${schema}".next_job_id($1)`, [name]);
    }
    client.release();
  } catch (error) {
    client.release(true);
    if ((error as { code?: unknown }).code !== '42501') throw error;
    throw usageError(
      `the tables of the queue (schema ${schema}) are missing or of an older version, and this role may not change that`,
      'migrate',
    );
  }
}

/**
 * BullMQ names its schema in the startup parameter `options`, which pgbouncer refuses. What the address says wins
 * over that, and the schema is set once the session is there.
 */
function withoutStartupOptions(url: string): string {
  if (new URL(url).searchParams.has('options')) return url;
  return `${url}${url.includes('?') ? '&' : '?'}options=`;
}

/** Connections of one process to a queue in Postgres, about: one of each queue, and those of its workers. */
export const QUEUE_CONNECTIONS = 10;

/** The schema of a queue in Postgres. */
export const queueSchema = ({ EOD_QUEUE_PREFIX }: Pick<Config, 'EOD_QUEUE_PREFIX'>) =>
  `${EOD_QUEUE_PREFIX}_queue`;

async function onPostgres(
  { db, config, log, telemetry }: QueueSettings,
  databaseId: string,
): Promise<Queues> {
  const traced = telemetry === undefined ? {} : { telemetry };
  const errors = errorLogger(log);
  const { createPostgresBackend, UnrecoverableError, withBackend } = await import('bullmq');
  const { Queue, Worker } = withBackend(createPostgresBackend);
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
    Client: ListenedClient,
  });
  const queues = {
    nightly: new Queue<WindowJob>('nightly', { connection: connection(1), ...traced }),
    backfill: new Queue<WindowJob>('backfill', { connection: connection(1), ...traced }),
    ticks: new Queue<TickJob>('ticks', { connection: connection(1), ...traced }),
  };
  try {
    for (const queue of Object.values(queues)) await errors.listen(queue).waitUntilReady();
  } catch (error) {
    // So that they can be opened again: what was opened must not stay behind.
    errors.mute();
    await Promise.allSettled(Object.values(queues).map((queue) => queue.close()));
    throw error;
  }
  return {
    backend: 'postgres',
    databaseId,
    // BullMQ types the backend as well; whoever shows jobs does not ask for it.
    shown: Object.values(queues) as unknown as ShownQueue[],
    ...joinQueues(queues, db),
    // Jobs are as safe there as their windows.
    onReturn: () => () => undefined,
    work(name, processor, options) {
      const own = refusingOthers(databaseId, log, processor, UnrecoverableError);
      return startReconnectingWorker(() =>
        errors.listen(
          new Worker(name, own, { ...options, ...traced, connection: connection(2), autorun: false }),
        ),
      );
    },
    async close() {
      errors.mute();
      await Promise.all(Object.values(queues).map((queue) => queue.close()));
    },
  };
}

async function onRedis(
  { db, config, log, telemetry }: QueueSettings,
  databaseId: string,
  url: string,
): Promise<Queues> {
  const [{ Queue, UnrecoverableError, Worker }, { Redis }] = await Promise.all([
    import('bullmq'),
    import('ioredis'),
  ]);
  const errors = errorLogger(log);
  // BullMQ asks for null: its blocking calls must wait for a reconnect, however long it takes.
  const connection = new Redis(url, { maxRetriesPerRequest: null, connectionName: 'eod' });
  errors.listen(connection);
  const traced = telemetry === undefined ? {} : { telemetry };
  const options = { connection, prefix: `${config.EOD_QUEUE_PREFIX}:${databaseId}`, ...traced };
  const queues = {
    nightly: new Queue<WindowJob>('nightly', options),
    backfill: new Queue<WindowJob>('backfill', options),
    ticks: new Queue<TickJob>('ticks', options),
  };
  for (const queue of Object.values(queues)) await errors.listen(queue).waitUntilReady();
  return {
    backend: 'redis',
    databaseId,
    shown: Object.values(queues),
    ...joinQueues(queues, db),
    onReturn(listener) {
      connection.on('ready', listener);
      return () => void connection.off('ready', listener);
    },
    work(name, processor, settings) {
      const own = refusingOthers(databaseId, log, processor, UnrecoverableError);
      return errors.listen(new Worker(name, own, { ...settings, ...options }));
    },
    async close() {
      errors.mute();
      await Promise.all(Object.values(queues).map((queue) => queue.close()));
      connection.disconnect();
    },
  };
}

/** Pause before a worker that could not connect is created again. */
const RECONNECT_MS = 1_000;

/** How long a worker that is closed waits for its first connection to be there. */
const CONNECTING_MS = 5_000;

/** What is used here of a BullMQ worker that was created with `autorun: false`. */
interface Startable extends JobWorker {
  waitUntilReady(): Promise<unknown>;
  run(): Promise<unknown>;
  emit(event: 'error', error: Error): boolean;
}

/**
 * Starts a worker that comes to work however often its first connection fails. On Postgres BullMQ keeps
 * the error of a first connection that failed: a worker that ran would meet it again at once, in a loop
 * that leaves no time for anything else in its process.
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
      // Nobody waits for this, because the worker has no job.
      void worker.close(true).catch(() => undefined);
      worker = create();
    }
  }

  void start();
  return {
    async close(force) {
      closing.abort();
      // BullMQ would leave behind the connection that it has begun to open for notifications.
      const waited = new AbortController();
      await Promise.race([
        worker.waitUntilReady(),
        sleep(CONNECTING_MS, undefined, { signal: waited.signal }),
      ]).catch(() => undefined);
      waited.abort();
      return worker.close(force);
    },
  };
}

interface Opened {
  readonly nightly: JobQueue<WindowJob>;
  readonly backfill: JobQueue<WindowJob>;
  readonly ticks: JobQueue<TickJob>;
}

function joinQueues(
  { nightly, backfill, ticks }: Opened,
  db: Database,
): Pick<Queues, 'windows' | 'ticks' | 'pause' | 'resume'> {
  return {
    windows: { nightly, backfill },
    ticks,
    async pause() {
      await Promise.all([nightly.pause(), backfill.pause()]);
    },
    resume: () =>
      db.withRetry(async () => {
        await Promise.all([nightly.resume(), backfill.resume()]);
      }),
  };
}

/** The same error is not logged again for so long. */
const REPEAT_MS = 5_000;

/**
 * Logs errors of connections. The drivers reconnect by themselves; an error that nothing listens to would
 * end the process. While we close, a server that stops before the last connection does is not reported.
 */
function errorLogger(log: Logger) {
  let closing = false;
  let last = { message: '', at: 0 };
  return {
    listen<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(emitter: T): T {
      emitter.on('error', (error) => {
        const { message } = error;
        const at = Date.now();
        // While a server is away BullMQ tries many times a second, and says so each time.
        if (closing || (message === last.message && at - last.at < REPEAT_MS)) return;
        last = { message, at };
        log.warn({ err: error }, 'queue connection');
      });
      return emitter;
    },
    mute() {
      closing = true;
    },
  };
}

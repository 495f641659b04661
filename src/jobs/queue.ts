import {
  createPostgresBackend,
  type Job,
  type JobSchedulerJson,
  type JobsOptions,
  Queue,
  Worker,
  type WorkerOptions,
  withBackend,
} from 'bullmq';
import { Redis } from 'ioredis';
import type { Config } from '../core/config.ts';
import type { Logger } from '../core/log.ts';

/** A job names its window and carries nothing else: etl.* is the truth, and no secret travels. */
export interface WindowJob {
  readonly runId: number;
  readonly windowId: number;
}

/** A tick of a schedule: plan the nightly run of one operation and exchange. */
export interface TickJob {
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
  rateLimit(milliseconds: number): Promise<void>;
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
  'concurrency' | 'lockDuration' | 'stalledInterval' | 'maxStalledCount' | 'limiter' | 'settings' | 'name'
>;

/** What we use of BullMQ's Worker. */
export interface JobWorker {
  close(force?: boolean): Promise<void>;
}

export type Processor<Data> = (job: Job<Data>, token?: string) => Promise<void>;

/** The queue, on Redis or on Postgres. Nothing outside this file knows which. */
export interface Queues {
  readonly backend: 'redis' | 'postgres';
  readonly windows: JobQueue<WindowJob>;
  readonly ticks: JobQueue<TickJob>;
  work<Data>(queue: 'windows' | 'ticks', processor: Processor<Data>, settings: WorkerSettings): JobWorker;
  close(): Promise<void>;
}

interface QueueSettings {
  readonly databaseUrl: string;
  readonly config: Pick<Config, 'REDIS_URL' | 'EOD_QUEUE_PREFIX'>;
  readonly log: Logger;
}

/**
 * Opens the queues: on Redis where REDIS_URL is set, else in the schema `<prefix>_queue` of the
 * database. Either is disposable: what is lost there is enqueued again from etl.*.
 */
export async function openQueues(settings: QueueSettings): Promise<Queues> {
  const { REDIS_URL } = settings.config;
  return REDIS_URL === undefined ? onPostgres(settings) : onRedis(settings, REDIS_URL);
}

async function onPostgres({ databaseUrl, config, log }: QueueSettings): Promise<Queues> {
  const trouble = troubleListener(log);
  const { Queue: PgQueue, Worker: PgWorker } = withBackend(createPostgresBackend);
  const connection = (max: number) => ({
    connectionString: databaseUrl,
    schema: `${config.EOD_QUEUE_PREFIX}_queue`,
    application_name: 'eod queue',
    migrate: true,
    max,
  });
  const windows = new PgQueue<WindowJob>('windows', { connection: connection(2) });
  const ticks = new PgQueue<TickJob>('ticks', { connection: connection(1) });
  for (const queue of [windows, ticks]) trouble.listen(queue);
  await windows.waitUntilReady();
  await ticks.waitUntilReady();
  return {
    backend: 'postgres',
    windows,
    ticks,
    work(name, processor, options) {
      return trouble.listen(
        new PgWorker(name, processor, { ...options, connection: connection((options.concurrency ?? 1) + 1) }),
      );
    },
    async close() {
      trouble.hush();
      await Promise.all([windows.close(), ticks.close()]);
    },
  };
}

async function onRedis({ config, log }: QueueSettings, url: string): Promise<Queues> {
  const trouble = troubleListener(log);
  // BullMQ asks for null: its blocking calls must wait for a reconnect, however long it takes.
  const connection = new Redis(url, { maxRetriesPerRequest: null, connectionName: 'eod' });
  trouble.listen(connection);
  const options = { connection, prefix: config.EOD_QUEUE_PREFIX };
  const windows = new Queue<WindowJob>('windows', options);
  const ticks = new Queue<TickJob>('ticks', options);
  for (const queue of [windows, ticks]) trouble.listen(queue);
  await windows.waitUntilReady();
  return {
    backend: 'redis',
    windows,
    ticks,
    work(name, processor, settings) {
      return trouble.listen(new Worker(name, processor, { ...settings, ...options }));
    },
    async close() {
      trouble.hush();
      await Promise.all([windows.close(), ticks.close()]);
      connection.disconnect();
    },
  };
}

/**
 * Connection trouble is reported and healed by the drivers; unheard it would end the process. Once
 * we close, a server that goes before the last connection does is no news.
 */
function troubleListener(log: Logger) {
  let closing = false;
  return {
    listen<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(emitter: T): T {
      emitter.on('error', (error) => {
        if (!closing) log.warn({ err: error }, 'queue connection');
      });
      return emitter;
    },
    hush() {
      closing = true;
    },
  };
}

import { join } from 'node:path';
import { loadCalendar } from '../calendar/index.ts';
import { systemClock } from '../core/clock.ts';
import type { Config } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import { createLog, type Logger } from '../core/log.ts';
import { createSource } from '../extract/index.ts';
import type { SourceSettings } from '../extract/types.ts';
import type { Context, QueueContext, WorkContext } from '../jobs/context.ts';
import { syncSessions } from '../jobs/runs/sessions.ts';
import { openQueues } from '../jobs/worker/queue.ts';
import { type Database, openDatabase } from '../load/database/database.ts';
import { startEmbeddedPostgres } from '../load/database/embedded/index.ts';
import { migrateDatabase, schemaState } from '../load/database/migrate.ts';
import type { RetryOptions } from '../load/database/retry.ts';
import type { Lifecycle } from './lifecycle.ts';
import { say } from './output.ts';
import { checkPostgres, checkRedis } from './reachable.ts';

/** Connections beside those of the windows in flight: progress, reconcile, health. */
const SPARE_CONNECTIONS = 3;

/** How a command meets a Postgres or Redis that is away. */
export type Wait =
  /** Says so at once: somebody waits for the answer. */
  | 'none'
  /**
   * For the work of one command: a server that is not there at the start is waited for as long as a restart
   * takes, so that a wrong address is told soon; one that goes away later for EOD_SERVER_PATIENCE_MS.
   */
  | 'short'
  /** For a service: whoever keeps it running starts it and its servers in any order. */
  | 'long';

/** Longer than a restart takes. */
const SHORT_WAIT_MS = 10_000;

/** What a command needs beyond settings, log, database and calendar. */
interface Needs {
  /** Default `none`. */
  readonly wait?: Wait;
  /** The queue, to start and stop runs. */
  readonly queue?: boolean;
  /** The source and the queue, to do the work of windows. */
  readonly source?: boolean;
  /** What the command has opened already, where it had to look first. */
  readonly opened?: Context;
}

/**
 * Opens what a command needs; the lifecycle closes it.
 *
 * @throws PipelineError `usage` that names the setting when a server cannot be used or a setting is missing.
 */
export async function openContext(
  life: Lifecycle,
  config: Config,
  needs: Needs & { readonly source: true },
): Promise<WorkContext>;
export async function openContext(
  life: Lifecycle,
  config: Config,
  needs: Needs & { readonly queue: true },
): Promise<QueueContext>;
export async function openContext(life: Lifecycle, config: Config, needs?: Needs): Promise<Context>;
export async function openContext(
  life: Lifecycle,
  config: Config,
  { wait = 'none', queue = false, source = false, opened }: Needs = {},
): Promise<Context> {
  // First, because a missing setting is told sooner than a server can answer.
  const settings = source ? sourceSettings(config) : null;
  const { REDIS_URL } = config;
  if ((queue || source) && REDIS_URL !== undefined) {
    await life.open(() => checkRedis(REDIS_URL, arrivalOf(life, config, wait)));
  }
  const context = opened ?? (await openBaseContext(life, config, wait));
  if (!queue && !source) return context;
  const { db, log } = context;
  const queues = await life.open(
    () => db.withRetry(() => openQueues({ databaseUrl: db.url, config, log })),
    (opened) => opened.close(),
  );
  const withQueue: QueueContext = { ...context, queues };
  if (settings === null) return withQueue;
  const opening = await life.open(
    async () => createSource(settings, log),
    (opened) => opened.close(),
  );
  const withSource: WorkContext = { ...withQueue, source: opening };
  return withSource;
}

async function openBaseContext(life: Lifecycle, config: Config, wait: Wait): Promise<Context> {
  const calendar = loadCalendar({ file: config.EOD_CALENDAR_FILE });
  const log = createLog(config);
  const db = await openStore(life, config, log, wait);
  await life.open(() => db.withRetry((once) => ensureSchema(once, config)));
  const context = { config, log, db, calendar, clock: systemClock };
  await life.open(() => syncSessions(context));
  return context;
}

/** How long a server is waited for that is not there when the command starts. */
export function arrivalOf(life: Lifecycle, config: Config, wait: Wait): RetryOptions {
  const longest = { none: 0, short: SHORT_WAIT_MS, long: Number.POSITIVE_INFINITY }[wait];
  return { ...retryOf(life, config), forMs: Math.min(config.EOD_SERVER_PATIENCE_MS, longest) };
}

function retryOf({ signal }: Lifecycle, config: Config): RetryOptions {
  return {
    forMs: config.EOD_SERVER_PATIENCE_MS,
    signal,
    onRetry: (sentence) => say(`eod: ${sentence}`),
  };
}

/** The database as it is, whatever its schema: DATABASE_URL, or the private Postgres. */
export async function openStore(life: Lifecycle, config: Config, log: Logger, wait: Wait): Promise<Database> {
  const url = config.DATABASE_URL ?? (await startPrivate(life, config, log));
  if (config.DATABASE_URL !== undefined) {
    await life.open(() => checkPostgres(url, arrivalOf(life, config, wait)));
  }
  // Nightly runs and backfills are worked on side by side, with EOD_CONCURRENCY windows each.
  const connections = 2 * config.EOD_CONCURRENCY + SPARE_CONNECTIONS;
  const retry = wait === 'none' ? {} : { retry: retryOf(life, config) };
  return life.open(
    async () => openDatabase({ url, connections, log, ...retry }),
    (opened) => opened.close(),
  );
}

async function startPrivate(life: Lifecycle, config: Config, log: Logger): Promise<string> {
  const server = await life.open(
    () => startEmbeddedPostgres({ dataDir: join(config.EOD_DATA_DIR, 'postgres'), log }).catch(folderTrouble),
    (opened) => opened.stop(),
    (opened) => opened.abandon(),
  );
  return server.url;
}

/** A folder that cannot be made or written is a wrong setting, not a defect. */
function folderTrouble(error: unknown): never {
  if (error instanceof Error && 'syscall' in error && 'path' in error) {
    throw usageError(`EOD_DATA_DIR cannot be used: ${error.message}`);
  }
  throw error;
}

/** Creates the tables where there are none; changing those of somebody's server is for them to say. */
async function ensureSchema(db: Database, config: Config): Promise<void> {
  const state = await schemaState(db);
  if (state === 'current') return;
  if (state === 'behind' && config.DATABASE_URL !== undefined) {
    throw usageError('the tables of this database are of an older version: run "eod migrate" first');
  }
  await migrateDatabase(db, config);
}

/**
 * Settings of the source, for commands that cannot do without.
 *
 * @throws PipelineError `usage` that says how to get a simulated one.
 */
function sourceSettings(config: Config): SourceSettings {
  const { EOD_BASE_URL, EOD_ACCESS_KEY } = config;
  if (EOD_BASE_URL === undefined || EOD_ACCESS_KEY === undefined) {
    const missing = [
      ...(EOD_BASE_URL === undefined ? ['EOD_BASE_URL (the address of the data service)'] : []),
      ...(EOD_ACCESS_KEY === undefined ? ['EOD_ACCESS_KEY (your key for it)'] : []),
    ].join(' and ');
    throw usageError(`set ${missing}; "eod sandbox" starts a simulated service and prints what to set`);
  }
  return {
    baseUrl: EOD_BASE_URL,
    accessKey: EOD_ACCESS_KEY,
    dateDialect: config.EOD_DATE_DIALECT,
    dateFormat: config.EOD_DATE_FORMAT,
    format: config.EOD_FORMAT,
    timeZone: config.EOD_TIMEZONE,
    timeoutMs: config.EOD_TIMEOUT_MS,
    maxResponseBytes: config.EOD_MAX_RESPONSE_MB * 1024 * 1024,
    connections: 2 * config.EOD_CONCURRENCY,
    tlsVerify: config.EOD_TLS_VERIFY,
  };
}

import { join } from 'node:path';
import { loadCalendar } from '../calendar/index.ts';
import { systemClock } from '../core/clock.ts';
import { type Config, loadConfig } from '../core/config.ts';
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
import { NO_PATIENCE, type Patience, patiently } from '../load/database/retry.ts';
import type { Lifecycle } from './lifecycle.ts';
import { say } from './output.ts';
import { checkPostgres, checkRedis } from './reachable.ts';

/** Connections beside those of the windows in flight: progress, reconcile, health. */
const SPARE_CONNECTIONS = 3;

/** How commands that do work meet a server that is away: whoever starts them by a timer would lose the night. */
export function patienceOf({ signal }: Lifecycle, config: Config): Patience {
  return { patienceMs: config.EOD_SERVER_PATIENCE_MS, signal, tell: (sentence) => say(`eod: ${sentence}`) };
}

/** Longer than a restart takes; a wrong address should not keep whoever typed it for a minute. */
const ARRIVAL_MS = 10_000;

/** How commands that work and end meet a server that is not there when they start. */
export function arrivalOf(life: Lifecycle, config: Config): Patience {
  const patience = patienceOf(life, config);
  return { ...patience, patienceMs: Math.min(patience.patienceMs, ARRIVAL_MS) };
}

/** Settings, log, database and calendar: enough for commands that look at what is there. */
export async function openContext(life: Lifecycle, config: Config = loadConfig()): Promise<Context> {
  return contextWith(life, config, { arrival: NO_PATIENCE, patience: NO_PATIENCE });
}

/** The same for commands that do work: a Postgres that is away for a moment is waited for. */
export async function openPatientContext(
  life: Lifecycle,
  config: Config = loadConfig(),
  arrival: Patience = arrivalOf(life, config),
): Promise<Context> {
  return contextWith(life, config, { arrival, patience: patienceOf(life, config) });
}

async function contextWith(
  life: Lifecycle,
  config: Config,
  { arrival, patience }: { readonly arrival: Patience; readonly patience: Patience },
): Promise<Context> {
  const calendar = loadCalendar({ file: config.EOD_CALENDAR_FILE });
  const log = createLog(config);
  const db = await openStore(life, config, log, arrival);
  await life.open(() => patiently(patience, () => ensureSchema(db, config)));
  const context = { config, log, db, calendar, clock: systemClock };
  await life.open(() => patiently(patience, () => syncSessions(context)));
  return context;
}

/** What the openers below may be told. */
interface Opening {
  /** What the command has opened already, where it had to look first. */
  readonly opened?: Context;
  /** With servers that are not there yet. */
  readonly arrival?: Patience;
}

/** With the queue: for commands that start and stop runs. */
export async function openQueueContext(
  life: Lifecycle,
  config: Config = loadConfig(),
  { opened, arrival = arrivalOf(life, config) }: Opening = {},
): Promise<QueueContext> {
  const { REDIS_URL } = config;
  const patience = patienceOf(life, config);
  if (REDIS_URL !== undefined) await life.open(() => checkRedis(REDIS_URL, arrival));
  const context = opened ?? (await openPatientContext(life, config, arrival));
  const { db, log } = context;
  const queues = await life.open(
    () => patiently(patience, () => openQueues({ databaseUrl: db.url, config, log })),
    (opened) => opened.close(),
  );
  return { ...context, queues };
}

/** With the source: for commands that do the work. */
export async function openWorkContext(
  life: Lifecycle,
  config: Config = loadConfig(),
  opening: Opening = {},
): Promise<WorkContext> {
  const settings = sourceSettings(config);
  const context = await openQueueContext(life, config, opening);
  const source = await life.open(
    async () => createSource(settings, context.log),
    (opened) => opened.close(),
  );
  return { ...context, source };
}

/** The database as it is, whatever its schema: DATABASE_URL, or the private Postgres. */
export async function openStore(
  life: Lifecycle,
  config: Config,
  log: Logger,
  patience: Patience,
): Promise<Database> {
  const url = config.DATABASE_URL ?? (await startPrivate(life, config, log));
  if (config.DATABASE_URL !== undefined) await life.open(() => checkPostgres(url, patience));
  // Nightly runs and backfills are worked on side by side, with EOD_CONCURRENCY windows each.
  const connections = 2 * config.EOD_CONCURRENCY + SPARE_CONNECTIONS;
  return life.open(
    async () => openDatabase({ url, connections, log }),
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

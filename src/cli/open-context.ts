import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type LearningCalendar, loadCalendar } from '../calendar/calendar.ts';
import { clockOf, createSettableClock } from '../core/clock.ts';
import type { Config } from '../core/config.ts';
import { PipelineError, usageError } from '../core/errors.ts';
import { type Pair, pairName } from '../core/exchanges.ts';
import { createLog, type Logger } from '../core/log.ts';
import type { SourceSettings } from '../extract/types.ts';
import type { Context, QueueContext, WorkContext } from '../jobs/context.ts';
import { syncTradingDays } from '../jobs/responses/sync-sessions.ts';
import { explainMissingRight, migrateDatabase, schemaState } from '../migrate.ts';
import { type Database, DEFAULT_TIMEOUTS, openDatabase } from '../postgres/database.ts';
import { clusterLocation } from '../postgres/embedded/account.ts';
import { readServerTime } from '../postgres/inspect.ts';
import type { RetryOptions } from '../postgres/retry.ts';
import { compareRequested, writeExpectations } from '../state/coverage/completeness.ts';
import { type Cli, loadSettings, logNote } from './cli.ts';
import { checkPostgres, checkRedis } from './reachable.ts';

/** Connections besides those of the windows in progress: for progress, requeueing, health checks. */
const SPARE_CONNECTIONS = 3;

/** What a command does when Postgres or Redis cannot be reached. */
type Wait =
  /** Fails at once, because somebody is waiting for the result. */
  | 'none'
  /**
   * For a command that works on a run: at the start it waits as long as a restart takes, so that a wrong address is
   * reported soon; later it waits for EOD_SERVER_PATIENCE_MS.
   */
  | 'short'
  /** For a service, which may start before its servers: waits for EOD_SERVER_PATIENCE_MS at any time. */
  | 'long';

/** Longer than a restart takes. */
const SHORT_WAIT_MS = 10_000;

/** What a command needs besides settings, log, database and calendar. */
interface Needs {
  /** Default `none`. */
  readonly wait?: Wait;
  /** The queue, to start and stop runs. */
  readonly queue?: boolean;
  /** The source and the queue, to do the work of windows. */
  readonly source?: boolean;
  /** True if this process keeps the schedules: what its settings request is expected from now on. */
  readonly schedules?: boolean;
  /** The settings, if the command has read them already or has its own. */
  readonly config?: Config;
  /** A context that the command has opened already, to be completed. */
  readonly opened?: Context;
}

/**
 * Opens what a command needs; its lifecycle closes it.
 *
 * @throws PipelineError `usage` that names the setting, if a server cannot be used or a setting is missing.
 */
export async function openContext(cli: Cli, needs: Needs & { readonly source: true }): Promise<WorkContext>;
export async function openContext(cli: Cli, needs: Needs & { readonly queue: true }): Promise<QueueContext>;
export async function openContext(cli: Cli, needs?: Needs): Promise<Context>;
export async function openContext(
  cli: Cli,
  needs: Needs = {},
): Promise<Context | QueueContext | WorkContext> {
  const { life } = cli;
  const { wait = 'none', source = false, opened } = needs;
  const works = source || needs.queue === true;
  const own = needs.config ?? opened?.config ?? (await loadSettings(cli));
  const config = source ? await withDemoSource(cli, own) : own;
  // First, so that a missing setting is reported without waiting for a server.
  const settings = source ? sourceSettings(config) : null;
  const { REDIS_URL } = config;
  if (works && REDIS_URL !== undefined) {
    await life.open(() => checkRedis(REDIS_URL, chooseStartRetry(cli, config, wait)));
  }
  const context =
    (opened && { ...opened, config, log: openLog(cli, config, false) }) ??
    (await openBaseContext(cli, config, { ...needs, wait }, works));
  if (!works) return context;
  // The clients for Redis and HTTP and the private Postgres are loaded only where they are used: loading them would take
  // most of the time of a command that only reads.
  const { db, log, clock } = context;
  log.debug({ on: REDIS_URL === undefined ? 'Postgres' : 'Redis' }, 'opens the queue');
  const { openQueues } = await import('../jobs/queue/queue.ts');
  const queues = await life.open(() => openQueues({ db, config, log }));
  if (settings === null) return { ...context, queues };
  log.debug({ origin: new URL(settings.baseUrl).origin, format: settings.format }, 'opens the source');
  const { createSource } = await import('../extract/index.ts');
  return { ...context, queues, source: await life.open(async () => createSource(settings, log, clock)) };
}

/** The settings of a command on the demo's data, with a sandbox of its own as the source; others stay as they are. */
async function withDemoSource({ demo, life }: Cli, config: Config): Promise<Config> {
  if (demo !== true || config.EOD_BASE_URL !== undefined) return config;
  const { EXAMPLE_KEY, startSandbox } = await import('../sandbox/index.ts');
  const sandbox = await life.open(() =>
    startSandbox({ calendar: loadCalendar(), accessKey: EXAMPLE_KEY, splits: true }),
  );
  return { ...config, EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: EXAMPLE_KEY };
}

async function openBaseContext(
  cli: Cli,
  config: Config,
  { wait, schedules = false }: Needs & { readonly wait: Wait },
  works: boolean,
): Promise<Context> {
  const { life } = cli;
  const calendar = openCalendar(cli, config);
  const log = openLog(cli, config, !works);
  const db = await openStore(cli, config, log, wait);
  const loads = works || wait !== 'none';
  await life.open(() => ensureSchema(cli, db, config, config.DATABASE_URL === undefined || loads));
  await life.open(() => checkRequested(db, config, log, schedules));
  const clock = createSettableClock(clockOf(config));
  const serverTime = await life.open(() => readServerTime(db.pool));
  if (!clock.set(serverTime)) {
    const facts = { ownTime: new Date(clock.now()), databaseTime: new Date(serverTime) };
    log.warn(
      facts,
      'the clock of this machine is more than an hour off that of Postgres, and is used as it is',
    );
  }
  const context = { config, log, db, calendar, clock };
  await life.open(() => syncTradingDays(context));
  return context;
}

/**
 * Opens the database for commands that only read it: a reader's rights are enough. Only the tables of the private
 * Postgres are created or updated first.
 *
 * @param reads `tables`: those of this program. `anything`: what the user names, in any database.
 */
export async function openReadable(
  cli: Cli,
  reads: 'tables' | 'anything',
): Promise<Pick<Context, 'config' | 'log' | 'db'>> {
  const config = await loadSettings(cli);
  // What only reads creates no database: it would be a second one beside that of the demo, and empty.
  if (config.DATABASE_URL === undefined && !hasPrivatePostgres(cli, config)) {
    throw usageError(
      'there is no database yet: set DATABASE_URL, or load something first; "eod --demo …" reads what "eod demo" has loaded',
    );
  }
  const log = openLog(cli, config);
  const db = await openStore(cli, config, log, 'none');
  if (config.DATABASE_URL === undefined) await cli.life.open(() => ensureSchema(cli, db, config, true));
  // From the catalog, which any role may read.
  else if (reads === 'tables' && !(await cli.life.open(() => hasSchema(db)))) throw noTables();
  return { config, log, db };
}

async function hasSchema({ pool }: Database): Promise<boolean> {
  return (await pool.query("select from pg_namespace where nspname = 'etl'")).rowCount === 1;
}

export const hasPrivatePostgres = ({ cwd }: Cli, { EOD_DATA_DIR: folder }: Config) =>
  existsSync(resolve(cwd, folder, 'postgres'));

function noTables(): PipelineError {
  return usageError(
    'the database of DATABASE_URL has no tables of eod: "eod migrate" creates them, if it is the right one',
  );
}

/** Opens the database for statements that a user wrote, and for views, which may be the user's as well. */
export async function openForUser(
  cli: Cli,
  reads: 'tables' | 'anything',
): Promise<Pick<Context, 'config' | 'db'>> {
  const { config, db, log } = await openReadable(cli, reads);
  // On the user's own server, the role of DATABASE_URL says what may be read.
  if (config.DATABASE_URL !== undefined) return { config, db };
  const { openAsReader } = await import('../postgres/embedded/reader.ts');
  const reader = await cli.life.open(() => openAsReader(db, log));
  return { config, db: reader };
}

/**
 * Compares what the settings request with what the database expects, by which it is decided what is missing. The process
 * that keeps the schedules stores its own, as does each that uses a private Postgres, which has one user; others only log
 * that theirs are different.
 */
async function checkRequested(
  { drizzle }: Database,
  config: Config,
  log: Logger,
  schedules: boolean,
): Promise<void> {
  if (schedules || config.DATABASE_URL === undefined) return writeExpectations(drizzle, config);
  const difference = await compareRequested(drizzle, config);
  if (difference === null) return;
  const named = (pairs: readonly Pair[]) => pairs.map(pairName);
  log.warn(
    { onlyHere: named(difference.onlyHere), onlyInDatabase: named(difference.onlyExpected) },
    'EOD_OPERATIONS, EOD_EXCHANGES or EOD_OPERATION_EXCHANGES differs from what the database has stored, by which it is decided what is missing: "eod migrate" or "eod up" stores the new value',
  );
}

/** Loads the trading calendar, with the user's own calendar file. */
export function openCalendar({ cwd }: Cli, { EOD_CALENDAR_FILE: file }: Config): LearningCalendar {
  return loadCalendar({ file: file === undefined ? undefined : resolve(cwd, file) });
}

/** How long to wait at the start of a command for a server that cannot be reached. */
function chooseStartRetry(cli: Cli, config: Config, wait: Wait): RetryOptions {
  const longest = { none: 0, short: SHORT_WAIT_MS, long: Number.POSITIVE_INFINITY }[wait];
  return { ...chooseRetry(cli, config), forMs: Math.min(config.EOD_SERVER_PATIENCE_MS, longest) };
}

function chooseRetry(cli: Cli, config: Config): RetryOptions {
  return {
    forMs: config.EOD_SERVER_PATIENCE_MS,
    signal: cli.life.signal,
    onRetry: (sentence) => logNote(cli, `eod: ${sentence}`),
  };
}

/**
 * The log of a command: EOD_LOG_LEVEL says what it shows, unless `--quiet` wants less or `--verbose` more.
 *
 * @param isForPerson false for a command that works on runs or serves: its log is collected.
 */
export function openLog({ verbosity, stderr }: Cli, config: Config, isForPerson = true): Logger {
  const { EOD_LOG_LEVEL: set } = config;
  const level =
    verbosity === 'nothing' && set !== 'fatal' && set !== 'silent'
      ? 'error'
      : verbosity === 'everything' && set !== 'trace'
        ? 'debug'
        : set;
  return createLog({ ...config, EOD_LOG_LEVEL: level }, stderr, isForPerson);
}

/** Opens the database without looking at its schema: DATABASE_URL, or the private Postgres. */
export async function openStore(cli: Cli, config: Config, log: Logger, wait: Wait): Promise<Database> {
  const { life } = cli;
  const url = config.DATABASE_URL ?? (await startPrivatePostgres(cli, config, log));
  // Nightly runs and backfills are worked on side by side. Those of a queue in Postgres are not among them.
  const connections = 2 * config.EOD_CONCURRENCY + SPARE_CONNECTIONS;
  const { host, pathname } = new URL(url);
  log.debug({ host, database: pathname.slice(1), connections }, 'opens the database');
  const retry = wait === 'none' ? {} : { retry: chooseRetry(cli, config) };
  const { EOD_LOCK_TIMEOUT_MS: lockMs, EOD_STATEMENT_TIMEOUT_MS: statementMs } = config;
  const timeouts = { ...DEFAULT_TIMEOUTS, lockMs, statementMs };
  const db = await life.open(async () => openDatabase({ url, connections, log, timeouts, ...retry }));
  if (config.DATABASE_URL !== undefined) {
    await life.open(() => checkPostgres(db, chooseStartRetry(cli, config, wait)));
  }
  return db;
}

async function startPrivatePostgres(cli: Cli, config: Config, log: Logger): Promise<string> {
  const { life, cwd } = cli;
  const { startEmbeddedPostgres } = await import('../postgres/embedded/index.ts');
  const dataDir = resolve(cwd, config.EOD_DATA_DIR, 'postgres');
  const isNew = !existsSync(dataDir);
  const server = await life.open(
    () => startEmbeddedPostgres({ dataDir, log }).catch(explainFolderError),
    (opened) => opened.stop(),
    (opened) => opened.abandon(),
  );
  if (isNew && cli.demo !== true) {
    logNote(cli, `eod: DATABASE_URL is not set: created a private Postgres in ${dataDir}`);
  }
  return server.url;
}

/** A folder that cannot be created or written to is a wrong setting, not a defect. */
function explainFolderError(error: unknown): never {
  if (error instanceof Error && 'syscall' in error && 'path' in error) {
    throw usageError(`EOD_DATA_DIR cannot be used: ${error.message}`);
  }
  throw error;
}

/**
 * Creates the tables if there are none. On the user's own server only `eod migrate` changes existing tables, and a
 * command that only looks or decides creates none: the address may be a wrong one.
 */
async function ensureSchema(cli: Cli, db: Database, config: Config, mayCreate: boolean): Promise<void> {
  try {
    const state = await schemaState(db);
    if (state === 'current') return;
    if (state === 'behind' && config.DATABASE_URL !== undefined) {
      throw usageError('the tables of this database are of an older version: run "eod migrate" first');
    }
    if (state === 'missing' && !mayCreate) throw noTables();
    await migrateDatabase(db, config);
  } catch (error) {
    if (cli.demo === true && error instanceof PipelineError && error.remedy === 'import_unreleased') {
      const { path } = clusterLocation(resolve(cli.cwd, config.EOD_DATA_DIR, 'postgres'));
      throw usageError(`the demo in ${path} was loaded by an unreleased version`, 'delete_demo');
    }
    throw await explainMissingRight(db, error, 'work');
  }
}

/**
 * Settings of the source, for commands that call it.
 *
 * @throws PipelineError `usage` that says how to get a simulated one.
 */
export function sourceSettings(config: Config): SourceSettings {
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
    proxies: config,
  };
}

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../core/config.ts';
import { PipelineError, usageError } from '../core/errors.ts';
import { createLog, type Logger } from '../core/log.ts';
import { explainMissingRight, migrateDatabase, schemaState } from '../migrate.ts';
import { type Database, DEFAULT_TIMEOUTS, openDatabase } from '../postgres/database.ts';
import { clusterLocation } from '../postgres/embedded/account.ts';
import type { RetryOptions } from '../postgres/retry.ts';
import { type Cli, logNote } from './cli.ts';
import { checkPostgres } from './reachable.ts';

/** Connections for anything but windows: progress, requeueing, health checks. */
const SPARE_CONNECTIONS = 3;

/** What a command does when Postgres or Redis cannot be reached. */
export type Wait =
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

/** How long to wait at the start of a command for a server that cannot be reached. */
export function chooseStartRetry(cli: Cli, config: Config, wait: Wait): RetryOptions {
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
  const { EOD_LOG_LEVEL: configured } = config;
  const level =
    verbosity === 'nothing' && configured !== 'fatal' && configured !== 'silent'
      ? 'error'
      : verbosity === 'everything' && configured !== 'trace'
        ? 'debug'
        : configured;
  return createLog({ ...config, EOD_LOG_LEVEL: level }, stderr, isForPerson);
}

/** Opens the database without looking at its schema: DATABASE_URL, or the private Postgres. */
export async function openStore(cli: Cli, config: Config, log: Logger, wait: Wait): Promise<Database> {
  const { life } = cli;
  const url = config.DATABASE_URL ?? (await startPrivatePostgres(cli, config, log));
  // Nightly runs and backfills are worked on side by side, EOD_CONCURRENCY windows of each. A queue in Postgres has
  // connections of its own.
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
export async function ensureSchema(
  cli: Cli,
  db: Database,
  config: Config,
  mayCreate: boolean,
): Promise<void> {
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

export function noTables(): PipelineError {
  return usageError(
    'the database of DATABASE_URL has no tables of eod: "eod migrate" creates them, if it is the right one',
  );
}

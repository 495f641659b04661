import { resolve } from 'node:path';
import { type LearningCalendar, loadCalendar } from '../calendar/calendar.ts';
import { clockOf, createSettableClock } from '../core/clock.ts';
import type { Config } from '../core/config.ts';
import { type Pair, pairName } from '../core/exchanges.ts';
import type { Logger } from '../core/log.ts';
import type { SourceSettings } from '../extract/types.ts';
import type { Context, QueueContext, WorkContext } from '../jobs/context.ts';
import { syncTradingDays } from '../jobs/responses/sync-sessions.ts';
import type { Database } from '../postgres/database.ts';
import { readServerTime } from '../postgres/inspect.ts';
import { compareRequested, writeExpectations } from '../state/coverage/completeness.ts';
import type { Cli } from './cli.ts';
import { loadSettings } from './load-settings.ts';
import { chooseStartRetry, ensureSchema, openLog, openStore, type Wait } from './open-store.ts';
import { checkRedis } from './reachable.ts';
import { sourceSettings } from './source-settings.ts';

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
  const { wait = 'none', source = false } = needs;
  const needsQueue = source || needs.queue === true;
  const loadedConfig = needs.config ?? (await loadSettings(cli));
  const config = source ? await withDemoSource(cli, loadedConfig) : loadedConfig;
  // First, so that a missing setting is reported without waiting for a server.
  const settings = source ? sourceSettings(config) : null;
  if (needsQueue) await checkQueue(cli, config, wait);
  const context = await openBaseContext(cli, config, { ...needs, wait }, needsQueue);
  if (!needsQueue) return context;
  const queueContext = await addQueues(cli, context);
  return settings === null ? queueContext : addSource(cli, queueContext, settings);
}

/** Opens the queue and the source as well, for a command that has found out that it needs them. */
export async function completeContext(cli: Cli, context: Context, wait: Wait): Promise<WorkContext> {
  const config = await withDemoSource(cli, context.config);
  const settings = sourceSettings(config);
  await checkQueue(cli, config, wait);
  const log = openLog(cli, config, false);
  return addSource(cli, await addQueues(cli, { ...context, config, log }), settings);
}

async function checkQueue(cli: Cli, config: Config, wait: Wait): Promise<void> {
  const { REDIS_URL } = config;
  if (REDIS_URL === undefined) return;
  await cli.life.open(() => checkRedis(REDIS_URL, chooseStartRetry(cli, config, wait)));
}

// The clients for Redis and HTTP and the private Postgres are loaded only where they are used: loading them would take
// most of the time of a command that only reads.

async function addQueues({ life }: Cli, context: Context): Promise<QueueContext> {
  const { db, config, log } = context;
  log.debug({ on: config.REDIS_URL === undefined ? 'Postgres' : 'Redis' }, 'opens the queue');
  const { openQueues } = await import('../jobs/queue/queue.ts');
  return { ...context, queues: await life.open(() => openQueues({ db, config, log })) };
}

async function addSource(
  { life }: Cli,
  context: QueueContext,
  settings: SourceSettings,
): Promise<WorkContext> {
  const { log, clock } = context;
  log.debug({ origin: new URL(settings.baseUrl).origin, format: settings.format }, 'opens the source');
  const { createSource } = await import('../extract/index.ts');
  return { ...context, source: await life.open(async () => createSource(settings, log, clock)) };
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
  needsQueue: boolean,
): Promise<Context> {
  const { life } = cli;
  const calendar = openCalendar(cli, config);
  const log = openLog(cli, config, !needsQueue);
  const db = await openStore(cli, config, log, wait);
  const mayCreateTables = config.DATABASE_URL === undefined || needsQueue || wait !== 'none';
  await life.open(() => ensureSchema(cli, db, config, mayCreateTables));
  await life.open(() => storeOrCompareExpectations(db, config, log, schedules));
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
 * The database keeps which operations and exchanges are expected; what is missing follows from that. The process that
 * keeps the schedules stores those of its settings, as does each that uses a private Postgres, which has only one user.
 * Others only log a difference.
 */
async function storeOrCompareExpectations(
  { drizzle }: Database,
  config: Config,
  log: Logger,
  schedules: boolean,
): Promise<void> {
  if (schedules || config.DATABASE_URL === undefined) return writeExpectations(drizzle, config);
  const difference = await compareRequested(drizzle, config);
  if (difference === null) return;
  const namesOf = (pairs: readonly Pair[]) => pairs.map(pairName);
  log.warn(
    { onlyHere: namesOf(difference.onlyHere), onlyInDatabase: namesOf(difference.onlyExpected) },
    'EOD_OPERATIONS, EOD_EXCHANGES or EOD_OPERATION_EXCHANGES differs from what the database has stored, which decides what is missing: "eod migrate" or "eod up" stores the new value',
  );
}

/** Loads the trading calendar, with the user's own calendar file. */
export function openCalendar({ cwd }: Cli, { EOD_CALENDAR_FILE: file }: Config): LearningCalendar {
  return loadCalendar({ file: file === undefined ? undefined : resolve(cwd, file) });
}

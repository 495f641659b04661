import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../../core/config.ts';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { pairName } from '../../core/exchanges.ts';
import { within } from '../../core/waits.ts';
import { QUEUE_CONNECTIONS, queueSchema } from '../../jobs/queue/queue.ts';
import { DEFAULT_TIMEOUTS, openDatabase } from '../../load/database/database.ts';
import { databaseError, SHARED_SESSIONS } from '../../load/database/database-errors.ts';
import { clusterLocation } from '../../load/database/embedded/account.ts';
import {
  type QuerySettings,
  readQuerySettings,
  readRoleRights,
  readServerFacts,
  readServerTime,
  type ServerFacts,
} from '../../load/database/inspect.ts';
import { sharesSessions } from '../../load/database/pooler.ts';
import { timeZoneProblem } from '../../load/database/time-zone.ts';
import { ENCODING, OLDEST_SERVER, schemaState } from '../../load/migrate.ts';
import { compareRequested } from '../../load/state/coverage/completeness.ts';
import type { Cli } from '../cli.ts';
import { poolSize } from '../open-context.ts';
import { firstFew } from '../output.ts';
import { locationOf, reasonOf } from '../reachable.ts';
import {
  certainLead,
  type Examination,
  failed,
  type Outcome,
  ok,
  type Row,
  row,
  skipped,
  type With,
  warning,
} from './check.ts';

/** Each query must return within this time. */
const RESPONSE_MS = 8_000;
const CONNECT_MS = 5_000;

/** The private Postgres may have to recover from a crash first. */
const START_MS = 60_000;

/** Checks the database that DATABASE_URL names, or the private Postgres where there is one. */
async function checkDatabase(found: Examination): Promise<Outcome> {
  const { cli, config } = found;
  const url = config.DATABASE_URL ?? (await privateUrl(cli, config));
  if (typeof url !== 'string') {
    found.lacks.server = 'there is no database yet';
    return url;
  }
  const db = openDatabase({
    url,
    connections: 4,
    connectWithinMs: CONNECT_MS,
    timeouts: { ...DEFAULT_TIMEOUTS, lockMs: RESPONSE_MS, statementMs: RESPONSE_MS },
  });
  // A server that hangs must not keep the process alive: closing gets one second.
  await cli.life.open(
    async () => db,
    () => within(db.close(), 1_000).catch(() => undefined),
  );
  const location =
    config.DATABASE_URL === undefined
      ? `the private Postgres in ${folderOf(cli, config)}`
      : `Postgres at ${locationOf(url)}`;
  try {
    // The first query opens the connection, which must not be taken as a difference of the clocks.
    await within(readServerTime(db.pool), RESPONSE_MS);
    const sentAt = Date.now();
    const facts = await within(readServerFacts(db.pool), RESPONSE_MS);
    const clockAheadMs = -certainLead({ sentAt, receivedAt: Date.now() }, facts.now);
    found.server = { db, facts, clockAheadMs };
    return serverCheck(facts, location);
  } catch (error) {
    const { cause } = databaseError(error);
    return failed(
      `${location}: ${reasonOf(cause ?? error)}`,
      'start the server, or correct host, port, database, user and password in DATABASE_URL; a pooler in front of it must use pool_mode = session',
    );
  }
}

/** The folder of the private Postgres as it is set, or the one that is used instead; the check `disk` says why. */
function folderOf({ cwd }: Cli, { EOD_DATA_DIR }: Config): string {
  const { path, why } = clusterLocation(resolve(cwd, EOD_DATA_DIR, 'postgres'));
  return why === null ? EOD_DATA_DIR : path;
}

/**
 * Starts the private Postgres and returns its address; returns a check instead if there is none or it does not start.
 */
async function privateUrl(cli: Cli, config: Config): Promise<string | Outcome> {
  const dataDir = resolve(cli.cwd, config.EOD_DATA_DIR, 'postgres');
  const remedy = 'set DATABASE_URL to a Postgres of yours';
  try {
    if (!existsSync(dataDir)) {
      const { findBinaries } = await import('../../load/database/embedded/cluster.ts');
      const { version } = await findBinaries();
      return ok(
        `DATABASE_URL is not set: the first command that needs it creates a private Postgres ${version.split('-')[0]} in ${folderOf(cli, config)}`,
      );
    }
    const { startEmbeddedPostgres } = await import('../../load/database/embedded/index.ts');
    const server = await cli.life.open(
      () => within(startEmbeddedPostgres({ dataDir }), START_MS),
      (opened) => opened.stop(),
      (opened) => opened.abandon(),
    );
    return server.url;
  } catch (error) {
    return failed(`the private Postgres in ${folderOf(cli, config)}: ${messageOf(error)}`, remedy);
  }
}

/** The schemas that the pipeline uses. */
function schemasOf(config: Config): string[] {
  const queue = config.REDIS_URL === undefined ? [queueSchema(config)] : [];
  return ['etl', 'market', 'market_history', ...queue];
}

function serverCheck({ version, major, encoding, readOnly }: ServerFacts, location: string): Outcome {
  const found = `${location}: version ${version}`;
  if (major < OLDEST_SERVER) {
    return failed(`${found} is too old`, `upgrade it: ${OLDEST_SERVER} or newer is needed`);
  }
  if (encoding !== ENCODING) {
    return failed(
      `${found}, whose encoding is ${encoding}`,
      `use a database in ${ENCODING}: create database NAME encoding '${ENCODING}' template template0`,
    );
  }
  if (readOnly) {
    return failed(
      `${found}, which accepts no writes (a standby, or default_transaction_read_only)`,
      'name the primary server in DATABASE_URL',
    );
  }
  return ok(found);
}

async function checkTimeZone({ server, config }: With<'server'>): Promise<Outcome> {
  const { EOD_TIMEZONE: zone } = config;
  const problem = await timeZoneProblem(server.db.pool, zone, Date.now());
  return problem === null
    ? ok(`Postgres and this program read ${zone} alike`)
    : failed(problem.found, problem.remedy);
}

async function checkPooler({ server }: With<'server'>): Promise<Outcome> {
  const { reason, remedy } = SHARED_SESSIONS;
  if (await sharesSessions(server.db.pool)) return failed(reason, remedy);
  return ok('sessions are kept from one transaction to the next');
}

async function checkRights({ server, config }: With<'server'>): Promise<Outcome> {
  const { role } = server.facts;
  const rights = await readRoleRights(server.db.pool, schemasOf(config));
  const { missingSchemas, unusable, unreadable, unchangeable, closed, mayCreate, mayStage } = rights;
  const statements = 'docs/security.md has the statements for the roles';
  if (missingSchemas.length > 0 && !mayCreate) {
    return failed(
      `the role ${role} may not create the schemas ${missingSchemas.join(', ')}, which are not there`,
      `let an administrator create them, or run "eod migrate" as another role; ${statements}`,
    );
  }
  const lacking = [
    ...(unusable.length > 0 ? [`use the schemas ${unusable.join(', ')}`] : []),
    ...(unreadable.length > 0 ? [`read ${firstFew(unreadable)}`] : []),
    ...(unchangeable.length > 0 ? [`change rows of ${firstFew(unchangeable)}`] : []),
    ...(closed.length > 0 ? [`use ${firstFew(closed)}`] : []),
    ...(mayStage ? [] : ['create temporary tables in this database']),
  ];
  if (lacking.length > 0) {
    const found = `the role ${role} may not ${lacking.join('; ')}`;
    return failed(found, `use the worker's role, or let the owner grant its rights; ${statements}`);
  }
  const what = mayCreate ? 'work, and migrate' : 'work; only the owner of the tables may run "eod migrate"';
  return ok(`the role ${role} may ${what}`);
}

/** The checks that have to find nothing wrong before our tables are used. */
const BEFORE_TABLES = ['time zone', 'pooler', 'rights'];

async function checkMigrations(found: With<'server'>): Promise<Outcome> {
  const { config, checks } = found;
  const { db } = found.server;
  let state: Awaited<ReturnType<typeof schemaState>>;
  try {
    state = await schemaState(db);
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    return failed('the tables are of an unreleased version', error.message);
  }
  if (state === 'current') {
    const isUsable = BEFORE_TABLES.every((name) => checks.find((one) => one.name === name)?.state === 'ok');
    if (isUsable) found.tables = db;
    return ok('the tables are those of this version');
  }
  const which = state === 'missing' ? 'there are no tables yet' : 'the tables are of an older version';
  if (config.DATABASE_URL === undefined) {
    return skipped(`${which}; the next command that uses them brings them up to date`);
  }
  return failed(which, 'run "eod migrate" as the owner of the tables');
}

/** Checks that the database expects what the settings request. */
async function checkRequested({ tables: db, config }: With<'tables'>): Promise<Outcome> {
  const difference = await compareRequested(db.drizzle, config);
  if (difference === null)
    return ok('what is missing is said of the operations and exchanges of the settings');
  const { onlyHere, onlyExpected } = difference;
  const texts = [
    ...(onlyHere.length === 0 ? [] : [`do not say of ${firstFew(onlyHere.map(pairName))} what is missing`]),
    ...(onlyExpected.length === 0 ? [] : [`expect ${firstFew(onlyExpected.map(pairName))}`]),
  ];
  return warning(
    `the settings that the database was told last ${texts.join(', and ')}`,
    'run "eod migrate" with the settings of "eod up", or start that again',
  );
}

/** Connections left for others: people, monitoring, backups. */
const SPARE = 5;

function connectionsCheck(facts: ServerFacts, config: Config): Outcome {
  const needed = poolSize(config) + (config.REDIS_URL === undefined ? QUEUE_CONNECTIONS : 0);
  const { connections, roleConnections, databaseConnections, connectionsUsed } = facts;
  const most = Math.min(connections, roleConnections ?? connections, databaseConnections ?? connections);
  const found = `${most} at most, ${connectionsUsed} used now; one process of "eod up" opens up to ${needed}`;
  const remedy =
    'raise max_connections in Postgres (or the CONNECTION LIMIT of the role or database), set EOD_CONCURRENCY lower, or put the queue on Redis';
  if (most < needed) return failed(found, remedy);
  if (most < connectionsUsed + needed + SPARE) return warning(found, remedy);
  return ok(found);
}

/**
 * Checks what a stock Postgres lacks for queries over many rows. Loading does not depend on it, so there is a warning at
 * most, and none of the private Postgres, whose user set none of them.
 */
export function querySettingsCheck(
  { workMemMb, randomPageCost, jit }: QuerySettings,
  isPrivate: boolean,
): Outcome {
  const found = `work_mem is ${workMemMb} MB, random_page_cost ${randomPageCost}, jit ${jit ? 'on' : 'off'}`;
  const better = [
    ...(workMemMb < 16 ? ["work_mem = '64MB'"] : []),
    ...(randomPageCost > 2 ? ['random_page_cost = 1.1 (on an SSD)'] : []),
    ...(jit ? ['jit = off'] : []),
  ];
  if (better.length === 0 || isPrivate) return ok(found);
  return warning(
    found,
    `for queries over many rows "alter database NAME set …": ${better.join(', ')}; docs/performance.md has the measured differences`,
  );
}

/** The private Postgres may have to be started; the queries within have shorter limits. */
const PRIVATE_POSTGRES_MS = 90_000;

/** The checks of the database, in the order in which to look at them. */
export const databaseChecks: readonly Row[] = [
  row('database', [], checkDatabase, 'see DATABASE_URL', PRIVATE_POSTGRES_MS),
  row('time zone', ['server'], checkTimeZone),
  row('pooler', ['server'], checkPooler, 'set pool_mode = session in the pooler'),
  row('rights', ['server'], checkRights, 'docs/security.md has the statements for the roles'),
  row(
    'migrations',
    ['server'],
    checkMigrations,
    'let the role read the tables, or run "eod migrate" as their owner',
  ),
  row('connections', ['server'], ({ server, config }) => connectionsCheck(server.facts, config)),
  row('query settings', ['server'], async ({ server, config }) =>
    querySettingsCheck(await readQuerySettings(server.db.pool), config.DATABASE_URL === undefined),
  ),
  row('requested', ['tables'], checkRequested),
];

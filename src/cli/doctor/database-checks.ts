import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../../core/config.ts';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { within } from '../../core/waits.ts';
import { QUEUE_CONNECTIONS, queueSchema } from '../../jobs/worker/queue.ts';
import { type Database, DEFAULT_TIMEOUTS, openDatabase } from '../../load/database/database.ts';
import { databaseError } from '../../load/database/database-errors.ts';
import { clusterPlace } from '../../load/database/embedded/account.ts';
import {
  type RoleRights,
  readRoleRights,
  readServerFacts,
  readServerTime,
  type ServerFacts,
} from '../../load/database/inspect.ts';
import { ENCODING, OLDEST_SERVER, schemaState } from '../../load/database/migrate.ts';
import { sharesSessions } from '../../load/database/pooler.ts';
import { timeZoneProblem } from '../../load/database/time-zone.ts';
import { readLostDays } from '../../load/market/checks/lost-days.ts';
import { declaredDifferences } from '../../load/market/schema/create-tables.ts';
import { compareSums } from '../../load/state/coverage/sum-of-facts.ts';
import { useStoredOperations } from '../../load/state/enabled-operations.ts';
import { clockLead } from '../../load/state/place-sql.ts';
import { allOperations } from '../../operations/registry.ts';
import type { Cli } from '../cli.ts';
import { poolSize } from '../open-context.ts';
import { duration, plural } from '../output.ts';
import { placeOf, reasonOf, SHARED_SESSIONS } from '../reachable.ts';
import { bounded, type Check, certainLead, failed, ok, skipped, warning } from './check.ts';

/** Each query must be answered within this time. */
const ANSWER_MS = 8_000;
const CONNECT_MS = 5_000;

/** The private Postgres may have to recover from a crash first. */
const START_MS = 60_000;

/** What the other checks need of the database. */
export interface DatabaseChecks {
  readonly checks: readonly Check[];
  /** The database, if our tables are there in this version, so that other checks can use it; else null. */
  readonly usable: Database | null;
  /** How far the server's clock is ahead of ours, in milliseconds; null if it was not read. */
  readonly clockAheadMs: number | null;
}

const names = ['database', 'time zone', 'pooler', 'rights', 'migrations', 'connections'] as const;

/** The result when the database cannot be used: all checks after the first are skipped. */
const withoutDatabase = (first: Check, why: string): DatabaseChecks => ({
  checks: [first, ...names.slice(1).map((name) => skipped(name, why))],
  usable: null,
  clockAheadMs: null,
});

/** Checks the database that DATABASE_URL names, or the private Postgres where there is one. */
export async function databaseChecks(cli: Cli, config: Config): Promise<DatabaseChecks> {
  const url = config.DATABASE_URL ?? (await privateUrl(cli, config));
  if (typeof url !== 'string') return withoutDatabase(url, 'there is no database yet');
  const db = openDatabase({
    url,
    connections: 4,
    connectWithinMs: CONNECT_MS,
    timeouts: { ...DEFAULT_TIMEOUTS, lockMs: ANSWER_MS, statementMs: ANSWER_MS },
  });
  // A server that hangs must not keep the process alive: closing gets one second.
  await cli.life.open(
    async () => db,
    () => within(db.close(), 1_000).catch(() => undefined),
  );
  const place =
    config.DATABASE_URL === undefined
      ? `the private Postgres in ${folderOf(cli, config)}`
      : `Postgres at ${placeOf(url)}`;
  let facts: ServerFacts;
  let sentAt = 0;
  try {
    // The first query opens the connection, which must not count as a difference of the clocks.
    await within(readServerTime(db.pool), ANSWER_MS);
    sentAt = Date.now();
    facts = await within(readServerFacts(db.pool), ANSWER_MS);
  } catch (error) {
    const { cause } = databaseError(error);
    const found = `${place}: ${reasonOf(cause ?? error)}`;
    const remedy =
      'start the server, or correct host, port, database, user and password in DATABASE_URL; a pooler in front of it must use pool_mode = session';
    return withoutDatabase(failed('database', found, remedy), 'the database does not answer');
  }
  const clockAheadMs = -certainLead({ sentAt, receivedAt: Date.now() }, facts.now);
  const [[zone], [pooler], [rights], [migrations]] = (await Promise.all([
    bounded('time zone', ANSWER_MS, 'see the check of the database', () => timeZoneCheck(db, config)),
    bounded('pooler', ANSWER_MS, 'set pool_mode = session in the pooler', () => poolerCheck(db)),
    bounded('rights', ANSWER_MS, 'docs/security.md has the statements for the roles', async () =>
      rightsCheck(await readRoleRights(db.pool, schemasOf(config)), facts.role),
    ),
    bounded(
      'migrations',
      ANSWER_MS,
      'let the role read the tables, or run "eod migrate" as their owner',
      () => migrationsCheck(db, config),
    ),
  ])) as [[Check], [Check], [Check], [Check]];
  const isUsable = [zone, migrations, pooler, rights].every(({ state }) => state === 'ok');
  return {
    checks: [serverCheck(facts, place), zone, pooler, rights, migrations, connectionsCheck(facts, config)],
    usable: isUsable ? db : null,
    clockAheadMs,
  };
}

/** The folder of the private Postgres as it is set, or the one that is used instead; the check `disk` says why. */
function folderOf({ cwd }: Cli, { EOD_DATA_DIR }: Config): string {
  const { path, why } = clusterPlace(resolve(cwd, EOD_DATA_DIR, 'postgres'));
  return why === null ? EOD_DATA_DIR : path;
}

/**
 * Starts the private Postgres and returns its address; returns a check instead if there is none or it does not start.
 */
async function privateUrl(cli: Cli, config: Config): Promise<string | Check> {
  const dataDir = resolve(cli.cwd, config.EOD_DATA_DIR, 'postgres');
  const remedy = 'set DATABASE_URL to a Postgres of yours';
  try {
    if (!existsSync(dataDir)) {
      const { findBinaries } = await import('../../load/database/embedded/cluster.ts');
      const { version } = await findBinaries();
      return ok(
        'database',
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
    return failed(
      'database',
      `the private Postgres in ${folderOf(cli, config)}: ${messageOf(error)}`,
      remedy,
    );
  }
}

/** The schemas that the pipeline uses. */
function schemasOf(config: Config): string[] {
  const queue = config.REDIS_URL === undefined ? [queueSchema(config)] : [];
  return ['etl', 'market', 'market_history', ...queue];
}

function serverCheck({ version, major, encoding, readOnly }: ServerFacts, place: string): Check {
  const found = `${place}: version ${version}`;
  if (major < OLDEST_SERVER) {
    return failed('database', `${found} is too old`, `upgrade it: ${OLDEST_SERVER} or newer is needed`);
  }
  if (encoding !== ENCODING) {
    return failed(
      'database',
      `${found}, whose encoding is ${encoding}`,
      `use a database in ${ENCODING}: create database NAME encoding '${ENCODING}' template template0`,
    );
  }
  if (readOnly) {
    return failed(
      'database',
      `${found}, which accepts no writes (a standby, or default_transaction_read_only)`,
      'name the primary server in DATABASE_URL',
    );
  }
  return ok('database', found);
}

async function timeZoneCheck({ pool }: Database, { EOD_TIMEZONE: zone }: Config): Promise<Check> {
  const problem = await timeZoneProblem(pool, zone, Date.now());
  return problem === null
    ? ok('time zone', `Postgres and this program read ${zone} alike`)
    : failed('time zone', problem.found, problem.remedy);
}

async function poolerCheck({ pool }: Database): Promise<Check> {
  const { reason, remedy } = SHARED_SESSIONS;
  if (await sharesSessions(pool)) return failed('pooler', reason, remedy);
  return ok('pooler', 'sessions are kept from one transaction to the next');
}

/** `a, b and 3 more`. */
const some = (list: readonly string[]) =>
  list.length <= 3 ? list.join(', ') : `${list.slice(0, 2).join(', ')} and ${list.length - 2} more`;

function rightsCheck(rights: RoleRights, role: string): Check {
  const { missingSchemas, unusable, unreadable, unchangeable, closed, mayCreate, mayStage } = rights;
  const statements = 'docs/security.md has the statements for the roles';
  if (missingSchemas.length > 0 && !mayCreate) {
    return failed(
      'rights',
      `the role ${role} may not create the schemas ${missingSchemas.join(', ')}, which are not there`,
      `let an administrator create them, or run "eod migrate" as another role; ${statements}`,
    );
  }
  const lacking = [
    ...(unusable.length > 0 ? [`use the schemas ${unusable.join(', ')}`] : []),
    ...(unreadable.length > 0 ? [`read ${some(unreadable)}`] : []),
    ...(unchangeable.length > 0 ? [`change rows of ${some(unchangeable)}`] : []),
    ...(closed.length > 0 ? [`use ${some(closed)}`] : []),
    ...(mayStage ? [] : ['create temporary tables in this database']),
  ];
  if (lacking.length > 0) {
    const found = `the role ${role} may not ${lacking.join('; ')}`;
    return failed('rights', found, `use the worker's role, or let the owner grant its rights; ${statements}`);
  }
  const what = mayCreate ? 'work, and migrate' : 'work; "eod migrate" is for the owner of the tables';
  return ok('rights', `the role ${role} may ${what}`);
}

async function migrationsCheck(db: Database, config: Config): Promise<Check> {
  let state: Awaited<ReturnType<typeof schemaState>>;
  try {
    state = await schemaState(db);
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    return failed('migrations', 'the tables are of an unreleased version', error.message);
  }
  if (state === 'current') return ok('migrations', 'the tables are those of this version');
  const found = state === 'missing' ? 'there are no tables yet' : 'the tables are of an older version';
  if (config.DATABASE_URL === undefined) {
    return skipped('migrations', `${found}; the next command that uses them brings them up to date`);
  }
  return failed('migrations', found, 'run "eod migrate" as the owner of the tables');
}

/**
 * Uses the operations of this database, and checks that each has a file and the tables that it declares. What the other
 * checks know of operations follows from it.
 */
export async function operationsCheck(db: Database | null, config: Config): Promise<Check | Check[]> {
  const name = 'operations';
  if (db === null) return skipped(name, 'see the checks of the database');
  const leftOut = await useStoredOperations(db.drizzle, config.EOD_OPERATIONS_DIR);
  const differing = await declaredDifferences(db.pool);
  const { broken } = await allOperations(config.EOD_OPERATIONS_DIR);
  const checks = [
    ...broken
      .filter((file) => leftOut.every((one) => one.name !== file.name))
      .map((file) =>
        warning(
          name,
          `${file.name}, which is not enabled, cannot be: ${file.problem}`,
          'correct its file, or move it out of EOD_OPERATIONS_DIR',
        ),
      ),
    ...leftOut.map(({ name: operation, problem }) =>
      failed(
        name,
        problem === null
          ? `no file declares ${operation}, which is left out`
          : `${operation} is left out: ${problem}`,
        `${problem === null ? `put ${operation}.mjs back into EOD_OPERATIONS_DIR` : 'correct its file'}, or run "eod operations disable ${operation}": its rows stay`,
      ),
    ),
    ...differing.map(({ table, refusal }) =>
      refusal === null
        ? failed(
            name,
            `market.${table.name} lacks columns or tables that its operation declares`,
            'run "eod migrate" as the owner of the tables: it adds them',
          )
        : failed(name, refusal.problem, refusal.remedy),
    ),
  ];
  return checks.length > 0 ? checks : ok(name, 'each has the tables that it declares');
}

/** Connections left for others: people, monitoring, backups. */
const SPARE = 5;

function connectionsCheck(facts: ServerFacts, config: Config): Check {
  const needed = poolSize(config) + (config.REDIS_URL === undefined ? QUEUE_CONNECTIONS : 0);
  const { connections, roleConnections, databaseConnections, connectionsUsed } = facts;
  const most = Math.min(connections, roleConnections ?? connections, databaseConnections ?? connections);
  const found = `${most} at most, ${connectionsUsed} used now; one process of "eod up" opens up to ${needed}`;
  const remedy =
    'raise max_connections in Postgres (or the CONNECTION LIMIT of the role or database), set EOD_CONCURRENCY lower, or put the queue on Redis';
  if (most < needed) return failed('connections', found, remedy);
  if (most < connectionsUsed + needed + SPARE) return warning('connections', found, remedy);
  return ok('connections', found);
}

/** Looks for days that count as loaded and have no row: nothing else asks for them again. */
export async function lostDaysCheck(db: Database | null): Promise<Check> {
  const name = 'rows';
  if (db === null) return skipped(name, 'see the checks of the database');
  const lost = await readLostDays(db.pool);
  const [first] = lost;
  if (first === undefined) return ok(name, 'every day that counts as loaded has rows');
  const found = lost.map(
    ({ operation, exchange, days, from, to }) =>
      `${operation} ${exchange}, ${plural(days, 'day')} from ${from} to ${to}`,
  );
  const asked = `${first.operation} --exchange ${first.exchange} --from ${first.from} --to ${first.to}`;
  return failed(
    name,
    `some days count as loaded, but have no row: ${found.join('; ')}`,
    `"eod replay ${asked}" loads the kept answers again, "eod backfill ${asked} --force" asks for them; "eod reconcile" lists the days`,
  );
}

/** How long all coverage is compared with what is kept of the answers. */
const SUMS_MS = 6_000;

/** Checks that the coverage is the sum of what is kept with the answers. */
export async function coverageCheck(db: Database | null): Promise<Check> {
  const name = 'coverage';
  if (db === null) return skipped(name, 'see the checks of the database');
  const { differing, left } = await compareSums(db, SUMS_MS);
  const [first] = differing;
  const unknown =
    left.length === 0
      ? ''
      : `; too many questions to compare in ${SUMS_MS / 1_000} s more than those of the last day: ${some(left)}`;
  if (first === undefined) {
    return ok(name, `the coverage is what its answers said${unknown}`);
  }
  const found = differing.map(
    ({ operation, exchange, questions, day, instrument, variant, registers }) =>
      `${plural(questions, 'question')} of ${operation} ${exchange}, the first of ${[day, instrument, variant].filter((part) => part !== '').join(' ')} (${registers.join(', ')})`,
  );
  const { operation, exchange, day } = first;
  return failed(
    name,
    `the coverage is not what the answers said: ${found.join('; ')}${unknown}`,
    `somebody has changed the tables by hand: "eod replay ${operation} --exchange ${exchange} --from ${day} --to ${day}" reads the kept answers of a day again`,
  );
}

/** From this on, places are ahead because the clock was set back: otherwise they are as many microseconds ahead as were taken at once. */
const CLOCK_LEAPT_MS = 1_000;

/** Checks that the places of new answers are the times of their calls. */
export async function placesCheck(db: Database | null): Promise<Check> {
  const name = 'places';
  if (db === null) return skipped(name, 'see the checks of the database');
  const lead = await clockLead(db.drizzle);
  if (lead < CLOCK_LEAPT_MS) return ok(name, 'answers get the times of their calls as places in their order');
  return warning(
    name,
    `the last answer has a place ${duration(lead / 1_000)} ahead of the clock of Postgres, which was set back since`,
    'correct the clock of that machine if it is wrong now. The order of answers stays right: until the clock has caught up, each gets a place a microsecond after the one before, which does not tell the time of its call',
  );
}

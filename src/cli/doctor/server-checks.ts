import { existsSync } from 'node:fs';
import { access, constants, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Config } from '../../core/config.ts';
import { createLog } from '../../core/log.ts';
import { listText } from '../../core/wording.ts';
import { queueSchema } from '../../jobs/queue/queue.ts';
import { OLDEST_SERVER, schemaState } from '../../migrate.ts';
import type { Database } from '../../postgres/database.ts';
import { clusterLocation } from '../../postgres/embedded/account.ts';
import { readRoleRights, readServerFacts, type ServerFacts } from '../../postgres/inspect.ts';
import type { Cli } from '../cli.ts';
import { hasPrivatePostgres } from '../open-readable.ts';
import { openStore } from '../open-store.ts';
import { describeFailure, describeLocation, readRedisFacts } from '../reachable.ts';
import { failed, type Outcome, ok, skipped, warning } from './check.ts';

/** A database that responds. */
export interface Server {
  readonly db: Database;
  readonly facts: ServerFacts;
}

/**
 * Opens the database that DATABASE_URL names, or the private Postgres where there is one.
 *
 * @returns null if there is no database yet.
 * @throws PipelineError if it cannot be used: it does not respond, or a pooler shares its sessions.
 */
export async function openServer(cli: Cli, config: Config): Promise<Server | null> {
  if (config.DATABASE_URL === undefined && !hasPrivatePostgres(cli, config)) return null;
  const log = createLog({ ...config, EOD_LOG_LEVEL: 'silent' });
  const db = (await openStore(cli, config, log, 'none')).withoutRetry;
  return { db, facts: await readServerFacts(db.pool) };
}

export function serverCheck(cli: Cli, config: Config, server: Server | null): Outcome {
  const { DATABASE_URL, EOD_DATA_DIR } = config;
  // The folder may be another than the one that is set.
  const { path, why } = clusterLocation(resolve(cli.cwd, EOD_DATA_DIR, 'postgres'));
  const embedded = `the private Postgres in ${why === null ? EOD_DATA_DIR : path}`;
  if (server === null)
    return ok(`DATABASE_URL is not set: the first command that needs it creates ${embedded}`);
  const location = DATABASE_URL === undefined ? embedded : `Postgres at ${describeLocation(DATABASE_URL)}`;
  const { version, major, readOnly } = server.facts;
  const serverText = `${location}: version ${version}`;
  if (major < OLDEST_SERVER)
    return failed(`${serverText} is too old`, `upgrade it to ${OLDEST_SERVER} or newer`);
  if (!readOnly) return ok(serverText);
  return failed(`${serverText}, which accepts no writes`, 'name the primary server in DATABASE_URL');
}

export async function rightsCheck({ db, facts }: Server, config: Config): Promise<Outcome> {
  const queue = config.REDIS_URL === undefined ? [queueSchema(config)] : [];
  const schemas = ['etl', 'market', 'market_history', ...queue];
  const { mayCreate, ...rights } = await readRoleRights(db.pool, schemas);
  const lacking = Object.entries({
    'create the schemas': mayCreate ? [] : rights.missingSchemas,
    'use the schemas': rights.unusable,
    read: rights.unreadable,
    'change rows of': rights.unchangeable,
    use: rights.closed,
    'create temporary tables in': rights.mayStage ? [] : ['this database'],
  }).flatMap(([verb, names]) => (names.length === 0 ? [] : [`${verb} ${listText(names, ', ')}`]));
  if (lacking.length > 0) {
    return failed(
      `the role ${facts.role} may not ${lacking.join('; ')}`,
      "use the worker's role, or let the owner grant its rights; docs/security.md has the statements for the roles",
    );
  }
  const may = mayCreate ? 'work, and migrate' : 'work; only the owner of the tables may run "eod migrate"';
  return ok(`the role ${facts.role} may ${may}`);
}

export async function migrationsCheck({ db }: Server, config: Config): Promise<Outcome> {
  const state = await schemaState(db);
  if (state === 'current') return ok('the tables are those of this version');
  const stateText = state === 'missing' ? 'there are no tables yet' : 'the tables are of an older version';
  return config.DATABASE_URL === undefined
    ? skipped(`${stateText}; the next command that uses them brings them up to date`)
    : failed(stateText, 'run "eod migrate" as the owner of the tables');
}

const GB = 1024 ** 3;
/** A year of all operations, with its kept responses, takes about this much. */
const ROOMY_BYTES = 5 * GB;
/** Postgres stops when it cannot write its log (WAL). */
const LEAST_BYTES = 0.5 * GB;

/** Checks the free space where Postgres keeps its data, if that is on this machine. */
export async function diskCheck(cli: Cli, config: Config, server: Server | null): Promise<Outcome> {
  const isPrivate = config.DATABASE_URL === undefined;
  const { path } = clusterLocation(resolve(cli.cwd, config.EOD_DATA_DIR, 'postgres'));
  let folder = isPrivate ? path : (server?.facts.dataDirectory ?? '');
  if (!isPrivate && !existsSync(folder)) return skipped('the disk of Postgres cannot be seen from here');
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  if (isPrivate) await access(folder, constants.W_OK);
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const spaceText = `${(free / GB).toFixed(1)} GB are free for the data of Postgres in ${folder}`;
  const remedy = `free some room, or ${isPrivate ? 'set EOD_DATA_DIR to' : 'move the data of Postgres to'} a larger disk`;
  if (free < LEAST_BYTES) return failed(spaceText, remedy);
  return free < ROOMY_BYTES ? warning(spaceText, remedy) : ok(spaceText);
}

const NO_REDIS = 'start Redis, or correct REDIS_URL; without REDIS_URL the queue is in Postgres';

/** Checks Redis as the server of the queue, if the queue is not in Postgres. */
export async function queueCheck(url: string | undefined): Promise<Outcome> {
  if (url === undefined) return ok('the queue is in Postgres (REDIS_URL is not set)');
  const location = `Redis at ${describeLocation(url)}`;
  const facts = await readRedisFacts(url).catch((error) => describeFailure(error));
  if (typeof facts === 'string') return failed(`${location}: ${facts}`, NO_REDIS);
  const { version, isReplica, evictionPolicy, maxMemory } = facts;
  const serverText = `${location}: version ${version}`;
  if (isReplica) return failed(`${serverText}, a replica`, 'name the primary server in REDIS_URL');
  if (evictionPolicy === 'noeviction') return ok(serverText);
  const policy = `maxmemory-policy is ${evictionPolicy}, and maxmemory ${maxMemory}: it may drop jobs`;
  const report = maxMemory > 0 ? failed : warning;
  return report(`${serverText}, ${policy}`, 'set maxmemory-policy noeviction in Redis');
}

import type { Config } from '../../core/config.ts';
import { createLog } from '../../core/log.ts';
import { lostWindows } from '../../jobs/worker/enqueue.ts';
import { openQueues, queueTablesState } from '../../jobs/worker/queue.ts';
import type { Database } from '../../load/database/database.ts';
import { runningRuns } from '../../load/state/runs/runs.ts';
import { plural } from '../output.ts';
import { askRedis, placeOf, reasonOf } from '../reachable.ts';
import { type Check, failed, isBelow, ok, skipped, warning } from './check.ts';

/** BullMQ refuses Redis older than the first; the second has everything it uses. */
const OLDEST_REDIS = '5.0.0';
const RECOMMENDED_REDIS = '6.2.0';

/** What Redis says about itself. */
interface RedisFacts {
  readonly version: string;
  /** Bytes it may use; 0 for no limit. */
  readonly maxMemory: number;
  readonly evictionPolicy: string;
  readonly appendOnly: boolean;
  /** Why the last snapshot, or write to the append-only file, failed; null if it did not. */
  readonly saveProblem: string | null;
  /** When snapshots are made, in the server's notation; null if it does not say. */
  readonly snapshots: string | null;
  readonly isReplica: boolean;
}

async function readFacts(url: string): Promise<RedisFacts> {
  return askRedis(url, async (client) => {
    const info = new Map(
      (await client.info()).split(/\r?\n/).map((line) => line.split(/:(.*)/).slice(0, 2) as [string, string]),
    );
    // Hosted servers often refuse CONFIG.
    const save = await client.config('GET', 'save').catch(() => null);
    const problems = [
      ...(info.get('rdb_last_bgsave_status') === 'err' ? ['the last snapshot failed'] : []),
      ...(info.get('aof_last_write_status') === 'err'
        ? ['the last write to the append-only file failed']
        : []),
    ];
    return {
      version: info.get('redis_version') ?? '0',
      maxMemory: Number(info.get('maxmemory') ?? 0),
      evictionPolicy: info.get('maxmemory_policy') ?? 'unknown',
      appendOnly: info.get('aof_enabled') === '1',
      saveProblem: problems.join(' and ') || null,
      snapshots: Array.isArray(save) && typeof save[1] === 'string' ? save[1] : null,
      isReplica: info.get('role') === 'slave',
    };
  });
}

const names = ['queue', 'queue eviction', 'queue persistence'] as const;

/**
 * Checks the queue in Postgres, used if REDIS_URL is not set.
 *
 * @param db null if the database cannot be used.
 */
export async function postgresQueueChecks(db: Database | null, config: Config): Promise<readonly Check[]> {
  const others = names
    .slice(1)
    .map((name) => skipped(name, 'the queue is in Postgres, which stores it on disk'));
  const where = 'the queue is in Postgres (REDIS_URL is not set)';
  if (db === null) return [skipped('queue', `${where}; see the database check`), ...others];
  const state = await queueTablesState(db, config);
  if (state === 'current') return [ok('queue', `${where}; its tables are those of this version`), ...others];
  const found = `${where}; its tables are ${state === 'missing' ? 'not there yet' : 'of an older version'}`;
  if (config.DATABASE_URL === undefined) {
    return [skipped('queue', `${found}; the first command that uses them creates them`), ...others];
  }
  return [warning('queue', found, 'run "eod migrate" as the owner of the tables'), ...others];
}

/** Checks Redis as the server of the queue. */
export async function redisChecks(url: string): Promise<readonly Check[]> {
  const place = `Redis at ${placeOf(url)}`;
  let facts: RedisFacts;
  try {
    facts = await readFacts(url);
  } catch (error) {
    const remedy =
      'start the server, or correct host, port and password in REDIS_URL; without REDIS_URL the queue is in Postgres';
    return [
      failed('queue', `${place}: ${reasonOf(error)}`, remedy),
      ...names.slice(1).map((name) => skipped(name, 'Redis does not answer')),
    ];
  }
  return [serverCheck(place, facts), evictionCheck(facts), persistenceCheck(facts)];
}

/**
 * Checks whether the queue has a job for every window that is to be asked.
 *
 * @param db null if the database or the queue cannot be used.
 */
export async function queueJobsCheck(db: Database | null, config: Config): Promise<Check> {
  const name = 'queue jobs';
  if (db === null) return skipped(name, 'see the checks of the queue and the database');
  const runs = await runningRuns(db.drizzle);
  if (runs.length === 0) return ok(name, 'no run is under way');
  const queues = await openQueues({ db, config, log: createLog({ ...config, EOD_LOG_LEVEL: 'silent' }) });
  let lost = 0;
  try {
    for await (const windows of lostWindows({ db, queues }, runs)) lost += windows.length;
  } finally {
    await queues.close();
  }
  if (lost === 0) return ok(name, 'every open window has a job in the queue');
  return warning(
    name,
    `the queue has lost the jobs of ${plural(lost, 'open window')}`,
    'a worker enqueues them within half a minute; if none runs, "eod up" starts one',
  );
}

function serverCheck(place: string, { version, isReplica }: RedisFacts): Check {
  const found = `${place}: version ${version}`;
  if (isBelow(version, OLDEST_REDIS)) {
    return failed('queue', `${found} is too old`, `upgrade it: ${RECOMMENDED_REDIS} or newer`);
  }
  if (isReplica) return failed('queue', `${found}, a replica`, 'name the primary server in REDIS_URL');
  if (isBelow(version, RECOMMENDED_REDIS)) {
    return warning('queue', `${found} is old`, `upgrade it: ${RECOMMENDED_REDIS} or newer is better`);
  }
  return ok('queue', found);
}

function evictionCheck({ evictionPolicy, maxMemory }: RedisFacts): Check {
  const name = 'queue eviction';
  if (evictionPolicy === 'noeviction') return ok(name, 'maxmemory-policy is noeviction');
  const found = `maxmemory-policy is ${evictionPolicy}`;
  const remedy = 'set maxmemory-policy noeviction in the configuration of Redis';
  return maxMemory > 0
    ? failed(name, `${found}: Redis drops jobs when its ${maxMemory} bytes are full`, remedy)
    : warning(name, `${found}; nothing is dropped only because maxmemory is not limited`, remedy);
}

function persistenceCheck({ appendOnly, snapshots, saveProblem }: RedisFacts): Check {
  const name = 'queue persistence';
  if (saveProblem !== null) {
    return failed(name, saveProblem, 'see the log of Redis: a full disk, or a folder it may not write');
  }
  if (appendOnly) return ok(name, 'the append-only file is on');
  if (snapshots === null) {
    return skipped(
      name,
      'the append-only file is off, and the server does not say whether it makes snapshots',
    );
  }
  const lost = 'lost jobs are enqueued again from Postgres, which delays the night';
  return snapshots === ''
    ? warning(name, `Redis keeps nothing on disk: after a restart ${lost}`, 'set appendonly yes in Redis')
    : ok(name, `snapshots are made (${snapshots}); after a crash ${lost}`);
}

import { createLog } from '../../core/log.ts';
import { lostWindows } from '../../jobs/queue/enqueue.ts';
import { openQueues, queueTablesState } from '../../jobs/queue/queue.ts';
import { runningRuns } from '../../load/state/runs/runs.ts';
import { plural } from '../output.ts';
import { locationOf, readRedisFacts, reasonOf } from '../reachable.ts';
import {
  type Examination,
  type Found,
  failed,
  isBelow,
  type Outcome,
  ok,
  type Row,
  row,
  skipped,
  type With,
  warning,
} from './check.ts';

/** BullMQ refuses Redis older than the first; the second has everything it uses. */
const OLDEST_REDIS = '5.0.0';
const RECOMMENDED_REDIS = '6.2.0';

/** Checks Redis as the server of the queue, or the queue in Postgres if REDIS_URL is not set. */
async function checkQueue(found: Examination): Promise<Outcome> {
  const { REDIS_URL: url } = found.config;
  const check = url === undefined ? await postgresQueueCheck(found) : await redisCheck(found, url);
  if (check.state === 'ok') found.queue = true;
  return check;
}

async function postgresQueueCheck({ tables, config, lacks }: Examination): Promise<Outcome> {
  lacks.redis = 'the queue is in Postgres, which stores it on disk';
  const where = 'the queue is in Postgres (REDIS_URL is not set)';
  if (tables === undefined) return skipped(`${where}; see the database check`);
  const state = await queueTablesState(tables, config);
  if (state === 'current') return ok(`${where}; its tables are those of this version`);
  const found = `${where}; its tables are ${state === 'missing' ? 'not there yet' : 'of an older version'}`;
  return config.DATABASE_URL === undefined
    ? skipped(`${found}; the first command that uses them creates them`)
    : warning(found, 'run "eod migrate" as the owner of the tables');
}

async function redisCheck(found: Examination, url: string): Promise<Outcome> {
  const location = `Redis at ${locationOf(url)}`;
  try {
    found.redis = await readRedisFacts(url);
    return serverCheck(location, found.redis);
  } catch (error) {
    const remedy =
      'start the server, or correct host, port and password in REDIS_URL; without REDIS_URL the queue is in Postgres';
    return failed(`${location}: ${reasonOf(error)}`, remedy);
  }
}

/** Checks whether the queue has a job for every window that is to be requested. */
async function queueJobsCheck({ tables: db, config }: With<'tables'>): Promise<Outcome> {
  const runs = await runningRuns(db.drizzle);
  if (runs.length === 0) return ok('no run is under way');
  const queues = await openQueues({ db, config, log: createLog({ ...config, EOD_LOG_LEVEL: 'silent' }) });
  let lost = 0;
  try {
    for await (const windows of lostWindows({ db, queues }, runs)) lost += windows.length;
  } finally {
    await queues.close();
  }
  if (lost === 0) return ok('every open window has a job in the queue');
  return warning(
    `the queue has lost the jobs of ${plural(lost, 'open window')}`,
    'a worker enqueues them within half a minute; if none runs, "eod up" starts one',
  );
}

function serverCheck(location: string, { version, isReplica }: Found['redis']): Outcome {
  const found = `${location}: version ${version}`;
  if (isBelow(version, OLDEST_REDIS)) {
    return failed(`${found} is too old`, `upgrade it: ${RECOMMENDED_REDIS} or newer`);
  }
  if (isReplica) return failed(`${found}, a replica`, 'name the primary server in REDIS_URL');
  if (isBelow(version, RECOMMENDED_REDIS)) {
    return warning(`${found} is old`, `upgrade it: ${RECOMMENDED_REDIS} or newer is better`);
  }
  return ok(found);
}

function evictionCheck({ evictionPolicy, maxMemory }: Found['redis']): Outcome {
  if (evictionPolicy === 'noeviction') return ok('maxmemory-policy is noeviction');
  const found = `maxmemory-policy is ${evictionPolicy}`;
  const remedy = 'set maxmemory-policy noeviction in the configuration of Redis';
  return maxMemory > 0
    ? failed(`${found}: Redis drops jobs when its ${maxMemory} bytes are full`, remedy)
    : warning(`${found}; nothing is dropped only because maxmemory is not limited`, remedy);
}

function persistenceCheck({ appendOnly, snapshots, saveProblem }: Found['redis']): Outcome {
  if (saveProblem !== null) {
    return failed(saveProblem, 'see the log of Redis: a full disk, or a folder it may not write');
  }
  if (appendOnly) return ok('the append-only file is on');
  if (snapshots === null) {
    return skipped('the append-only file is off, and the server does not say whether it makes snapshots');
  }
  const lost = 'lost jobs are enqueued again from Postgres, which delays the night';
  return snapshots === ''
    ? warning(`Redis keeps nothing on disk: after a restart ${lost}`, 'set appendonly yes in Redis')
    : ok(`snapshots are made (${snapshots}); after a crash ${lost}`);
}

/** The checks of the queue, in the order in which to look at them. */
export const queueChecks: readonly Row[] = [
  row('queue', [], checkQueue, 'see REDIS_URL, and the checks of the database'),
  row('queue eviction', ['redis'], ({ redis }) => evictionCheck(redis)),
  row('queue persistence', ['redis'], ({ redis }) => persistenceCheck(redis)),
  row('queue jobs', ['tables', 'queue'], queueJobsCheck, 'see the check of the queue'),
];

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/core/config.ts';
import { createLog } from '../../src/core/log.ts';
import { openQueues, type Queues, type WindowJob } from '../../src/jobs/queue/queue.ts';
import { migrateDatabase } from '../../src/migrate.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { type RestartablePostgres, startRestartablePostgres } from '../support/chaos/postgres.ts';
import { startRestartableRedis } from '../support/chaos/redis.ts';
import { newDatabase } from '../support/chaos/workload.ts';
import { runCli, startCli } from '../support/cli.ts';
import { spawnEod } from '../support/eod.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const cwd = temporaryFolder();
const SOURCE = { EOD_BASE_URL: 'http://127.0.0.1:1', EOD_ACCESS_KEY: 'kiwi', EOD_HTTP_PORT: '0' };
const WAITING = /waiting up to/g;

let postgres: RestartablePostgres;
let url: string;

beforeAll(async () => {
  postgres = await startRestartablePostgres(temporaryFolder());
  url = await newDatabase(postgres.adminUrl, 'away');
});
afterAll(() => postgres.stop());

describe('a server that is unreachable when a command starts', () => {
  test('eod up waits for a Postgres nobody has started yet', async () => {
    await postgres.halt('fast');
    const up = spawnEod(['up'], { cwd, env: { ...SOURCE, DATABASE_URL: url } });
    await up.output(
      /waiting up to 60 s for Postgres at 127\.0\.0\.1:\d+\/away: .*ECONNREFUSED.*DATABASE_URL/,
    );
    await postgres.start();
    await up.output(/eod is up/);
    up.kill('SIGTERM');
    const { code, stderr } = await up.ended;
    expect(code).toBe(0);
    expect(stderr.match(WAITING)).toHaveLength(1);
  });

  test('eod up waits for a Postgres that lets nobody in just now', async () => {
    const guest = new pg.Client({ connectionString: url });
    await guest.connect();
    const halted = postgres.halt('smart');
    await waitFor(() => refusal(url).then((code) => code === '57P03'), { what: 'a refusal' });
    const up = spawnEod(['up', '--roles', 'scheduler'], { cwd, env: { ...SOURCE, DATABASE_URL: url } });
    await up.output(/waiting up to 60 s for Postgres at .*shutting down/);
    await guest.end();
    await halted;
    await postgres.start();
    await up.output(/eod is up/);
    up.kill('SIGTERM');
    expect((await up.ended).code).toBe(0);
  });

  test('eod up waits for Redis', async () => {
    const redis = await startRestartableRedis(temporaryFolder());
    await redis.halt();
    const env = { ...SOURCE, DATABASE_URL: url, REDIS_URL: redis.url };
    const up = spawnEod(['up'], { cwd, env });
    await up.output(/waiting up to 60 s for Redis at 127\.0\.0\.1:\d+: .*ECONNREFUSED.*REDIS_URL/);
    await redis.start();
    await up.output(/eod is up/);
    up.kill('SIGTERM');
    expect((await up.ended).code).toBe(0);
    await redis.stop();
  });

  test('no command waits for good, and a signal ends the waiting', async () => {
    await postgres.halt('fast');
    const env = { ...SOURCE, DATABASE_URL: url };
    const short = await runCli(['up'], { cwd, env: { ...env, EOD_SERVER_PATIENCE_MS: '1500' } });
    expect(short).toMatchObject({ code: 2, stdout: '' });
    const [waiting, end, ...more] = short.stderr.trim().split('\n');
    expect(waiting).toMatch(/^eod: waiting up to 2 s for Postgres at /);
    expect(end).toMatch(/^eod: cannot use Postgres at .*ECONNREFUSED.*\(see DATABASE_URL\)$/);
    expect(more).toEqual([]);

    const night = startCli(['nightly'], { cwd, env });
    // It is no service that somebody keeps running: it does not wait as long.
    await night.output(/waiting up to 10 s/);
    night.signal('SIGTERM');
    expect((await night.ended).code).toBe(143);
    await postgres.start();
  });

  test('a command that only reads does not wait: it reports the server at once', async () => {
    await postgres.halt('fast');
    const { code, stderr } = await runCli(['status'], { cwd, env: { DATABASE_URL: url } });
    await postgres.start();
    expect(code).toBe(2);
    expect(stderr).toMatch(/^eod: cannot use Postgres at .*ECONNREFUSED.*\n$/);
  });

  test.each([
    ['a wrong password', { password: 'wrong' }, /password authentication failed/],
    ['a database that is not there', { pathname: '/nowhere' }, /does not exist/],
  ])('%s is not waited for', async (_what, part, says) => {
    const wrong = Object.assign(new URL(url), part);
    const { code, stderr } = await runCli(['up'], { cwd, env: { ...SOURCE, DATABASE_URL: wrong.href } });
    expect(code).toBe(2);
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(WAITING);
  });
});

test('eod up outlives a Postgres that dies while the queue in it is being prepared', async () => {
  const queues = await openPrefix('blocked');
  await queues.close();
  const blocker = new pg.Client({ connectionString: url });
  blocker.on('error', () => undefined);
  await blocker.connect();
  await blocker.query('begin');
  await blocker.query('lock table blocked_queue.migration');
  const env = { ...SOURCE, DATABASE_URL: url, EOD_QUEUE_PREFIX: 'blocked', EOD_LOG_LEVEL: 'silent' };
  const up = spawnEod(['up'], { cwd, env });
  const waiting = "select from pg_locks where not granted and relation = 'blocked_queue.migration'::regclass";
  await waitFor(async () => (await query(url, waiting)).length > 0, { what: 'a queue being prepared' });
  await postgres.restart('immediate');
  await up.output(/eod is up/);
  expect(up.stderr().match(/trying again for up to 60 s/g)).toHaveLength(1);
  up.kill('SIGTERM');
  expect((await up.ended).code).toBe(0);
});

test('a worker on the queue in Postgres whose first connection fails comes to work all the same', async () => {
  const queues = await openPrefix('late');
  // Nobody new is let in from now on, and the queues' own connections keep it from ending.
  const halted = postgres.halt('smart');
  await waitFor(() => refusal(url).then((code) => code === '57P03'), { what: 'a refusal' });
  const done: number[] = [];
  const worker = queues.work<WindowJob>('backfill', async (job) => void done.push(job.data.windowId), {
    concurrency: 1,
    runRetryDelay: 100,
  });
  await waitFor(() => refusal(url).then((code) => code === '57P03'), { what: 'a refusal' });
  await postgres.halt('fast');
  await halted;
  await postgres.start();
  const data = { runId: 1, windowId: 7 };
  await queues.windows.backfill.addBulk([{ name: 'window', data, opts: {} }]);
  await waitFor(() => done.length > 0, { what: 'the job' });
  expect(done).toEqual([7]);
  await worker.close();
  await queues.close();
});

/** Opens the queues of a prefix in the database, which is migrated where nothing has been before. */
async function openPrefix(prefix: string): Promise<Queues> {
  const config = loadConfig({ DATABASE_URL: url, EOD_LOG_LEVEL: 'silent', EOD_QUEUE_PREFIX: prefix });
  const db = openDatabase({ url });
  try {
    await migrateDatabase(db);
    return await openQueues({ db, config, log: createLog(config) });
  } finally {
    await db.close();
  }
}

/** Code of the error a new connection meets, null when it is let in. */
async function refusal(address: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: address });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return null;
  } catch (error) {
    return (error as { code?: unknown }).code;
  } finally {
    await client.end().catch(() => undefined);
  }
}

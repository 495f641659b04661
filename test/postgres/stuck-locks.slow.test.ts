import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { type Database, DEFAULT_TIMEOUTS, endIfSilent, openDatabase } from '../../src/postgres/database.ts';
import { databaseError } from '../../src/postgres/database-errors.ts';
import { transaction } from '../../src/postgres/transaction.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { startCuttingProxy } from '../support/chaos/cutting-proxy.ts';
import { testDatabase } from '../support/database.ts';
import { backfill, ended, openPipeline, start } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';

const LOCK = 'lock table etl.windows in access exclusive mode';
const READ = 'select count(*) from etl.windows';

/** A database, its timeouts short, and a session of somebody else in it. */
async function openSetup(timeouts: Partial<Database['timeouts']>) {
  const { url } = await testDatabase();
  const retried: string[] = [];
  const db = openDatabase({
    url,
    connections: 2,
    timeouts: { ...DEFAULT_TIMEOUTS, ...timeouts },
    retry: { forMs: 60_000, onRetry: (sentence) => retried.push(sentence) },
  });
  onTestFinished(() => db.close());
  const other = new pg.Client({ connectionString: url, application_name: 'psql of ana' });
  await other.connect();
  onTestFinished(() => other.end());
  return { db, other, retried };
}

test('a lock that is not let go of is an error, and is not waited for again', async () => {
  const { db, other, retried } = await openSetup({ lockMs: 900 });
  await other.query('begin');
  await other.query(LOCK);
  const reads = [transaction(db, (tx) => tx.client.query(READ)), db.pool.query(READ)].map((read) =>
    read.then(() => null, databaseError),
  );
  for (const error of await Promise.all(reads)) {
    expect(error).toMatchObject({
      kind: 'database_locked',
      message: expect.stringMatching(/lock timeout \(55P03\)$/),
    });
  }
  expect(retried).toEqual([]);
  await other.query('rollback');
  await transaction(db, (tx) => tx.client.query(READ));
});

test('a session that holds a lock and does nothing any more is ended, and the next gets the lock', async () => {
  const { db, other } = await openSetup({ idleInTransactionMs: 300 });
  const client = await db.pool.connect();
  client.on('error', () => undefined);
  await client.query('begin');
  await client.query(LOCK);
  await other.query(READ);
  await expect(client.query('select 1')).rejects.toThrow();
  client.release(true);
});

test('a statement that takes too long is ended, and not tried again', async () => {
  const { db, retried } = await openSetup({ statementMs: 200 });
  const error = await db.pool.query('select pg_sleep(60)').catch(databaseError);
  expect(error).toMatchObject({ kind: 'database', message: expect.stringContaining('statement timeout') });
  expect(retried).toEqual([]);
});

test('every session lets the server notice a client that vanished', async () => {
  const { db } = await openSetup({});
  const { rows } = await db.pool.query<Record<string, string>>(
    `select current_setting('tcp_keepalives_idle') as idle, current_setting('tcp_user_timeout') as unconfirmed,
       current_setting('client_connection_check_interval') as running, current_setting('lock_timeout') as lock,
       current_setting('statement_timeout') as statement, current_setting('idle_in_transaction_session_timeout') as idle_in`,
  );
  expect(rows).toEqual([
    { idle: '30', unconfirmed: '60000', running: '30s', lock: '2min', statement: '1h', idle_in: '5min' },
  ]);
});

test('a window that meets a stuck lock says so, and is loaded once it is free', async () => {
  const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') };
  const sandbox = await startSandbox({ clock, instrumentsPerExchange: 5 });
  onTestFinished(() => sandbox.close());
  const pipeline = await openPipeline({
    sourceUrl: sandbox.url,
    clock,
    settings: { EOD_LOCK_TIMEOUT_MS: '1000' },
  });
  const other = new pg.Client({ connectionString: pipeline.db.url, application_name: 'psql of ana' });
  await other.connect();
  await other.query('begin; lock table market_history.bhavcopy_cm in access exclusive mode');
  const options = {
    from: '2025-09-12',
    to: '2025-09-12',
    operations: ['GetBhavCopyCM'],
    exchanges: ['NSE'],
  };
  const runId = await start(pipeline, backfill(options));
  const worker = await startWorker(pipeline);
  const error = await waitFor(async () => {
    const { rows } = await pipeline.db.pool.query<{ error: string | null }>('select error from etl.windows');
    return rows[0]?.error ?? null;
  });
  expect(error).toMatch(/lock timeout \(55P03\)/);
  // As docs/reliability.md says, while it waits again.
  const holder = await waitFor(async () => {
    const { rows } = await other.query<{ by: string }>(
      `select h.application_name as by from pg_stat_activity w join pg_stat_activity h on h.pid = any (pg_blocking_pids(w.pid))
        where w.datname = current_database() and w.wait_event_type = 'Lock'`,
    );
    return rows[0]?.by ?? null;
  });
  expect(holder).toBe('psql of ana');
  await other.end();
  expect(await ended(pipeline, runId)).toMatchObject({ state: 'completed', windows: { loaded: 1 } });
  await worker.stop();
});

test('a server that no longer responds during a statement counts as unreachable; a statement in its time does not', async () => {
  const proxy = await startCuttingProxy((await testDatabase()).url);
  const db = openDatabase({
    url: proxy.url,
    connections: 2,
    timeouts: { ...DEFAULT_TIMEOUTS, statementMs: 1_000 },
  });
  onTestFinished(async () => {
    await db.close();
    await proxy.close();
  });
  const idleClient = await db.pool.connect();
  idleClient.on('error', () => undefined);
  // Idle for longer than a statement may take, and a statement that takes its time.
  await db.pool.query('select pg_sleep(0.9)');
  await db.pool.query('select pg_sleep(0.9)');
  await idleClient.query('set statement_timeout = 0');
  endIfSilent(idleClient, 0);
  await idleClient.query('select pg_sleep(3.5)');
  endIfSilent(idleClient, 1_000);
  proxy.setSilent();
  for (const client of [db.pool, idleClient]) {
    await expect(
      client.query('select 1').catch((error) => Promise.reject(databaseError(error))),
    ).rejects.toMatchObject({ kind: 'database_unreachable' });
  }
  idleClient.release(true);
});

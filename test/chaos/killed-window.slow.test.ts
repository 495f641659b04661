import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { testDatabase } from '../support/database.ts';
import { type RunningEod, spawnEod } from '../support/eod.ts';
import { startServer } from '../support/http-server.ts';
import { backfill, ended, openPipeline, type Pipeline, start } from '../support/pipeline.ts';
import { rowsOf } from '../support/replay-support.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const DAYS = ['08', '09', '10'];
const NOT_READY = 'Authentication request received. Try request data in next moment.';

/** Series changes of a day as the source sends them. */
const changes = (day: string, from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => ({
    ChangeDate: `09-${day}-2025`,
    ScripId: `S${from + at}`,
    ScripName: `Company ${from + at}`,
    PrevSeries: 'EQ',
    ToSeries: 'BE',
    SavedAt: `09-${day}-2025 21:02:14`,
  }));

/** A source with given responses, and all that a worker process needs to call it. */
async function openParts(settings: Readonly<Record<string, string>> = {}) {
  const source = { response: '', requests: 0, mayRespond: Promise.resolve() };
  const sourceUrl = await startServer(async (_request, response) => {
    source.requests += 1;
    await source.mayRespond;
    const type = source.response.startsWith('{') ? 'application/json' : 'text/plain';
    response.writeHead(200, { 'content-type': type }).end(source.response);
  });
  const { url } = await testDatabase();
  const pipeline = await openPipeline({
    databaseUrl: url,
    sourceUrl,
    settings: { EOD_STALL_MS: '1000', ...settings },
  });
  const workers = new Set<RunningEod>();
  const work = () => {
    const worker = spawnEod(['up', '--roles', 'worker'], {
      env: pipeline.environment,
      cwd: temporaryFolder(),
    });
    workers.add(worker);
    return worker;
  };
  onTestFinished(() => {
    for (const worker of workers) worker.kill('SIGKILL');
  });
  return { source, url, pipeline, work };
}
type Parts = Awaited<ReturnType<typeof openParts>>;

async function kill(worker: RunningEod): Promise<void> {
  worker.kill('SIGKILL');
  await worker.ended;
}

/** Holds the lock of a table from before the response until the load waits for it and its worker is killed. */
async function killAt({ source, url, work }: Parts, table: string): Promise<void> {
  const holder = new pg.Client(url);
  await holder.connect();
  let respond = () => {};
  source.mayRespond = new Promise((resolve) => {
    respond = resolve;
  });
  const before = source.requests;
  try {
    const worker = work();
    await waitFor(() => source.requests > before, { what: 'the call', timeoutMs: 30_000 });
    await holder.query(`begin; lock table ${table} in access exclusive mode`);
    respond();
    const waiting = `select from pg_locks where not granted and relation = '${table}'::regclass`;
    await waitFor(async () => ((await holder.query(waiting)).rowCount ?? 0) > 0, {
      what: `a load that waits for ${table}`,
      timeoutMs: 30_000,
    });
    await kill(worker);
  } finally {
    respond();
    await holder.end();
  }
}

/** Everything that a load decides, without the numbers and moments of the loads. */
async function decided({ db }: Pipeline) {
  const all = async (text: string) => (await db.pool.query(text)).rows;
  return {
    windows: await all(
      `select run_id, state, suspicious, fetched, inserted, updated, unchanged, stale, withdrawn, rejected from etl.windows order by id`,
    ),
    withdrawals: await all(
      'select run_id, table_name, day, state, reason, unlisted_rows, max_rows, remaining_rows, rows from etl.withdrawals order by day',
    ),
    coverage: await all('select operation, day, state, records, diagnostic from etl.coverage order by day'),
    loads: await all('select run_id, changed_from, changed_to from etl.loads order by state'),
    rows: await rowsOf({ db }, 'market'),
    history: await rowsOf({ db }, 'market_history'),
  };
}

const REQUESTED = {
  operations: ['GetSeriesChange'],
  exchanges: ['NSE'],
  from: '2025-09-08',
  to: '2025-09-10',
  force: true,
};
const listing = (counts: readonly (readonly [number, number])[]) =>
  JSON.stringify({ Value: counts.flatMap(([from, to], at) => changes(DAYS[at] ?? '', from, to)) });

/** Loads three days, then a response that lacks half of the first, a few rows of the second and all of the third. */
async function loadTwice(parts: Parts, tables: readonly string[]) {
  const { source, pipeline, work } = parts;
  source.response = listing([
    [0, 100],
    [0, 100],
    [0, 100],
  ]);
  const first = work();
  await ended(pipeline, await start(pipeline, backfill(REQUESTED)));
  await kill(first);
  source.response = listing([
    [0, 50],
    [3, 102],
    [0, 0],
  ]);
  const runId = await start(pipeline, backfill(REQUESTED));
  for (const table of tables) await killAt(parts, table);
  work();
  const report = await ended(pipeline, runId);
  expect(report).toMatchObject({ state: 'completed', windows: { total: 1, loaded: 1 } });
  return decided(pipeline);
}

test('a window whose workers are killed while it withdraws rows ends as if none had been killed', async () => {
  const undisturbed = await loadTwice(await openParts(), []);
  expect(undisturbed.withdrawals).toMatchObject([
    { state: 'withheld', unlisted_rows: 50, max_rows: 100 },
    { state: 'withdrawn', unlisted_rows: 3 },
    { state: 'withheld', unlisted_rows: 100, max_rows: 100 },
  ]);
  const parts = await openParts();
  // After the merge has withdrawn rows, and just before the commit.
  const tables = ['etl.withdrawals', 'etl.loads'];
  expect(await loadTwice(parts, tables)).toEqual(undisturbed);
  expect(parts.source.requests).toBe(1 + tables.length + 1);
}, 120_000);

test('after a worker was killed, the time its window has waited for the response counts on; the time without a worker does not count', async () => {
  const parts = await openParts({ EOD_NOT_READY_BUDGET_MS: '2400', EOD_NOT_READY_WAIT_MS: '600' });
  const { source, pipeline, work } = parts;
  source.response = NOT_READY;
  const runId = await start(pipeline, backfill(REQUESTED));
  const worker = work();
  const waited = async () => {
    const result = await pipeline.db.pool.query<{ ms: number }>('select not_ready_ms as ms from etl.windows');
    return result.rows[0]?.ms ?? 0;
  };
  await waitFor(async () => (await waited()) >= 1_200, { everyMs: 5, timeoutMs: 30_000 });
  await kill(worker);
  work();
  expect(await ended(pipeline, runId)).toMatchObject({ state: 'failed', windows: { failed: 1 } });
  const windows = await pipeline.db.pool.query(
    'select not_ready_ms, failed_attempts, diagnostic from etl.windows',
  );
  expect(windows.rows).toEqual([{ not_ready_ms: 2_400, failed_attempts: 0, diagnostic: NOT_READY }]);
  // After 0, 600, 1200 and 2400 ms, and once more where the worker was killed in the middle of a call.
  expect(source.requests - 4).toBeOneOf([0, 1]);
}, 60_000);

import { expect, test, vi } from 'vitest';
import { listRuns, type RunReport, reportRun } from '../../../src/state/runs/reports.ts';
import { contextOf, newRun, newWindow, openPool, openStore } from '../../load/support.ts';

test('the list of runs holds the report of each, with the same number of queries however many there are', async () => {
  const store = await openStore();
  const { pool } = store;
  const runs = [await newRun(store), await newRun(store), await newRun(store)] as const;
  const [, second, first] = runs;
  for (const state of ['loaded', 'loaded', 'failed', 'skipped']) await newWindow(store, first, state);
  for (const state of ['blocked', 'skipped', 'pending']) await newWindow(store, second, state);
  await pool.query(
    "update etl.windows set fetched = 7, inserted = 7, exchange = 'BSE' where run_id = $1 and state = 'loaded'",
    [first],
  );
  await pool.query(
    "update etl.windows set error = 'as ' || state || id where state in ('failed', 'skipped')",
  );
  await pool.query("update etl.windows set suspicious = 'odd' where run_id = $1 and state = 'blocked'", [
    second,
  ]);
  // Open runs take a little longer each time they are looked at.
  await pool.query("update etl.runs set state = 'completed', finished_at = clock_timestamp()");

  const context = contextOf(store);
  const query = vi.spyOn(pool, 'query');
  const listed = await listRuns(context, 10);
  const queries = query.mock.calls.length;
  query.mockClear();
  expect(await listRuns(context, 1)).toEqual(listed.slice(0, 1));
  expect(query.mock.calls).toHaveLength(queries);
  query.mockRestore();

  const each: RunReport[] = [];
  for (const runId of runs.toReversed()) each.push(await reportRun(context, runId));
  expect(listed).toEqual(each);
  expect(listed.map(({ runId }) => runId)).toEqual(runs.toReversed());
  const [mixedReport, blockedReport, emptyReport] = listed;
  expect(emptyReport).toMatchObject({
    windows: { total: 0, open: 0 },
    operations: [],
    failures: [],
    skips: [],
  });
  expect(blockedReport).toMatchObject({
    windows: { total: 3, blocked: 1, skipped: 1, open: 1 },
    failures: [{ state: 'blocked', error: null }],
    suspicious: [{ operation: 'GetBhavCopyCM', exchange: 'NSE', from: '2025-01-01', reason: 'odd' }],
    skips: [{ reason: expect.stringMatching(/^as skipped\d+$/), windows: 1 }],
  });
  expect(mixedReport).toMatchObject({ fetched: 14, windows: { total: 4, loaded: 2, failed: 1, skipped: 1 } });
  expect(mixedReport?.operations.map(({ exchange, windows }) => [exchange, windows.total])).toEqual([
    ['BSE', 2],
    ['NSE', 2],
  ]);
  await expect(reportRun(context, 999)).rejects.toThrow('there is no run 999');
});

test('days are read alike whatever date style the database prefers', async () => {
  const store = await openStore();
  const runId = await newRun(store);
  await newWindow(store, runId, 'failed');
  const name = new URL(store.url).pathname.slice(1);
  await store.pool.query(`alter database "${name}" set datestyle to 'SQL, DMY'`);
  const { from, failures } = await reportRun(contextOf(openPool(store.url)), runId);
  expect([from, failures[0]?.to]).toEqual(['2025-01-01', '2025-01-01']);
});

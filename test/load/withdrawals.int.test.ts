import { expect, test } from 'vitest';
import type { Row } from '../../src/declaration/table.ts';
import { acceptWithdrawal } from '../../src/load/accept-withdrawal.ts';
import type { ResponseReading } from '../../src/load/fold/fold.ts';
import type { Database } from '../../src/postgres/database.ts';
import type { KeptResponse } from '../../src/state/responses/responses.ts';
import { reportRun } from '../../src/state/runs/reports.ts';
import { countSuspiciousWindows } from '../../src/state/windows/suspicious.ts';
import { listWithheldWithdrawals } from '../../src/state/withdrawals.ts';
import { bhavcopy, bhavRow, contextOf, loadBhav, newRun, newWindow, openStore } from './support.ts';

const DAY = '2025-08-29';
/** Reads what `loadFull` keeps. */
async function readAgain({ body }: KeptResponse): Promise<ResponseReading> {
  const { listed, days, mayBeEmpty, coverage } = JSON.parse(body.toString());
  return {
    batches: [{ table: bhavcopy, rows: listed }],
    fullSets: [{ table: bhavcopy, exchange: 'NSE', days, mayBeEmpty }],
    coverage,
    outcome: { state: 'loaded' },
    rejects: [],
    doubts: [],
  };
}
const ME = { by: 'me', readAgain, maxWithdrawShare: 0.1 };

const rows = (day: string, from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => bhavRow({ symbol: `S${from + at}`, trade_date: day }));

/** Loads a full response for some days: what became of it, and what its run says. */
async function loadFull(
  store: Database,
  listed: readonly Row[],
  days: { readonly from: string; readonly to: string } = { from: DAY, to: DAY },
  mayBeEmpty = false,
) {
  const runId = await newRun(store);
  const windowId = await newWindow(store, runId, 'running', days);
  const fullSets = [{ table: bhavcopy, exchange: 'NSE', days, mayBeEmpty }];
  const records = listed.filter((row) => row.trade_date === DAY).length;
  const state = records > 0 ? ('loaded' as const) : ('empty' as const);
  const coverage = [{ day: DAY, instrument: '', variant: '', state, records }];
  const body = Buffer.from(JSON.stringify({ listed, days, mayBeEmpty, coverage }));
  const counts = await loadBhav(store, listed, { fullSets, runId, windowId, coverage, body });
  const { withdrawals, suspicious } = await reportRun(contextOf(store), runId);
  return { withdrawn: counts?.withdrawn, withdrawals, suspicious: suspicious.map(({ reason }) => reason) };
}

const live = async ({ pool }: Database) =>
  (await pool.query('select count(*)::int as rows from market.bhavcopy_cm')).rows[0].rows as number;
const coverage = async ({ pool }: Database) =>
  (await pool.query("select state, records::int from etl.coverage where operation = 'GetBhavCopyCM'")).rows;

test('each day is compared with its own rows: a response that ends two days early removes neither', async () => {
  const store = await openStore();
  const days = Array.from({ length: 22 }, (_, at) => `2025-07-${String(at + 1).padStart(2, '0')}`);
  const month = { from: '2025-07-01', to: '2025-07-22' };
  await loadFull(
    store,
    days.flatMap((day) => rows(day, 0, 100)),
    month,
    true,
  );
  const early = await loadFull(
    store,
    days.slice(0, 20).flatMap((day) => rows(day, 0, 100)),
    month,
    true,
  );
  expect(early.withdrawn).toBe(0);
  expect(
    early.withdrawals.map(({ day, state, unlistedRows, remainingRows }) => [
      day,
      state,
      unlistedRows,
      remainingRows,
    ]),
  ).toEqual([
    ['2025-07-21', 'withheld', 100, 0],
    ['2025-07-22', 'withheld', 100, 0],
  ]);
  expect(early.suspicious).toEqual([expect.stringMatching(/of 2025-07-21 .*of 2025-07-22/)]);
  expect(await live(store)).toBe(2_200);
  // 50 of the 600 rows of six days, all of one of them.
  const half = await loadFull(
    store,
    days.flatMap((day, at) => rows(day, at === 3 ? 50 : 0, 100)),
    month,
    true,
  );
  expect(half).toMatchObject({
    withdrawn: 0,
    withdrawals: [{ day: '2025-07-04', unlistedRows: 50, state: 'withheld' }],
  });
});

test('rows are not withdrawn a few at a time: a day is compared with the most rows it ever had', async () => {
  const store = await openStore();
  await loadFull(store, rows(DAY, 0, 20));
  expect(await loadFull(store, rows(DAY, 5, 20))).toMatchObject({ withdrawn: 5, suspicious: [] });
  const second = await loadFull(store, rows(DAY, 10, 20));
  expect(second).toMatchObject({
    withdrawn: 0,
    suspicious: [expect.stringMatching(/^5 of 15 rows .*\(there once were 20\); more than may be withdrawn/)],
  });
  expect(await live(store)).toBe(15);
});

test('what was withheld is listed with rows, until a person or a better response decides', async () => {
  const store = await openStore();
  await loadFull(store, rows(DAY, 0, 20));
  await loadFull(store, rows(DAY, 12, 20));
  const [withheld, ...more] = await listWithheldWithdrawals(store.drizzle, 10, 3);
  expect(more).toEqual([]);
  expect(withheld).toMatchObject({
    day: DAY,
    unlistedRows: 12,
    remainingRows: 8,
    maxRows: 20,
    table: 'bhavcopy_cm',
  });
  expect(withheld?.rows).toHaveLength(3);
  expect(withheld?.rows[0]).toMatchObject({ exchange: 'NSE', series: 'EQ', trade_date: DAY });
  // The day comes in full again: nothing is left to decide.
  await loadFull(store, rows(DAY, 0, 20));
  expect(await listWithheldWithdrawals(store.drizzle, 10, 3)).toEqual([]);
  expect(await acceptWithdrawal(store, withheld?.id ?? 0, ME)).toBeNull();

  await loadFull(store, rows(DAY, 12, 20));
  const [again] = await listWithheldWithdrawals(store.drizzle, 10, 3);
  expect(await countSuspiciousWindows(store.drizzle)).toMatchObject([{ windows: 1 }]);
  const before = (await store.pool.query('select market.state()::int as state')).rows[0].state;
  expect(await acceptWithdrawal(store, again?.id ?? 0, ME)).toMatchObject({
    withdrawn: 12,
    left: 8,
    day: DAY,
  });
  expect(await live(store)).toBe(8);
  expect(await coverage(store)).toEqual([{ state: 'loaded', records: 8 }]);
  // One was settled by a better response, the other by a person.
  expect(await countSuspiciousWindows(store.drizzle)).toEqual([]);
  const past = await store.pool.query(
    `select (select count(*)::int from market_history.bhavcopy_cm_at(${before})) as before,
       (select count(*)::int from market_history.bhavcopy_cm_at(${before + 1})) as after`,
  );
  expect(past.rows).toEqual([{ before: 20, after: 8 }]);
  // From now on eight is what the day has.
  expect(await loadFull(store, rows(DAY, 15, 20))).toMatchObject({ withdrawn: 3, suspicious: [] });
  expect(await acceptWithdrawal(store, again?.id ?? 0, ME)).toBeNull();
});

test('where a trading day always has rows, a response without any withdraws none, however few there are', async () => {
  const store = await openStore();
  await loadFull(store, rows(DAY, 0, 1));
  expect(await loadFull(store, [])).toMatchObject({
    withdrawn: 0,
    withdrawals: [{ day: DAY, unlistedRows: 1, remainingRows: 0, state: 'withheld' }],
  });
  expect(await live(store)).toBe(1);
});

test('a day that loses its last rows is loaded no longer, and the report says so', async () => {
  const store = await openStore();
  await loadFull(store, rows(DAY, 0, 3), undefined, true);
  expect(await coverage(store)).toEqual([{ state: 'loaded', records: 3 }]);
  const withdrawnAgain = await loadFull(store, [], undefined, true);
  expect(withdrawnAgain).toMatchObject({
    withdrawn: 3,
    withdrawals: [{ day: DAY, unlistedRows: 3, remainingRows: 0, state: 'withdrawn' }],
  });
  expect(await coverage(store)).toEqual([{ state: 'empty', records: 0 }]);
});

import { expect, test } from 'vitest';
import type { Row } from '../../src/declaration/table.ts';
import type { Database } from '../../src/postgres/database.ts';
import { readStateNumber } from '../../src/state/loads/state-numbers.ts';
import { bhavcopy, bhavRow, loadBhav, newRun, newWindow, openStore, type Response } from './support.ts';

const DAY = '2025-08-29';
const AT_NINE = `${DAY} 21:00:00+05:30`;
const HALF_PAST = `${DAY} 21:30:00+05:30`;
const AT_TEN = `${DAY} 22:00:00+05:30`;
const days = { from: DAY, to: DAY };
const whole = [{ table: bhavcopy, exchange: 'NSE', days, mayBeEmpty: false }];

/** Twenty records of the day, saved at this time. */
const tradingDay = (close: number, source_saved_at: string): Row[] =>
  Array.from({ length: 20 }, (_, at) =>
    bhavRow({ symbol: `S${String(at).padStart(2, '0')}`, close_price: String(close + at), source_saved_at }),
  );

async function rowOf({ pool }: Database, query: string, values: unknown[] = []) {
  return (await pool.query(query, values)).rows[0];
}

/** A moment between two loads, by the server's clock and to the microsecond. */
async function moment(store: Database): Promise<string> {
  return (await rowOf(store, 'select clock_timestamp()::text as now')).now;
}

const asOf = (store: Database, at: string) =>
  rowOf(
    store,
    `select count(*)::int as rows, sum(close_price)::int as closes,
       max(revision) as revision from market_history.bhavcopy_cm_as_of($1)`,
    [at],
  );

test('a day, its correction, a late stale response, one with three rows less and the day again', async () => {
  const store = await openStore();
  const before = await moment(store);
  const moments: string[] = [];
  const step = async (rows: readonly Row[]) => {
    const counts = await loadBhav(store, rows, { fullSets: whole });
    moments.push(await moment(store));
    return counts;
  };
  expect(await step(tradingDay(100, AT_NINE))).toMatchObject({ inserted: 20, withdrawn: 0 });
  expect(await step(tradingDay(200, AT_TEN))).toMatchObject({ updated: 20, withdrawn: 0 });
  expect(await step(tradingDay(150, HALF_PAST))).toMatchObject({ stale: 20, updated: 0 });
  expect(await step(tradingDay(200, AT_TEN).slice(3))).toMatchObject({ unchanged: 17, withdrawn: 3 });
  // Listed again, though with old values: the rows are back, the newer values stay.
  expect(await step(tradingDay(150, HALF_PAST))).toMatchObject({ stale: 20, withdrawn: 0 });
  expect(await step(tradingDay(200, AT_TEN))).toMatchObject({ unchanged: 20, updated: 0 });

  expect(await asOf(store, before)).toMatchObject({ rows: 0 });
  const [first, ...later] = await Promise.all(moments.map((at) => asOf(store, at)));
  expect(first).toEqual({ rows: 20, closes: 2190, revision: 1 });
  expect(later.map(({ closes }) => closes)).toEqual([4190, 4190, 4190 - 603, 4190, 4190]);
  expect(later.map(({ rows }) => rows)).toEqual([20, 20, 17, 20, 20]);
  expect(later.map(({ revision }) => revision)).toEqual([2, 2, 2, 3, 3]);

  // 20 corrections and 3 withdrawals; but for the withdrawn, each revision ends where the next begins.
  expect(
    await rowOf(
      store,
      'select count(*)::int as kept, count(*) filter (where withdrawn)::int as withdrawn from market_history.bhavcopy_cm',
    ),
  ).toEqual({ kept: 23, withdrawn: 3 });
  const broken = await rowOf(
    store,
    `select count(*)::int as broken from (
       select valid_from, valid_to, withdrawn, lead(valid_from) over (partition by symbol order by valid_from) as next
         from (select symbol, valid_from, valid_to, withdrawn from market_history.bhavcopy_cm
               union all select symbol, last_changed_at, 'infinity', false from market.bhavcopy_cm) versions) pairs
      where valid_from >= valid_to or (next is not null and case when withdrawn then next <= valid_to else next <> valid_to end)`,
  );
  expect(broken).toEqual({ broken: 0 });

  const changesBetween = async (from: number, to: number) => {
    const [before, after] = await Promise.all(
      [from, to].map(async (at) => (await readStateNumber(store.drizzle, moments[at] as string)).stateNumber),
    );
    const { rows } = await store.pool.query<{
      change: string;
      symbol: string;
      close_price: string;
      old: object;
    }>(
      'select change, symbol, close_price, old from market_history.bhavcopy_cm_changes($1, $2) order by symbol',
      [before, after],
    );
    return rows;
  };
  const corrected = await changesBetween(0, 1);
  expect(corrected.map(({ change }) => change)).toEqual(Array(20).fill('update'));
  expect(corrected[0]).toMatchObject({ symbol: 'S00', close_price: '200', old: { close_price: 100 } });
  expect((await changesBetween(2, 3)).map(({ change }) => change)).toEqual(Array(3).fill('withdraw'));
  expect((await changesBetween(3, 5)).map(({ change }) => change)).toEqual(Array(3).fill('relist'));
});

test('more missing rows than allowed are not withdrawn, and the window says so', async () => {
  const store = await openStore();
  await loadBhav(store, tradingDay(100, AT_NINE), { fullSets: whole });
  const runId = await newRun(store);
  const windowId = await newWindow(store, runId);
  const counts = await loadBhav(store, tradingDay(100, AT_NINE).slice(6), {
    fullSets: whole,
    runId,
    windowId,
  });
  expect(counts).toMatchObject({ unchanged: 14, withdrawn: 0 });
  const { suspicious } = await rowOf(store, 'select suspicious from etl.windows where id = $1', [windowId]);
  expect(suspicious).toMatch(/^6 of 20 rows of market\.bhavcopy_cm/);
  // Five may always go, whatever their share.
  expect(await loadBhav(store, tradingDay(100, AT_NINE).slice(5), { fullSets: whole })).toMatchObject({
    withdrawn: 5,
  });
});

/** Loads a response in a window of its own: what became of it, and what the window found suspicious. */
async function loadAndReport(store: Database, rows: readonly Row[], response: Partial<Response> = {}) {
  const runId = await newRun(store);
  const windowId = await newWindow(store, runId);
  const counts = await loadBhav(store, rows, { fullSets: whole, runId, windowId, ...response });
  const window = await rowOf(store, 'select suspicious from etl.windows where id = $1', [windowId]);
  return { withdrawn: counts?.withdrawn, suspicious: window.suspicious as string | null };
}

test('new rows do not make up for old rows that are missing', async () => {
  const store = await openStore();
  const rows = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => bhavRow({ symbol: `S${from + at}` }));
  await loadBhav(store, rows(0, 60), { fullSets: whole });
  // Seven of sixty are missing; counted with the four hundred new ones they would be few.
  expect(await loadAndReport(store, rows(7, 460))).toEqual({
    withdrawn: 0,
    suspicious: expect.stringMatching(/^7 of 60 rows of market\.bhavcopy_cm/),
  });
  expect(await loadAndReport(store, rows(46, 460))).toEqual({ withdrawn: 46, suspicious: null });
  // Rows that come back are no more than new ones: 45 of 414 are missing, which is too much.
  expect(await loadAndReport(store, [...rows(0, 46), ...rows(91, 460)])).toEqual({
    withdrawn: 0,
    suspicious: expect.stringMatching(/^45 of 414 rows/),
  });
});

test('the last rows of a trading day that always has rows are not withdrawn, however few they are', async () => {
  const store = await openStore();
  const next = '2025-09-01';
  const both = [{ ...whole[0], days: { from: DAY, to: next } }] as typeof whole;
  const old = [bhavRow({ symbol: 'A' }), bhavRow({ symbol: 'B' })];
  const rows = [...old, bhavRow({ symbol: 'A', trade_date: next })];
  await loadBhav(store, rows, { fullSets: both });
  expect(await loadAndReport(store, [], { fullSets: whole })).toEqual({
    withdrawn: 0,
    suspicious:
      '2 of 2 rows of market.bhavcopy_cm were not listed any more, and no other row of their day was; the response is taken as incomplete, so none was withdrawn',
  });
  // Each day is compared with its own rows.
  expect(await loadAndReport(store, old.slice(1), { fullSets: both })).toMatchObject({
    withdrawn: 1,
    suspicious: expect.stringMatching(
      /^1 of 1 rows of market\.bhavcopy_cm of 2025-09-01 .*no other row of their day/,
    ),
  });
  expect(await loadAndReport(store, [...rows.slice(1)], { fullSets: both })).toEqual({
    withdrawn: 0,
    suspicious: null,
  });
  // Where a trading day may well have none, a few may go.
  const mayBeEmpty = both.map((fullSet) => ({ ...fullSet, mayBeEmpty: true }));
  expect(await loadAndReport(store, [], { fullSets: mayBeEmpty })).toEqual({
    withdrawn: 2,
    suspicious: null,
  });
});

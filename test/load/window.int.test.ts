import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { operationNamed } from '../../src/operations/registry.ts';
import type { Database } from '../../src/postgres/database.ts';
import type { CoverageEntry } from '../../src/state/registers.ts';
import { bhavcopy, bhavRow, load, loadBhav, newRun, newWindow, openStore } from './support.ts';

const day = (state: CoverageEntry['state'], records: number, diagnostic?: string): CoverageEntry => ({
  day: '2025-08-29',
  instrument: '',
  variant: '',
  state,
  records,
  ...(diagnostic === undefined ? {} : { diagnostic }),
});

const REJECTS = [
  {
    position: 1,
    record: { Symbol: 'X', Note: 'a "quote" \\ and ₹' },
    problems: [{ path: 'TradDt', message: 'is missing' }],
  },
  { position: 4, record: null, problems: [{ path: '', message: 'is no object' }] },
];

describe('a window', () => {
  let store: Database;
  let runId: number;
  beforeAll(async () => {
    store = await openStore();
    runId = await newRun(store);
  });
  beforeEach(async () => {
    await store.pool.query(
      'truncate market.bhavcopy_cm, market_history.bhavcopy_cm, etl.rejected_records, etl.coverage',
    );
  });

  const rowsOf = async (query: string, values: unknown[] = []) =>
    (await store.pool.query(query, values)).rows;
  const rowCount = async (table: string) =>
    (await rowsOf(`select count(*)::int as rows from ${table}`))[0].rows as number;

  test('rows, rejects, coverage and state are stored together, and the counts add up', async () => {
    const windowId = await newWindow(store, runId);
    const counts = await loadBhav(store, [bhavRow({ symbol: 'A' }), bhavRow({ symbol: 'A' })], {
      runId,
      windowId,
      rejects: REJECTS,
      coverage: [day('loaded', 2)],
    });
    const sum = {
      fetched: 4,
      inserted: 1,
      updated: 0,
      unchanged: 0,
      stale: 0,
      duplicate: 1,
      rejected: 2,
      withdrawn: 0,
    };
    expect(counts).toEqual(sum);
    const [window] = await rowsOf('select * from etl.windows where id = $1', [windowId]);
    expect(window).toMatchObject({ state: 'loaded', error: null, bytes: '1' });
    expect(Object.fromEntries(Object.keys(sum).map((name) => [name, Number(window[name])]))).toEqual(sum);
    expect(window.finished_at).toBeInstanceOf(Date);
    expect(
      await rowsOf(
        'select position, record, problems, resolved_at, window_id::int from etl.rejects order by 1',
      ),
    ).toEqual(REJECTS.map((reject) => ({ ...reject, resolved_at: null, window_id: windowId })));
    expect(await rowsOf('select state, records::int, window_id::int from etl.coverage')).toEqual([
      { state: 'loaded', records: 2, window_id: windowId },
    ]);
  });

  test('the database itself refuses counts that do not add up', async () => {
    const windowId = await newWindow(store, runId);
    await expect(
      store.pool.query('update etl.windows set fetched = 3, inserted = 2 where id = $1', [windowId]),
    ).rejects.toMatchObject({ cause: { code: '23514', constraint: 'windows_counts' } });
  });

  test('thousands of rejects are all kept', async () => {
    const rejects = Array.from({ length: 3_000 }, (_, position) => ({
      position,
      record: { position, text: 'x'.repeat(3_000) },
      problems: [{ path: 'p', message: 'm' }],
    }));
    expect(await loadBhav(store, [], { runId, rejects })).toMatchObject({ fetched: 3_000, rejected: 3_000 });
    expect(await rowCount('etl.rejects')).toBe(3_000);
  });

  test('a load that fails leaves nothing behind, and the window open', async () => {
    const windowId = await newWindow(store, runId);
    const rows = [bhavRow({ symbol: 'A' }), bhavRow({ symbol: 'B', close_price: 'not a number' })];
    await expect(
      loadBhav(store, rows, { runId, windowId, rejects: REJECTS, coverage: [day('loaded', 2)] }),
    ).rejects.toMatchObject({ name: 'PipelineError', kind: 'database' });
    expect(await rowCount('market.bhavcopy_cm')).toBe(0);
    expect(await rowCount('etl.rejects')).toBe(0);
    expect(await rowCount('etl.coverage')).toBe(0);
    expect(await rowsOf('select state, fetched::int from etl.windows where id = $1', [windowId])).toEqual([
      { state: 'running', fetched: 0 },
    ]);
    // The pool has discarded the broken connection and goes on.
    expect(await loadBhav(store, rows.slice(0, 1), { runId, windowId })).toMatchObject({ inserted: 1 });
  });

  test('a failure after the merge takes the merge back too', async () => {
    const windowId = await newWindow(store, runId);
    const wrong = { ...day('loaded', 1), day: '2025-02-30' };
    await expect(
      loadBhav(store, [bhavRow({ symbol: 'A' })], { runId, windowId, coverage: [wrong] }),
    ).rejects.toMatchObject({ kind: 'database' });
    expect(await rowCount('market.bhavcopy_cm')).toBe(0);
  });

  test.each(['loaded', 'empty', 'skipped', 'blocked', 'failed', 'cancelled'])(
    'one that is %s already is left alone',
    async (state) => {
      const windowId = await newWindow(store, runId, state);
      const before = await rowsOf('select *, xmin::text from etl.windows where id = $1', [windowId]);
      const response = { runId, windowId, rejects: REJECTS, coverage: [day('loaded', 1)] };
      expect(await loadBhav(store, [bhavRow({ symbol: 'A' })], response)).toBeNull();
      expect(await rowsOf('select *, xmin::text from etl.windows where id = $1', [windowId])).toEqual(before);
      expect(await rowCount('market.bhavcopy_cm')).toBe(0);
      expect(await rowCount('etl.rejects')).toBe(0);
      expect(await rowCount('etl.coverage')).toBe(0);
    },
  );

  test('one response may fill several tables', async () => {
    const facts = operationNamed('GetFinancialRatios').shapes[0].table;
    const fact = Object.fromEntries(facts.fields.map((field) => [field.column, null]));
    const key = {
      exchange: 'BSE',
      symbol: 'TCS',
      nature_of_report: 'Standalone',
      variant: 'eod',
      period: '',
    };
    const counts = await load(store, {
      batches: [
        { table: facts, rows: [{ ...fact, ...key, as_of_date: '2025-02-27', fact_key: 'EPS', unit_id: '' }] },
        { table: bhavcopy, rows: [bhavRow({ symbol: 'A' })] },
      ],
    });
    expect(counts).toMatchObject({ fetched: 2, inserted: 2 });
  });

  test('what was loaded stays loaded, whatever a later call meets', async () => {
    const state = async () =>
      (await rowsOf('select state, records::int, diagnostic from etl.coverage'))[0] as unknown;
    await loadBhav(store, [], { runId, coverage: [day('failed', 0, 'no response')] });
    expect(await state()).toEqual({ state: 'failed', records: 0, diagnostic: 'no response' });
    await loadBhav(store, [], { runId, coverage: [day('loaded', 7)] });
    expect(await state()).toEqual({ state: 'loaded', records: 7, diagnostic: null });
    await loadBhav(store, [], { runId, coverage: [day('blocked', 0, 'Key Expired.')] });
    expect(await state()).toEqual({ state: 'loaded', records: 7, diagnostic: 'Key Expired.' });
  });
});

import { expect, test } from 'vitest';
import { operationNamed } from '../../src/operations/registry.ts';
import type { Row } from '../../src/operations/table.ts';
import { randomFrom } from '../support/chaos/random.ts';
import { bhavcopy, bhavRow, load, loadBhav, newRun, newWindow, openPool, openStore } from './support.ts';

const DAYS = ['2025-08-28', '2025-08-29'];
const WRITERS = 4;
const LOADS = 60;
const categories = operationNamed('GetCorporateActionsCategories').shapes.flatMap(({ table }) =>
  table.name === 'corporate_action_categories' ? [table] : [],
)[0];
if (categories === undefined) throw new Error('no operation declares the table of categories');

/** What a query sees: the number of its state, and all rows of two tables, in one snapshot. */
const SEEN = (bhav: string, category: string) => `
  select md5(concat(
    (select string_agg(t::text, '|' order by t::text) from ${bhav} t),
    (select string_agg(t::text, '|' order by t::text) from ${category} t))) as rows`;

test('thousands of states that were seen while loads were under way are shown again, to the row', async () => {
  const store = await openStore();
  const writers = Array.from({ length: WRITERS }, () => openPool(store.url, 2));
  // No two are fetched in one millisecond: answers without a body to the same question would then be one answer.
  let fetched = Date.now();
  const write = async (at: number) => {
    const random = randomFrom(7 + at);
    const pick = (below: number) => Math.floor(random() * below);
    const writer = writers[at] ?? store;
    for (let done = 0; done < LOADS; done += 1) {
      if (pick(4) === 0) {
        const rows = Array.from(
          { length: 8 },
          (_, code): Row => ({
            exchange: 'BSE',
            purpose_code: `P${code}`,
            corporate_action_type: String(pick(3)),
            source_received_at: null,
            source_saved_at: null,
          }),
        ).filter(() => pick(6) > 0);
        const fullSets = [{ table: categories, exchange: 'BSE', days: null, mayBeEmpty: false }];
        const batches = [{ table: categories, rows }];
        await load(writer, { batches, fullSets, exchange: 'BSE', fetchedAt: new Date(fetched++) });
        continue;
      }
      const day = DAYS[pick(DAYS.length)] as string;
      const rows = Array.from({ length: 30 }, (_, code) =>
        bhavRow({ symbol: `S${code}`, trade_date: day, close_price: String(pick(3)) }),
      ).filter(() => pick(12) > 0);
      const fullSets = [
        { table: bhavcopy, exchange: 'NSE', days: { from: day, to: day }, mayBeEmpty: false },
      ];
      await loadBhav(writer, rows, { fullSets, fetchedAt: new Date(fetched++) });
    }
  };
  let writing = true;
  const samples: { readonly state: number; readonly rows: string; readonly at: string }[] = [];
  const sample = async () => {
    const reader = openPool(store.url, 1);
    while (writing || samples.length < 2_000) {
      const seen = await reader.pool.query(
        `select market.state()::int as state, clock_timestamp()::text as at, s.rows
           from (${SEEN('market.bhavcopy_cm', 'market.corporate_action_categories')}) s`,
      );
      samples.push(seen.rows[0]);
    }
  };
  const sampling = Promise.all([sample(), sample()]);
  await Promise.all(writers.map((_, at) => write(at)));
  writing = false;
  await sampling;

  const states = new Map<number, string>();
  for (const state of new Set(samples.map((one) => one.state))) {
    const found = await store.pool.query(
      SEEN(`market.bhavcopy_cm_at(${state})`, `market.corporate_action_categories_at(${state})`),
    );
    states.set(state, found.rows[0].rows);
  }
  const deviations = samples.filter(({ state, rows }) => states.get(state) !== rows);
  console.log(`${samples.length} samples of ${states.size} states, ${deviations.length} deviations`);
  expect(samples.length).toBeGreaterThanOrEqual(2_000);
  expect(states.size).toBeGreaterThan(50);
  expect(deviations).toEqual([]);

  const numbers = await store.pool.query(
    'select count(*)::int as loads, min(state)::int as first, max(state)::int as last from etl.loads',
  );
  expect(numbers.rows).toEqual([{ loads: WRITERS * LOADS, first: 1, last: WRITERS * LOADS }]);
  const order = await store.pool.query(
    `select count(*)::int as backwards from etl.loads a join etl.loads b on b.state = a.state + 1
      where b.committed_at < a.committed_at`,
  );
  expect(order.rows).toEqual([{ backwards: 0 }]);
  // As of a moment: the last state that was committed by then.
  const asOf = await store.pool.query(
    `select l.state::int as state from etl.loads l where market.state(l.committed_at) <> (
       select max(m.state) from etl.loads m where m.committed_at <= l.committed_at)`,
  );
  expect(asOf.rows).toEqual([]);
});

test('a number that no state has is an error that names the newest, also where no row would be found', async () => {
  const store = await openStore();
  await loadBhav(store, [bhavRow({ symbol: 'A' })]);
  for (const [number, name] of Object.entries({ 2: '2', 99999: '99999', '-1': '-1', null: 'null' })) {
    for (const rest of ['', "where exchange = 'none'", 'limit 1']) {
      for (const table of ['bhavcopy_cm', 'series_changes']) {
        const asked = store.pool.query(`select * from market.${table}_at(${number}) ${rest}`);
        await expect(asked).rejects.toMatchObject({
          cause: { code: '22023', message: `there is no state ${name}: the newest is 1` },
        });
      }
    }
  }
  const prepared = { name: 'at', text: 'select count(*)::int as rows from market.bhavcopy_cm_at($1)' };
  await expect(store.pool.query({ ...prepared, values: [2] })).rejects.toMatchObject({
    cause: { code: '22023' },
  });
  expect((await store.pool.query({ ...prepared, values: [1] })).rows).toEqual([{ rows: 1 }]);
});

test('a load that was rolled back, or a preview, makes no state', async () => {
  const store = await openStore();
  const state = async () => (await store.pool.query('select market.state()::int as state')).rows[0].state;
  await loadBhav(store, [bhavRow({ symbol: 'A' })]);
  expect(await state()).toBe(1);
  await loadBhav(store, [bhavRow({ symbol: 'B' })], { preview: true });
  await expect(loadBhav(store, [bhavRow({ symbol: 'C', close_price: 'no number' })])).rejects.toThrow();
  const runId = await newRun(store);
  expect(await loadBhav(store, [], { runId, windowId: await newWindow(store, runId, 'loaded') })).toBeNull();
  expect(await state()).toBe(1);
  await loadBhav(store, [bhavRow({ symbol: 'B' })]);
  expect(await state()).toBe(2);
  const found = await store.pool.query(
    `select (select count(*) from market.bhavcopy_cm_at(0))::int as none, (select count(*) from market.bhavcopy_cm_at(1))::int as one,
       (select count(*) from market.bhavcopy_cm_at(market.state()))::int as two`,
  );
  expect(found.rows).toEqual([{ none: 0, one: 1, two: 2 }]);
});

test('a row that was withdrawn leaves its table, and returns with its next revision and its first day', async () => {
  const store = await openStore();
  const day = { from: '2025-08-29', to: '2025-08-29' };
  const fullSets = [{ table: bhavcopy, exchange: 'NSE', days: day, mayBeEmpty: false }];
  const both = [bhavRow({ symbol: 'A' }), bhavRow({ symbol: 'B' })];
  await loadBhav(store, both, { fullSets });
  const [first] = (await store.pool.query("select * from market.bhavcopy_cm where symbol = 'B'")).rows;
  await loadBhav(store, both.slice(0, 1), { fullSets });
  const live = async () =>
    (await store.pool.query('select symbol, revision from market.bhavcopy_cm order by 1')).rows;
  expect(await live()).toEqual([{ symbol: 'A', revision: 1 }]);
  const kept = await store.pool.query(
    'select symbol, revision, withdrawn, load_id::int, replaced_by_load_id::int as by from market_history.bhavcopy_cm',
  );
  expect(kept.rows).toEqual([
    { symbol: 'B', revision: 1, withdrawn: true, load_id: Number(first.load_id), by: expect.any(Number) },
  ]);
  await loadBhav(store, both, { fullSets });
  expect(await live()).toEqual([
    { symbol: 'A', revision: 1 },
    { symbol: 'B', revision: 2 },
  ]);
  const [back] = (await store.pool.query("select * from market.bhavcopy_cm where symbol = 'B'")).rows;
  expect(back.first_loaded_at).toEqual(first.first_loaded_at);
});

test('however often a row changes, goes and returns, its revisions follow one another, also after the clock was set back', async () => {
  const store = await openStore();
  const day = { from: '2025-08-29', to: '2025-08-29' };
  const fullSets = [{ table: bhavcopy, exchange: 'NSE', days: day, mayBeEmpty: true }];
  const closes = ['1', null, '2', null, '3', '4', null, '5', '6'];
  for (const [at, close] of closes.entries()) {
    const listed = close === null ? [] : [bhavRow({ symbol: 'A', close_price: close })];
    await loadBhav(store, [bhavRow({ symbol: 'B' }), ...listed], { fullSets });
    // An hour ahead; everything after it has to be later still.
    if (at === 0)
      await store.pool.query("update market.bhavcopy_cm set last_changed_at = now() + interval '1 hour'");
  }
  const found = await store.pool.query(
    `select revision, close_price::int::text as close, withdrawn, valid_from < valid_to as "lastsAWhile",
         valid_from >= coalesce(lag(valid_to) over (order by revision), '-infinity') as "isAfterOneBefore"
       from (select revision, close_price, valid_from, valid_to, withdrawn from market_history.bhavcopy_cm where symbol = 'A'
             union all select revision, close_price, last_changed_at, 'infinity', false from market.bhavcopy_cm where symbol = 'A') r
      order by revision`,
  );
  const shown = closes.flatMap((close, at) =>
    close === null
      ? []
      : [{ close, withdrawn: closes[at + 1] === null, lastsAWhile: true, isAfterOneBefore: true }],
  );
  expect(found.rows).toEqual(shown.map((row, at) => ({ revision: at + 1, ...row })));
});

test('a day in a past state costs milliseconds, however many loads and revisions there are', async () => {
  const store = await openStore();
  const rows = (day: string, close: string) =>
    Array.from({ length: 500 }, (_, at) =>
      bhavRow({ symbol: `S${at}`, trade_date: day, close_price: close }),
    );
  for (const close of ['1', '2', '3']) {
    for (let day = 10; day < 20; day += 1) await loadBhav(store, rows(`2025-07-${day}`, close));
  }
  await store.pool.query('analyze');
  const client = await store.pool.connect();
  try {
    const explained = await client.query(
      "explain (analyze, format json) select * from market.bhavcopy_cm_at(12) where exchange = 'NSE' and trade_date = '2025-07-11'",
    );
    const plan = explained.rows[0]['QUERY PLAN'][0];
    expect(plan.Plan['Actual Rows']).toBe(500);
    // Of 5,000 live rows and 10,000 revisions it reads those of the day.
    expect(JSON.stringify(plan)).not.toMatch(/"Seq Scan"[^}]*"Relation Name": *"bhavcopy_cm/);
    expect(plan['Execution Time']).toBeLessThan(250);
  } finally {
    client.release();
  }
});

test('answers to two questions that were fetched in one millisecond are two loads, also where nothing changes', async () => {
  const store = await openStore();
  const fetchedAt = new Date('2025-09-01T16:00:00.123Z');
  const rows = DAYS.map((day) => bhavRow({ symbol: 'TCS', trade_date: day }));
  await load(store, {
    batches: [{ table: bhavcopy, rows }],
    exchange: 'NSE',
    fetchedAt: new Date('2025-09-01T15:00:00Z'),
  });
  const runId = await newRun(store);
  const windows: number[] = [];
  for (const day of DAYS) {
    const windowId = await newWindow(store, runId);
    await store.pool.query('update etl.windows set from_date = $2, to_date = $2 where id = $1', [
      windowId,
      day,
    ]);
    windows.push(windowId);
  }
  for (const [at, windowId] of windows.entries()) {
    const batches = [{ table: bhavcopy, rows: rows.slice(at, at + 1) }];
    await load(store, { runId, windowId, batches, exchange: 'NSE', fetchedAt });
  }
  const found = await store.pool.query(
    'select window_id::int from etl.loads where run_id = $1 order by state',
    [runId],
  );
  expect(found.rows.map((row) => row.window_id)).toEqual(windows);
});

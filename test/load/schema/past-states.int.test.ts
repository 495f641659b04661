import { expect, test } from 'vitest';
import { bhavcopy, bhavRow, load, loadBhav, newRun, newWindow, openStore } from '../support.ts';

test('a number that no state has is an error that names the newest, also where no row would be found', async () => {
  const store = await openStore();
  await loadBhav(store, [bhavRow({ symbol: 'A' })]);
  for (const [number, name] of Object.entries({ 2: '2', 99999: '99999', '-1': '-1', null: 'null' })) {
    for (const rest of ['', "where exchange = 'none'", 'limit 1']) {
      for (const table of ['bhavcopy_cm', 'series_changes']) {
        const query = store.pool.query(`select * from market_history.${table}_at(${number}) ${rest}`);
        await expect(query).rejects.toMatchObject({
          cause: { code: '22023', message: `there is no state ${name}: the newest is 1` },
        });
      }
    }
  }
  const prepared = {
    name: 'at',
    text: 'select count(*)::int as rows from market_history.bhavcopy_cm_at($1)',
  };
  await expect(store.pool.query({ ...prepared, values: [2] })).rejects.toMatchObject({
    cause: { code: '22023' },
  });
  expect((await store.pool.query({ ...prepared, values: [1] })).rows).toEqual([{ rows: 1 }]);
});

test('a load that was rolled back makes no state', async () => {
  const store = await openStore();
  const state = async () => (await store.pool.query('select market.state()::int as state')).rows[0].state;
  await loadBhav(store, [bhavRow({ symbol: 'A' })]);
  expect(await state()).toBe(1);
  await expect(loadBhav(store, [bhavRow({ symbol: 'C', close_price: 'no number' })])).rejects.toThrow();
  const runId = await newRun(store);
  expect(await loadBhav(store, [], { runId, windowId: await newWindow(store, runId, 'loaded') })).toBeNull();
  expect(await state()).toBe(1);
  await loadBhav(store, [bhavRow({ symbol: 'B' })]);
  expect(await state()).toBe(2);
  const result = await store.pool.query(
    `select (select count(*) from market_history.bhavcopy_cm_at(0))::int as none, (select count(*) from market_history.bhavcopy_cm_at(1))::int as one,
       (select count(*) from market_history.bhavcopy_cm_at(market.state()))::int as two`,
  );
  expect(result.rows).toEqual([{ none: 0, one: 1, two: 2 }]);
});

test('a state before the first load says why it is empty, and when that load was', async () => {
  const store = await openStore();
  await loadBhav(store, [bhavRow({ symbol: 'A' })]);
  const client = await store.pool.connect();
  const notices = new Set<string | undefined>();
  client.on('notice', ({ message }) => void notices.add(message));
  const { rows } = await client.query(
    "select to_char(min(committed_at), 'YYYY-MM-DD HH24:MI:SS TZH:TZM') as at from etl.loads",
  );
  for (const sql of [
    "market_history.bhavcopy_cm_as_of('2024-06-30')",
    'market_history.bhavcopy_cm_changes(0, 1)',
    'market_history.bhavcopy_cm_at(1)',
    'market_history.bhavcopy_cm_as_of(now())',
  ])
    await client.query(`select count(*) from ${sql}`);
  client.release();
  expect([...notices]).toEqual([
    `market.bhavcopy_cm has no row in state 0: the first load was at ${rows[0].at}`,
  ]);
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
  const result = await store.pool.query(
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
  expect(result.rows).toEqual(shown.map((row, at) => ({ revision: at + 1, ...row })));
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
      "explain (analyze, format json) select * from market_history.bhavcopy_cm_at(12) where exchange = 'NSE' and trade_date = '2025-07-11'",
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

test('responses to two requests that were fetched in one millisecond are two loads, also where nothing changes', async () => {
  const store = await openStore();
  const fetchedAt = new Date('2025-09-01T16:00:00.123Z');
  const days = ['2025-08-28', '2025-08-29'];
  const rows = days.map((day) => bhavRow({ symbol: 'TCS', trade_date: day }));
  await load(store, {
    batches: [{ table: bhavcopy, rows }],
    exchange: 'NSE',
    fetchedAt: new Date('2025-09-01T15:00:00Z'),
  });
  const runId = await newRun(store);
  const windows: number[] = [];
  for (const day of days) {
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
  const result = await store.pool.query(
    'select window_id::int from etl.loads where run_id = $1 order by state',
    [runId],
  );
  expect(result.rows.map((row) => row.window_id)).toEqual(windows);
});

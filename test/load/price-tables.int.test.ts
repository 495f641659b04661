import fc from 'fast-check';
import { expect, test } from 'vitest';
import { operationNamed } from '../../src/operations/registry.ts';
import { deriveButEvents } from '../support/derive.ts';
import { forAllAsync } from '../support/for-all.ts';
import { bhavRow, load, loadBhav, openStore } from './support.ts';

const bands = operationNamed('GetCircuitBreakers').shapes[0].table;

const BLANK = Object.fromEntries(bands.fields.map(({ column }) => [column, null]));

/** What is derived, and the same grouped from the records. */
const HIT_BANDS = `
  select array(select (exchange, trade_date, symbol, series, bands)::text from etl.hit_bands order by 1) as kept,
         array(select (exchange, trade_date, symbol, series, string_agg(band, '' order by band))::text from market.circuit_breakers
                where symbol is not null group by exchange, trade_date, symbol, series order by 1) as grouped`;

test('etl.hit_bands has the records of market.circuit_breakers, whatever was loaded and withdrawn in between', async () => {
  const db = await openStore();
  const day = fc.constantFrom('2024-01-01', '2026-01-01', '2026-01-02');
  const record = fc.record({
    day,
    // Two ids may be of one symbol; of an unknown one nothing is kept.
    id: fc.constantFrom('A', 'A.EQ', 'B', '?'),
    band: fc.constantFrom('H', 'L', ''),
  });
  const loaded = fc.record({
    records: fc.uniqueArray(record, {
      maxLength: 6,
      selector: ({ day, id, band }) => `${day} ${id} ${band}`,
    }),
    exchange: fc.constantFrom('NSE', 'BSE'),
    isDerived: fc.boolean(),
    // What a full list of a day does not have any more is withdrawn.
    listed: fc.option(day),
  });
  let kept = 0;
  await forAllAsync([fc.array(loaded, { minLength: 4, maxLength: 10 })], { numRuns: 5 }, async (loads) => {
    for (const { records, exchange, isDerived, listed } of loads) {
      const rows = records
        .filter((record) => listed === null || record.day === listed)
        .map(({ day: trade_date, id: scrip_id, band }) => ({
          ...BLANK,
          ...{ exchange, trade_date, scrip_id, band, series: 'EQ' },
          symbol: scrip_id === '?' ? null : scrip_id.replace('.EQ', ''),
        }));
      const days = listed === null ? [] : [{ from: listed, to: listed }];
      const fullSets = days.map((days) => ({ table: bands, exchange, days, mayBeEmpty: true }));
      await load(db, { batches: [{ table: bands, rows }], exchange, fullSets });
      if (isDerived) await deriveButEvents(db);
    }
    await deriveButEvents(db);
    const { rows } = await db.pool.query<{ kept: string[]; grouped: string[] }>(HIT_BANDS);
    expect(rows[0]?.kept).toEqual(rows[0]?.grouped);
    kept += rows[0]?.kept.length ?? 0;
  });
  expect(kept).toBeGreaterThan(0);
});

test('another version of eod computes everything from nothing', async () => {
  const db = await openStore();
  const { pool } = db;
  const contents = async () => {
    await deriveButEvents(db);
    const { rows } = await pool.query(
      `select array(select h::text from etl.hit_bands h order by 1) as bands,
              array(select f::text from etl.price_factors f order by 1) as factors,
              array(select s::text from etl.event_sessions s order by 1) as sessions`,
    );
    return rows[0];
  };
  const rows = ['H', 'L'].map((band) => ({
    ...BLANK,
    ...{ exchange: 'NSE', trade_date: '2026-01-01', scrip_id: 'A', symbol: 'A', series: 'EQ', band },
  }));
  await load(db, { batches: [{ table: bands, rows }] });
  await loadBhav(db, [bhavRow({ symbol: 'A', trade_date: '2026-01-07', isin: 'INE000A01010' })]);
  await pool.query(
    `insert into market.corporate_events (exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, amount, status, status_reason,
        first_loaded_at, last_changed_at, revision, run_id, load_id)
     select 'NSE', symbol, ex_date::date, kind, '', id, ratio, 1, null, status, reason, now(), now(), 1, 1, 1
       from (values ('A', '2026-01-05', 'split', 'NSE:INE000A01010', 2, 'applied', null), ('A', '2026-02-05', 'bonus', 'NSE:INE000A01010', 3, 'applied', null),
                    ('B', '2026-01-05', 'split', 'NSE:B', 5, 'applied', 'decided by me'), ('C', '2026-01-05', 'split', 'NSE:C', 5, 'needs_review', null),
                    ('D', '2026-01-05', 'split', null, 5, 'applied', null), ('E', '2026-01-05', 'dividend', 'NSE:E', null, 'applied', null))
         v(symbol, ex_date, kind, id, ratio, status, reason)`,
  );
  const kept = await contents();
  expect([kept.bands.length, kept.factors.length]).toEqual([1, 4]);
  expect(kept.sessions).toEqual(['(NSE,A,2026-01-05)', '(NSE,A,2026-01-07)', '(NSE,A,2026-02-05)']);
  await pool.query(`
    update etl.hit_bands set bands = 'of an older version';
    update etl.price_factors set ratio_new = 7;
    delete from etl.event_sessions;
    insert into etl.event_sessions values ('NSE', 'A', '2026-01-06')`);
  expect(await contents()).not.toEqual(kept);
  await pool.query(`update etl.derived set version = 'an older version'`);
  expect(await contents()).toEqual(kept);
});

/** Rows of market.prices whose previous close is not adjusted as it would be if each trading day were looked at. */
const WRONG = `
  select b.symbol, b.series, b.trade_date::text, p.adjusted_previous_close_price
    from market.prices p join market.bhavcopy_cm b using (exchange, trade_date, symbol, series)
   where p.adjusted_previous_close_price is distinct from round(b.previous_close_price *
     coalesce(etl.previous_close_factor(b.exchange, b.symbol, b.series, b.trade_date, b.previous_close_price), 1), 4)`;

test('market.prices adjusts each previous close that events change, in whatever order trading days, names and events come', async () => {
  const db = await openStore();
  const { pool } = db;
  const day = fc.integer({ min: 1, max: 9 }).map((date) => `2026-01-0${date}`);
  const isin = fc.constantFrom('INE000A01010', 'INE000B01018');
  const tradingDay = fc.record({
    day,
    symbol: fc.constantFrom('A', 'B'),
    series: fc.constantFrom('EQ', 'BE'),
    isin,
  });
  const event = fc.record({ day, isin, ratio: fc.constantFrom(2, 5) });
  const steps = fc.oneof(
    { weight: 4, arbitrary: fc.record({ sessions: fc.array(tradingDay, { minLength: 1, maxLength: 4 }) }) },
    { weight: 2, arbitrary: fc.record({ event }) },
    fc.record({ withoutEventsOf: isin }),
    fc.record({ withoutSessionsOf: day }),
  );
  const deriveFromNothing = () => pool.query('delete from etl.derived');
  let adjusted = 0;
  await forAllAsync([fc.array(steps, { minLength: 6, maxLength: 14 })], { numRuns: 12 }, async (all) => {
    await pool.query('truncate market.bhavcopy_cm, market_history.bhavcopy_cm, market.corporate_events');
    await deriveFromNothing();
    for (const step of all) {
      if ('sessions' in step) {
        const rows = step.sessions.map(({ day, ...names }) =>
          bhavRow({ ...names, trade_date: day, close_price: '100', previous_close_price: '100' }),
        );
        const keys = new Map(rows.map((row) => [`${row.trade_date} ${row.symbol} ${row.series}`, row]));
        await loadBhav(db, [...keys.values()]);
      } else if ('event' in step) {
        await pool.query(
          `insert into market.corporate_events (exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, status,
              first_loaded_at, last_changed_at, revision, run_id, load_id)
           values ('NSE', $1, $2, 'split', '', $1, $3, 1, 'applied', now(), now(), 1, 1, 1) on conflict do nothing`,
          [`NSE:${step.event.isin}`, step.event.day, step.event.ratio],
        );
      } else if ('withoutEventsOf' in step) {
        await pool.query('delete from market.corporate_events where instrument_id = $1', [
          `NSE:${step.withoutEventsOf}`,
        ]);
      } else {
        for (const table of ['market.bhavcopy_cm', 'market_history.bhavcopy_cm'])
          await pool.query(`delete from ${table} where trade_date = $1`, [step.withoutSessionsOf]);
        await deriveFromNothing();
      }
      await deriveButEvents(db);
      expect((await pool.query(WRONG)).rows).toEqual([]);
    }
    const { rows } = await pool.query<{ adjusted: number }>(
      'select count(*)::int as adjusted from market.prices where adjusted_previous_close_price <> previous_close_price',
    );
    adjusted += rows[0]?.adjusted ?? 0;
  });
  expect(adjusted).toBeGreaterThan(0);
});

/** An event of the share of `bhavRow`s with this ISIN. */
const SPLIT = `
  insert into market.corporate_events (exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, status,
      first_loaded_at, last_changed_at, revision, run_id, load_id)
  values ('NSE', 'A', $1, 'split', '', 'NSE:INE000A01010', 2, 1, 'applied', now(), now(), 1, 1, 1)`;

test('of several series of the trading day before, the one with the previous close of a row is compared', async () => {
  const db = await openStore();
  const rows = [
    { series: 'EQ', trade_date: '2026-01-01', close_price: '100' },
    { series: 'BE', trade_date: '2026-01-01', close_price: '90' },
    // Not traded on the ex-date, 2026-01-02.
    { series: 'EQ', trade_date: '2026-01-05', close_price: '50', previous_close_price: '100' },
    { series: 'BE', trade_date: '2026-01-05', close_price: '45', previous_close_price: '90' },
  ];
  await loadBhav(
    db,
    rows.map((row) => bhavRow({ symbol: 'A', isin: 'INE000A01010', ...row })),
  );
  await db.pool.query(SPLIT, ['2026-01-02']);
  await deriveButEvents(db);
  const { rows: previousCloses } = await db.pool.query(
    `select series, adjusted_previous_close_price::float8 as price from market.prices where trade_date = '2026-01-05' order by 1`,
  );
  expect(previousCloses).toEqual([
    { series: 'BE', price: 45 },
    { series: 'EQ', price: 50 },
  ]);
});

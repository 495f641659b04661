import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EXCHANGES } from '../../src/core/exchanges.ts';
import { updateObservedAliases } from '../../src/load/market/observed-aliases/observed-aliases.ts';
import { migrateDatabase } from '../../src/load/migrate.ts';
import { forAllAsync } from '../support/for-all.ts';
import { waitFor } from '../support/wait-for.ts';
import { bhavRow, loadBhav, openStore } from './support.ts';

const INSERT = `
  insert into market.circuit_breakers (exchange, trade_date, scrip_id, series, band, symbol, first_loaded_at, last_changed_at, revision, run_id, load_id)
  select 'NSE', (e->>'day')::date, e->>'id', 'EQ', e->>'band', e->>'symbol', now(), now(), 1, 1, 1 from jsonb_array_elements($1) e`;

/** What the triggers keep, and the same grouped from the records. */
const HIT_BANDS = `
  select array(select (exchange, trade_date, symbol, series, bands)::text from etl.hit_bands order by 1) as kept,
         array(select (exchange, trade_date, symbol, series, string_agg(band, '' order by band))::text from market.circuit_breakers
                where symbol is not null group by exchange, trade_date, symbol, series order by 1) as grouped`;

test('etl.hit_bands has the records of market.circuit_breakers after any statements', async () => {
  const { pool } = await openStore();
  const record = fc.record({
    day: fc.constantFrom('2026-01-01', '2026-01-02', '2026-01-05'),
    // Two ids may be of one symbol; of an unknown one nothing is kept.
    id: fc.constantFrom('A', 'A.EQ', 'B', '?'),
    band: fc.constantFrom('H', 'L', ''),
  });
  const all = '$1::jsonb is not null';
  const statements = [
    `${INSERT} on conflict do nothing`,
    `${INSERT} on conflict (exchange, trade_date, scrip_id, series, band) do update set symbol = excluded.symbol || 'X'`,
    `update market.circuit_breakers set trade_date = trade_date + 30 where ${all} and band = 'H'`,
    `update market.circuit_breakers set symbol = null where ${all} and scrip_id = 'B'`,
    `delete from market.circuit_breakers where ${all} and band = 'L'`,
    `delete from market.circuit_breakers where ${all} and trade_date = '2026-01-02'`,
  ];
  const records = fc.uniqueArray(record, {
    maxLength: 6,
    selector: ({ day, id, band }) => `${day} ${id} ${band}`,
  });
  await forAllAsync(
    [fc.array(fc.tuple(fc.constantFrom(...statements), records), { minLength: 4, maxLength: 10 })],
    { numRuns: 10 },
    async (steps) => {
      await pool.query('truncate market.circuit_breakers');
      expect((await pool.query(HIT_BANDS)).rows).toEqual([{ kept: [], grouped: [] }]);
      for (const [statement, drawn] of steps) {
        const rows = drawn.map((one) => ({
          ...one,
          symbol: one.id === '?' ? null : one.id.replace('.EQ', ''),
        }));
        await pool.query(statement, [JSON.stringify(rows)]);
        const { kept, grouped } = (await pool.query(HIT_BANDS)).rows[0];
        expect(kept).toEqual(grouped);
      }
    },
  );
});

test('migrate fills the tables that triggers keep in a database from before the triggers', async () => {
  const db = await openStore();
  const { pool } = db;
  const contents = async () => {
    const { rows } = await pool.query(
      `select array(select h::text from etl.hit_bands h order by 1) as bands,
              array(select f::text from etl.price_factors f order by 1) as factors,
              array(select s::text from etl.event_sessions s order by 1) as sessions,
              array(select tgname::text from pg_trigger where tgname like 'keep%' order by 1) as triggers`,
    );
    return rows[0];
  };
  await pool.query(INSERT, [
    JSON.stringify(['H', 'L'].map((band) => ({ day: '2026-01-01', id: 'A', symbol: 'A', band }))),
  ]);
  await loadBhav(db, [bhavRow({ symbol: 'A', trade_date: '2026-01-07', isin: 'INE000A01010' })]);
  await updateObservedAliases(db);
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
  expect([kept.bands.length, kept.factors.length, kept.triggers.length]).toEqual([1, 4, 10]);
  expect(kept.sessions).toEqual(['(NSE,A,2026-01-05)', '(NSE,A,2026-01-07)', '(NSE,A,2026-02-05)']);

  await pool.query(`
    do $$ declare one record; begin
      for one in select tgname, tgrelid::regclass as on_table from pg_trigger where tgname like 'keep%' loop
        execute format('drop trigger %I on %s', one.tgname, one.on_table);
      end loop;
    end $$;
    truncate etl.hit_bands, etl.price_factors, etl.event_sessions;
    update etl.repeatable_migrations set hash = 'of an older version'`);
  expect(await contents()).toEqual({ bands: [], factors: [], sessions: [], triggers: [] });
  await migrateDatabase(db);
  expect(await contents()).toEqual(kept);
});

/** Rows of market.prices whose previous close is not adjusted as it would be if each session were looked at. */
const WRONG = `
  select b.symbol, b.series, b.trade_date::text, p.adjusted_previous_close_price
    from market.prices p join market.bhavcopy_cm b using (exchange, trade_date, symbol, series)
   where p.adjusted_previous_close_price is distinct from round(b.previous_close_price *
     coalesce(etl.previous_close_factor(b.exchange, b.symbol, b.series, b.trade_date, b.previous_close_price), 1), 4)`;

test('market.prices adjusts each previous close that events change, in whatever order sessions, names and events come', async () => {
  const db = await openStore();
  const { pool } = db;
  const day = fc.integer({ min: 1, max: 9 }).map((date) => `2026-01-0${date}`);
  const isin = fc.constantFrom('INE000A01010', 'INE000B01018');
  const session = fc.record({
    day,
    symbol: fc.constantFrom('A', 'B'),
    series: fc.constantFrom('EQ', 'BE'),
    isin,
  });
  const event = fc.record({ day, isin, ratio: fc.constantFrom(2, 5) });
  const steps = fc.oneof(
    { weight: 4, arbitrary: fc.record({ sessions: fc.array(session, { minLength: 1, maxLength: 4 }) }) },
    { weight: 2, arbitrary: fc.record({ event }) },
    fc.record({ withoutEventsOf: isin }),
    fc.record({ withoutSessionsOf: day }),
  );
  // As after a load that withdraws rows.
  const readNamesAgain = () => pool.query(`delete from etl.alias_progress where exchange = 'NSE'`);
  let adjusted = 0;
  await forAllAsync([fc.array(steps, { minLength: 6, maxLength: 14 })], { numRuns: 12 }, async (all) => {
    await pool.query('truncate market.bhavcopy_cm, market_history.bhavcopy_cm, market.corporate_events');
    await readNamesAgain();
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
        await readNamesAgain();
      }
      await updateObservedAliases(db);
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

test('of several series of the session before, the one with the previous close of a row is compared', async () => {
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
  await updateObservedAliases(db);
  await db.pool.query(SPLIT, ['2026-01-02']);
  const { rows: found } = await db.pool.query(
    `select series, adjusted_previous_close_price::float8 as price from market.prices where trade_date = '2026-01-05' order by 1`,
  );
  expect(found).toEqual([
    { series: 'BE', price: 45 },
    { series: 'EQ', price: 50 },
  ]);
});

test('a migration that fills names waits for another process without holding what that waits for', async () => {
  const db = await openStore();
  await db.pool.query('delete from etl.alias_progress');
  const other = await db.pool.connect();
  try {
    // As the end of a run that brings in the names of one exchange.
    const last = EXCHANGES.at(-1);
    await other.query("begin; set local lock_timeout = '15s'");
    await other.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`eod:instruments:${last}`]);
    const migrated = migrateDatabase(db);
    await waitFor(async () => {
      const { rowCount } = await db.pool.query(
        `select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`,
      );
      return rowCount === 1;
    });
    await other.query('select etl.keep_event_sessions($1)', [last]);
    await other.query('commit');
    await migrated;
  } finally {
    other.release(true);
  }
});

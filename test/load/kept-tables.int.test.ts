import fc from 'fast-check';
import { expect, test } from 'vitest';
import { migrateDatabase } from '../../src/load/migrate.ts';
import { forAllAsync } from '../support/for-all.ts';
import { openStore } from './support.ts';

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
              array(select tgname::text from pg_trigger where tgname like 'keep%' order by 1) as triggers`,
    );
    return rows[0];
  };
  await pool.query(INSERT, [
    JSON.stringify(['H', 'L'].map((band) => ({ day: '2026-01-01', id: 'A', symbol: 'A', band }))),
  ]);
  await pool.query(
    `insert into market.corporate_events (exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, amount, status, status_reason,
        first_loaded_at, last_changed_at, revision, run_id, load_id)
     select 'NSE', symbol, ex_date::date, kind, '', id, ratio, 1, null, status, reason, now(), now(), 1, 1, 1
       from (values ('A', '2026-01-05', 'split', 'NSE:A', 2, 'applied', null), ('A', '2026-02-05', 'bonus', 'NSE:A', 3, 'applied', null),
                    ('B', '2026-01-05', 'split', 'NSE:B', 5, 'applied', 'decided by me'), ('C', '2026-01-05', 'split', 'NSE:C', 5, 'needs_review', null),
                    ('D', '2026-01-05', 'split', null, 5, 'applied', null), ('E', '2026-01-05', 'dividend', 'NSE:E', null, 'applied', null))
         v(symbol, ex_date, kind, id, ratio, status, reason)`,
  );
  const kept = await contents();
  expect([kept.bands.length, kept.factors.length, kept.triggers.length]).toEqual([1, 4, 10]);

  await pool.query(`
    do $$ declare one record; begin
      for one in select tgname, tgrelid::regclass as on_table from pg_trigger where tgname like 'keep%' loop
        execute format('drop trigger %I on %s', one.tgname, one.on_table);
      end loop;
    end $$;
    truncate etl.hit_bands, etl.price_factors;
    update etl.repeatable_migrations set hash = 'of an older version'`);
  expect(await contents()).toEqual({ bands: [], factors: [], triggers: [] });
  await migrateDatabase(db);
  expect(await contents()).toEqual(kept);
});

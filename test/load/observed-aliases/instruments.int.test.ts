import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import type { Pool } from 'pg';
import { describe, expect, test } from 'vitest';
import type { Row, TableDefinition } from '../../../src/declaration/table.ts';
import { readLinesElsewhere } from '../../../src/load/corporate-events.ts';
import { dataSetNamed, operationNamed } from '../../../src/operations/registry.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { deriveButEvents } from '../../support/derive.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { bhavcopy, bhavRow, load, loadBhav, openStore } from '../support.ts';

const tableOf = (operation: string) => operationNamed(operation).shapes.at(-1)?.table as TableDefinition;

/** A record of any table; what is not named is left out. */
function record(table: TableDefinition, values: Row): Row {
  return { ...Object.fromEntries(table.fields.map((field) => [field.column, null])), ...values };
}

const nse = (symbol: string, trade_date: string, changes: Row = {}) =>
  bhavRow({ symbol, trade_date, ...changes });
const bse = (symbol: string, exchange_instrument_id: number, trade_date: string, changes: Row = {}) =>
  bhavRow({ exchange: 'BSE', symbol, series: 'B', exchange_instrument_id, trade_date, ...changes });

const loadBse = (store: Database, rows: readonly Row[]) => loadBhav(store, rows, { exchange: 'BSE' });

const FORGET_DERIVED = 'truncate etl.observed_aliases, etl.alias_owners, etl.derived';

/** Names are brought in after the loads, not in them. */
async function poolUpToDate(store: Database) {
  await deriveButEvents(store);
  return store.pool;
}

const instruments = async (store: Database) =>
  (
    await (
      await poolUpToDate(store)
    ).query(
      `select instrument_id, exchange, symbol, series, scrip_code::int, isin, name, first_seen::text, last_seen::text
         from market.instruments order by instrument_id`,
    )
  ).rows;

const aliases = async (store: Database, kind: string) =>
  (
    await (
      await poolUpToDate(store)
    ).query(
      `select alias, series, instrument_id, first_seen::text, last_seen::text, valid_from::text, valid_to::text
         from market.instrument_aliases where kind = $1 order by alias, series, valid_from`,
      [kind],
    )
  ).rows;

/** What follows from the loads one after the other must equal what reading all rows at once gives. */
async function expectTrue(store: Database) {
  const pool = await poolUpToDate(store);
  const owners = async (relation: string) =>
    (
      await pool.query(
        `select exchange, kind, symbol, series, valid_from::text, valid_to::text, instrument_id from ${relation} order by 1, 2, 3, 4, 5`,
      )
    ).rows;
  const read = async () => ({
    aliases: (
      await pool.query(
        `select exchange, source, symbol, series, isin, scrip_code, name, link, first_seen, last_seen, instrument_id, precedence
           from etl.observed_aliases order by 1, 2, 3, 4, 5, 6, 7, 8`,
      )
    ).rows,
    shares: (
      await pool.query(
        `select exchange, symbol, series, valid_from, share_id from market.series_aliases order by 1, 2, 3, 4`,
      )
    ).rows,
  });
  const kept = await read();
  expect(await owners('etl.alias_owners')).toEqual(
    await owners(
      "(select *, alias as symbol from market.instrument_aliases where kind in ('series', 'symbol') and valid_from < valid_to) as shown",
    ),
  );
  await pool.query(FORGET_DERIVED);
  await deriveButEvents(store);
  expect(kept).toEqual(await read());
}

describe('market.instruments', () => {
  test('follows a rename, a new ISIN and a move between series', async () => {
    const store = await openStore();
    const days = ['2025-01-01', '2025-01-02', '2025-01-03', '2025-01-06'] as const;
    await loadBhav(store, [nse('OLD', days[0], { isin: 'INE982B01019', instrument_full_name: 'OLD LTD' })]);
    await loadBhav(store, [nse('OLD', days[1], { isin: 'INE982B01027', series: 'BE' })]);
    await loadBhav(store, [
      nse('NEW', days[2], { isin: 'INE982B01027', series: 'BE', instrument_full_name: 'NEW LTD' }),
    ]);
    await loadBhav(store, [nse('NEW', days[3], { isin: 'INE982B01027', exchange_instrument_id: 77 })]);

    expect(await instruments(store)).toEqual([
      {
        instrument_id: 'NSE:INE982B01019',
        exchange: 'NSE',
        symbol: 'NEW',
        series: 'EQ',
        scrip_code: 77,
        isin: 'INE982B01027',
        name: 'NEW LTD',
        first_seen: days[0],
        last_seen: days[3],
      },
    ]);
    const always = { valid_from: '-infinity', valid_to: 'infinity', instrument_id: 'NSE:INE982B01019' };
    expect(await aliases(store, 'series')).toEqual([
      { alias: 'NEW', series: 'BE', first_seen: days[2], last_seen: days[2], ...always },
      { alias: 'NEW', series: 'EQ', first_seen: days[3], last_seen: days[3], ...always },
      { alias: 'OLD', series: 'BE', first_seen: days[1], last_seen: days[1], ...always },
      { alias: 'OLD', series: 'EQ', first_seen: days[0], last_seen: days[0], ...always },
    ]);
    expect(await aliases(store, 'isin')).toEqual([
      { alias: 'INE982B01019', series: '', first_seen: days[0], last_seen: days[0], ...always },
      { alias: 'INE982B01027', series: '', first_seen: days[1], last_seen: days[3], ...always },
    ]);
    await expectTrue(store);
  });

  test('keeps apart two companies that used a ticker one after the other', async () => {
    const store = await openStore();
    await loadBhav(store, [nse('SEL', '2015-06-01', { isin: 'INE105I01012' })]);
    await loadBhav(store, [nse('SEL', '2025-06-02', { isin: 'INE0KRX01010' })]);
    // Without an ISIN a record belongs to the instrument that had the symbol that day.
    await loadBhav(store, [nse('SEL', '2016-06-01'), nse('SEL', '2025-07-01')]);
    const symbol = await aliases(store, 'symbol');
    expect(symbol).toEqual([
      {
        alias: 'SEL',
        series: '',
        instrument_id: 'NSE:INE105I01012',
        first_seen: '2015-06-01',
        last_seen: '2025-07-01',
        valid_from: '-infinity',
        valid_to: '2025-06-02',
      },
      {
        alias: 'SEL',
        series: '',
        instrument_id: 'NSE:INE0KRX01010',
        first_seen: '2025-06-02',
        last_seen: '2025-06-02',
        valid_from: '2025-06-02',
        valid_to: 'infinity',
      },
    ]);
    await expectTrue(store);
  });

  test.each([
    ['all at once', false],
    ['load by load', true],
  ])('gives a name back after some days under a misprinted ISIN, brought in %s', async (_, isBroughtIn) => {
    const store = await openStore();
    const days = ['2025-01-01', '2025-01-02', '2025-01-03', '2025-01-06', '2025-01-07'] as const;
    const right = { isin: 'INE000A01010' };
    for (const day of days) {
      await loadBhav(store, [nse('X', day, day === days[2] ? { isin: 'INE999Z01019' } : right)]);
      if (isBroughtIn) await deriveButEvents(store);
    }
    const joined = await (await poolUpToDate(store)).query(
      `select b.trade_date::text as day, a.instrument_id from market.bhavcopy_cm b
         join market.instrument_aliases a on a.exchange = b.exchange and a.kind = 'series'
          and a.alias = b.symbol and a.series = b.series and b.trade_date >= a.valid_from and b.trade_date < a.valid_to
        order by 1`,
    );
    expect(joined.rows).toEqual(
      days.map((day) => ({ day, instrument_id: day === days[2] ? 'NSE:INE999Z01019' : 'NSE:INE000A01010' })),
    );
    expect((await aliases(store, 'symbol')).map((row) => [row.valid_from, row.valid_to])).toEqual(
      [
        ['-infinity', days[2]],
        [days[2], '2025-01-04'],
        ['2025-01-04', 'infinity'],
      ].sort(),
    );
    await expectTrue(store);
  });

  test('knows two misprints of a symbol on one day', async () => {
    const store = await openStore();
    const right = { isin: 'INE000A01010' };
    for (const day of ['2025-01-01', '2025-01-03']) await loadBhav(store, [nse('X', day, right)]);
    await loadBhav(store, [
      nse('X', '2025-01-02', { isin: 'INE999Z01019' }),
      nse('X', '2025-01-02', { isin: 'INE998Y01010', series: 'BE' }),
    ]);
    await expectTrue(store);
    expect((await aliases(store, 'symbol')).at(-1)).toMatchObject({
      instrument_id: 'NSE:INE000A01010',
      valid_from: '2025-01-03',
      valid_to: 'infinity',
    });
  });

  test('follows the days that decide which of several scrip codes an ISIN and a T+0 line mean', async () => {
    const store = await openStore();
    const [old, young] = [{ isin: 'INE000A01010' }, { isin: 'INE000B01018' }];
    const classified = tableOf('GetSectoralClassification');
    const byIsin = { exchange: 'BSE', allotted_from: '2025-01-03', scrip_code: 0, ...old };
    await loadBse(store, [bse('P', 500001, '2025-01-02', old)]);
    await loadBse(store, [bse('Q', 500002, '2025-01-03', old), bse('P#', 500009, '2025-01-03', old)]);
    await load(store, { batches: [{ table: classified, rows: [record(classified, byIsin)] }] });
    await deriveButEvents(store);
    await loadBse(store, [bse('Q', 500002, '2025-01-01', old)]);
    await expectTrue(store);

    await loadBse(store, [bse('R', 500003, '2025-01-06', young), bse('P#', 500009, '2025-01-06', young)]);
    await deriveButEvents(store);
    await loadBse(store, [bse('P#', 500009, '2025-01-07', old)]);
    await expectTrue(store);
  });

  test('keeps bonds, T+0 and block deal lines apart from the share; a bare symbol and ISIN mean the share', async () => {
    const store = await openStore();
    const day = '2025-08-29';
    const isin = 'INE669E01016';
    await loadBhav(store, [
      nse('IDEA', day, { isin }),
      nse('IDEA', day, { isin, series: 'T0' }),
      nse('IDEA', day, { isin, series: 'BL' }),
      nse('IDEA', day, { isin: 'INE669E07013', series: 'N2' }),
    ]);
    await loadBse(store, [bse('IDEA', 532822, day, { isin }), bse('IDEA#', 132822, day, { isin })]);
    expect((await instruments(store)).map((row) => [row.instrument_id, row.symbol, row.series])).toEqual([
      ['BSE:132822', 'IDEA#', 'B'],
      ['BSE:532822', 'IDEA', 'B'],
      ['NSE:INE669E01016', 'IDEA', 'EQ'],
      ['NSE:INE669E01016/BL', 'IDEA', 'BL'],
      ['NSE:INE669E01016/T0', 'IDEA', 'T0'],
      ['NSE:INE669E07013', 'IDEA', 'N2'],
    ]);
    const owners = async (kind: string) =>
      (await aliases(store, kind)).map((row) => [row.alias, row.instrument_id]);
    expect(await owners('symbol')).toEqual([
      ['IDEA', 'BSE:532822'],
      ['IDEA', 'NSE:INE669E01016'],
      ['IDEA#', 'BSE:132822'],
    ]);
    expect(await owners('isin')).toEqual([
      [isin, 'BSE:532822'],
      [isin, 'NSE:INE669E01016'],
      ['INE669E07013', 'NSE:INE669E07013'],
    ]);
    await expectTrue(store);
  });

  test('an instrument known by symbol alone turns out to have an ISIN', async () => {
    const store = await openStore();
    await loadBhav(store, [nse('MRO-TEK', '2021-08-19')]);
    expect((await instruments(store)).map((row) => row.instrument_id)).toEqual(['NSE:MRO-TEK']);
    await loadBhav(store, [nse('MRO-TEK', '2025-08-29', { isin: 'INE398B01018', series: 'BE' })]);
    expect(await instruments(store)).toMatchObject([
      {
        instrument_id: 'NSE:INE398B01018',
        isin: 'INE398B01018',
        series: 'BE',
        first_seen: '2021-08-19',
        last_seen: '2025-08-29',
      },
    ]);
    await expectTrue(store);
  });

  test('a published change of symbol connects the old symbol with the new one, whichever is seen first', async () => {
    const { table } = dataSetNamed('SymbolChanges').shapes[0] as { table: TableDefinition };
    const day = '2025-08-29';
    const days = {
      old: nse('OLD', '2025-08-28', { isin: null }),
      change: record(table, { exchange: 'NSE', changed_on: day, old_symbol: 'OLD', new_symbol: 'NEW' }),
      young: nse('NEW', day, { isin: null }),
    };
    for (const order of [
      ['old', 'change', 'young'],
      ['young', 'change', 'old'],
      ['change', 'young', 'old'],
    ] as const) {
      const store = await openStore();
      for (const kind of order) {
        await load(store, {
          batches: [{ table: kind === 'change' ? table : bhavcopy, rows: [days[kind]] }],
          exchange: 'NSE',
        });
        await deriveButEvents(store);
      }
      expect((await instruments(store)).map((row) => [row.instrument_id, row.symbol])).toEqual([
        ['NSE:OLD', 'NEW'],
      ]);
      await expectTrue(store);
    }
  });

  test('a day from before a published change that is loaded after later ones counts as the old company', async () => {
    const { table } = dataSetNamed('SymbolChanges').shapes[0] as { table: TableDefinition };
    const day = '2025-08-29';
    const change = { exchange: 'NSE', changed_on: day, old_symbol: 'OLD', new_symbol: 'NEW' };
    const store = await openStore();
    for (const batch of [
      { table: bhavcopy, rows: [nse('OLD', day, { isin: null })] },
      { table, rows: [record(table, change)] },
      { table: bhavcopy, rows: [nse('OLD', '2025-08-28', { isin: null })] },
    ]) {
      await load(store, { batches: [batch], exchange: 'NSE' });
      await deriveButEvents(store);
      await expectTrue(store);
    }
  });

  test('takes from the classification and from series changes what no bhav copy has', async () => {
    const store = await openStore();
    const classification = tableOf('GetSectoralClassification');
    const changes = tableOf('GetSeriesChange');
    await load(store, {
      exchange: 'BSE',
      batches: [
        {
          table: classification,
          rows: [
            record(classification, {
              exchange: 'BSE',
              isin: 'INE467B01029',
              scrip_code: 532540,
              allotted_from: '2022-03-31',
              symbol: 'TCS',
              company_name: 'Tata Consultancy Services Ltd.',
              // In India it is the 8th already.
              source_saved_at: '2025-05-07T20:00:00Z',
            }),
          ],
        },
      ],
    });
    const change = (scrip_id: string, prev_series: string, to_series: string) =>
      record(changes, {
        exchange: 'NSE',
        change_date: '2021-08-20',
        scrip_id: `${scrip_id}.${prev_series}`,
        symbol: scrip_id,
        prev_series,
        to_series,
      });
    await loadBhav(store, [nse('ODD', '2021-08-20', { series: 'XA', isin: 'INE111A01017' })]);
    await load(store, {
      batches: [{ table: changes, rows: [change('MRO-TEK', 'EQ', 'BE'), change('ODD', 'XA', 'XB')] }],
    });
    expect(await instruments(store)).toEqual([
      {
        instrument_id: 'BSE:532540',
        exchange: 'BSE',
        symbol: 'TCS',
        series: null,
        scrip_code: 532540,
        isin: 'INE467B01029',
        name: 'Tata Consultancy Services Ltd.',
        first_seen: '2025-05-08',
        last_seen: '2025-05-08',
      },
      expect.objectContaining({ instrument_id: 'NSE:INE111A01017', symbol: 'ODD', series: 'XA' }),
      expect.objectContaining({
        instrument_id: 'NSE:MRO-TEK',
        series: 'BE',
        first_seen: '2021-08-19',
        last_seen: '2021-08-20',
      }),
    ]);
    expect(await aliases(store, 'series')).toMatchObject([
      { alias: 'MRO-TEK', series: 'BE', first_seen: '2021-08-20' },
      { alias: 'MRO-TEK', series: 'EQ', first_seen: '2021-08-19' },
      { alias: 'ODD', series: 'XA', instrument_id: 'NSE:INE111A01017' },
      { alias: 'ODD', series: 'XB', instrument_id: 'NSE:INE111A01017' },
    ]);
    await expectTrue(store);
  });

  test('a series change that names one series twice counts with both of its days', async () => {
    const store = await openStore();
    const table = tableOf('GetSeriesChange');
    const row = record(table, {
      exchange: 'NSE',
      change_date: '2025-01-02',
      scrip_id: 'A',
      prev_series: 'EQ',
      to_series: 'EQ',
    });
    await load(store, { batches: [{ table, rows: [row] }] });
    await expectTrue(store);
  });

  test('follows corrections and withdrawals, and a row listed again', async () => {
    const store = await openStore();
    const row = (symbol: string, isin: string, saved: string) =>
      nse(symbol, '2025-08-29', { isin, source_saved_at: saved });
    const days = { from: '2025-08-29', to: '2025-08-29' };
    const full = { table: bhavcopy, exchange: 'NSE', days, mayBeEmpty: false };
    const ids = async () =>
      (await instruments(store)).map((instrument) => `${instrument.instrument_id} ${instrument.symbol}`);
    await loadBhav(store, [row('A', 'INE000A01010', '2025-08-29T10:00:00Z'), nse('A', '2025-08-28')]);
    await loadBhav(store, [row('B', 'INE000B01018', '2025-08-29T10:00:00Z')]);
    expect(await ids()).toEqual(['NSE:INE000A01010 A', 'NSE:INE000B01018 B']);

    await loadBhav(store, [row('A', 'INE000C01016', '2025-08-29T12:00:00Z')]);
    expect(await ids(), 'corrected').toEqual(['NSE:INE000B01018 B', 'NSE:INE000C01016 A']);
    await expectTrue(store);

    await loadBhav(store, [row('A', 'INE000C01016', '2025-08-29T12:00:00Z')], { fullSets: [full] });
    expect(await ids(), 'withdrawn').toEqual(['NSE:INE000C01016 A']);
    await expectTrue(store);

    // Stale, but listed again.
    await loadBhav(store, [row('B', 'INE000B01018', '2025-08-29T09:00:00Z')]);
    expect(await ids(), 'listed again').toEqual(['NSE:INE000B01018 B', 'NSE:INE000C01016 A']);
    await expectTrue(store);
  });

  test('a response that changes nothing leaves it alone', async () => {
    const store = await openStore();
    const versions = async () =>
      (
        await (
          await poolUpToDate(store)
        ).query('select id, xmin::text, last_seen::text from etl.observed_aliases order by id')
      ).rows;
    await loadBhav(store, [nse('A', '2025-08-28'), nse('B', '2025-08-28')]);
    const before = await versions();
    expect(before).toHaveLength(2);
    await loadBhav(store, [nse('A', '2025-08-28'), nse('B', '2025-08-28')]);
    expect(await versions()).toEqual(before);
  });

  test('names of any length and kind are stored', async () => {
    const store = await openStore();
    const long = 'x'.repeat(5_000);
    const counts = await loadBhav(store, [
      nse('LONG', '2025-08-29', { isin: long, instrument_full_name: randomText(6_000) }),
      nse(randomText(1_000), '2025-08-29', { isin: randomText(3_000) }),
    ]);
    expect(counts).toMatchObject({ inserted: 2 });
    await loadBhav(store, [nse('LONG', '2025-08-29', { isin: 'INE000A01010' })]);
    expect(await instruments(store)).toHaveLength(2);
    await expectTrue(store);
  });

  test.runIf(isSlowLayer)(
    'loads side by side, in whatever order, give the same result as one after the other',
    async () => {
      const rows = historyOf(40);
      const [ordered, mixed] = [await openStore(), await openStore(undefined, 8)];
      for (const day of rows) await loadBhav(ordered, day);
      const queue = shuffled(rows);
      await Promise.all(
        Array.from({ length: 6 }, async () => {
          for (let day = queue.pop(); day !== undefined; day = queue.pop()) {
            await loadBhav(mixed, day);
            if (queue.length % 3 === 0) await deriveButEvents(mixed);
          }
        }),
      );
      expect(await instruments(mixed)).toEqual(await instruments(ordered));
      for (const kind of ['series', 'symbol', 'isin', 'scrip_code']) {
        expect(await aliases(mixed, kind)).toEqual(await aliases(ordered, kind));
      }
      await expectTrue(mixed);
      await expectTrue(ordered);
    },
  );

  test('are the same whenever names are brought in between loads that rename rows or change only their values', async () => {
    const days = ['2025-08-27', '2025-08-28', '2025-08-29'] as const;
    const isins = ['INE000A01010', 'INE000B01018', ''] as const;
    const store = await openStore();
    let saved = 0;
    const loaded = fc.record({
      day: fc.constantFrom(...days),
      rows: fc.uniqueArray(
        fc.record({
          symbol: fc.constantFrom('A', 'B', 'C'),
          isin: fc.constantFrom(...isins),
          close_price: fc.constantFrom('1', '2'),
        }),
        { minLength: 1, selector: (row) => row.symbol },
      ),
      isWhole: fc.boolean(),
    });
    const steps = fc.array(fc.oneof({ arbitrary: loaded, weight: 3 }, fc.constant('bring in' as const)), {
      minLength: 10,
      maxLength: 20,
    });
    await forAllAsync([steps], { numRuns: 2 }, async (all) => {
      for (const step of all) {
        if (step === 'bring in') {
          await deriveButEvents(store);
          continue;
        }
        const { day, rows, isWhole } = step;
        saved += 1;
        const source_saved_at = new Date(Date.UTC(2025, 8, 1) + saved * 1_000).toISOString();
        await loadBhav(
          store,
          rows.map(({ symbol, ...values }) => nse(symbol, day, { ...values, source_saved_at })),
          {
            fullSets: isWhole
              ? [{ table: bhavcopy, exchange: 'NSE', days: { from: day, to: day }, mayBeEmpty: false }]
              : [],
          },
        );
      }
      await expectTrue(store);
    });
  });

  test('that cannot be brought in keep back no name once the cause is gone', async () => {
    const store = await openStore();
    await loadBhav(store, [nse('A', '2025-08-28')]);
    await deriveButEvents(store);
    await store.pool.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'no room for %', new.symbol; end $$;
      create trigger refuse before insert on etl.observed_aliases for each row when (new.symbol = 'BAD') execute function refuse()`);
    await loadBhav(store, [nse('B', '2025-08-28'), nse('BAD', '2025-08-28')]);
    await loadBse(store, [bse('D', 500001, '2025-08-28')]);
    await expect(deriveButEvents(store)).rejects.toThrow('no room for BAD');
    await store.pool.query('drop trigger refuse on etl.observed_aliases');
    await expectTrue(store);
    expect((await instruments(store)).map(({ symbol }) => symbol)).toEqual(['D', 'A', 'B', 'BAD']);
  });

  test('of loads a month apart are written once, not once for each load', async () => {
    const store = await openStore();
    await loadBhav(store, [nse('A', '2023-01-02'), nse('B', '2023-01-02')]);
    await deriveButEvents(store);
    await store.pool.query(`
      create table written (symbol text);
      create function count_writes() returns trigger language plpgsql as $$ begin insert into written values (new.symbol); return new; end $$;
      create trigger count_writes before insert on etl.observed_aliases for each row execute function count_writes()`);
    const days = Array.from(
      { length: 24 },
      (_, at) => `${2023 + Math.floor(at / 12)}-${`${(at % 12) + 1}`.padStart(2, '0')}-15`,
    );
    for (const [at, day] of days.entries()) {
      await loadBhav(store, [
        nse('A', day),
        ...(at % 5 === 0 ? [nse('B', day)] : []),
        nse(`C${at % 7}`, day),
      ]);
    }
    await deriveButEvents(store);
    const { rows } = await store.pool.query(
      'select symbol, count(*)::int as times from written group by symbol',
    );
    expect(rows.map(({ times }) => times)).toEqual(rows.map(() => 1));
    expect(rows).toHaveLength(9);
    await expectTrue(store);
  });

  test('follows a whole day loaded again from a richer format, at either end and in the middle', async () => {
    const store = await openStore();
    const days = ['2025-01-01', '2025-01-02', '2025-01-03', '2025-01-06', '2025-01-07'] as const;
    const seenAs = async (isin: string) => {
      const result = await (await poolUpToDate(store)).query(
        'select first_seen::text, last_seen::text from etl.observed_aliases where isin = $1',
        [isin],
      );
      return result.rows.map((row) => [row.first_seen, row.last_seen]);
    };
    for (const day of days) await loadBhav(store, [nse('ABC', day)]);
    await deriveButEvents(store);
    const isin = 'INE001A01019';
    for (const [at, left] of [
      [0, [days[1], days[4]]],
      [2, [days[1], days[4]]],
      [4, [days[1], days[3]]],
      [1, [days[3], days[3]]],
      [3, undefined],
    ] as const) {
      await loadBhav(store, [nse('ABC', days[at], { isin })]);
      expect(await seenAs('')).toEqual(left === undefined ? [] : [left]);
      await expectTrue(store);
    }
    expect(await seenAs(isin)).toEqual([[days[0], days[4]]]);
  });
});

/** Text that does not compress, too long for an index. */
function randomText(length: number): string {
  return randomBytes(length).toString('base64').slice(0, length);
}

/** Days of a market in which tickers, ISINs and series change all the time, now and then without ISIN. */
function historyOf(days: number): Row[][] {
  const day = (at: number) => new Date(Date.UTC(2025, 0, 1 + at)).toISOString().slice(0, 10);
  return Array.from({ length: days }, (_, at) =>
    Array.from({ length: 12 }, (_, company) => {
      const renamed = at > 10 + company;
      const split = at > 25 - company;
      const isin = `INE${String(company).padStart(3, '0')}A010${split ? '29' : '11'}`;
      return nse(renamed ? `NEW${company % 6}` : `OLD${company}`, day(at), {
        series: renamed && company >= 6 ? 'BE' : 'EQ',
        isin: (at + company) % 5 === 0 ? null : isin,
        instrument_id: company + 1,
      });
    }),
  );
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((item) => ({ item, position: Math.random() }))
    .sort((a, b) => a.position - b.position)
    .map(({ item }) => item);
}

test('shares of both exchanges are matched with work in proportion to their number', async () => {
  const { pool } = await openStore();
  const shares = 2_000;
  await pool.query(
    `insert into etl.observed_aliases (exchange, source, symbol, series, isin, scrip_code, name, link, first_seen, last_seen, instrument_id)
     select e, 'bhavcopy_cm', 'S' || n, 'EQ', 'INE' || n, 0, 'S' || n, '', '2025-08-29', '2025-09-09', e || ':' || n
       from generate_series(1, $1::int) n, unnest(array['BSE', 'NSE']) e`,
    [shares],
  );
  await pool.query('analyze etl.observed_aliases');
  const statements: string[] = [];
  const recorder = {
    query(text: string) {
      statements.push(text);
      return pool.query(text);
    },
  };
  expect(await readLinesElsewhere(recorder as Pool)).toHaveLength(2 * shares);
  const { rows } = await pool.query(`explain (analyze, timing off, format json) ${statements[0]}`);
  const examined = (node: PlanNode): number =>
    node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Join Filter'] ?? 0)) +
    (node.Plans ?? []).reduce((sum, child) => sum + examined(child), 0);
  // All pairs would be 16 million.
  expect(examined(rows[0]['QUERY PLAN'][0].Plan)).toBeLessThan(100 * shares);
});

interface PlanNode {
  readonly 'Actual Loops': number;
  readonly 'Actual Rows': number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

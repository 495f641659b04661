import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkQuality } from '../../../src/quality/check-quality.ts';
import { listFindings } from '../../../src/state/findings.ts';
import { importInto, openStore } from '../../support/import-support.ts';

const DATA = fileURLToPath(new URL('../../../../shared/data/corporate_actions/', import.meta.url));
const present = existsSync(DATA);
if (!present)
  process.stdout.write('../shared/data is not here: prices are not adjusted by published lists\n');

const rowsOf = (file: string) =>
  parse(readFileSync(join(DATA, 'expected', file)), { columns: true }) as Record<string, string>[];

describe.runIf(present)('published corporate actions and prices', () => {
  const folder = mkdtempSync(join(tmpdir(), 'eod-prices-'));
  let context: Awaited<ReturnType<typeof openStore>>;
  afterAll(() => rmSync(folder, { recursive: true }));

  beforeAll(async () => {
    execFileSync('tar', ['-xJf', join(DATA, 'nse/nse_eq_2021-07_2022-12.tar.xz'), '-C', folder]);
    context = await openStore();
    const lists = readdirSync(join(DATA, 'nse'))
      .filter((name) => name.endsWith('.csv'))
      .map((name) => join(DATA, 'nse', name));
    const report = await importInto(context, [folder, ...lists, join(DATA, 'bse')]);
    expect(report.files.filter(({ state }) => state !== 'loaded')).toEqual([]);
  }, 600_000);

  const query = async (sql: string, values: unknown[] = []) =>
    (await context.db.pool.query<Record<string, string>>(sql, values)).rows;

  test('splits and bonuses have the factors that others publish', async () => {
    const rows = await query(
      `select symbol || ' ' || ex_date as day, etl.product(ratio_old) / etl.product(ratio_new) as factor
         from market.corporate_events where status = 'applied' and ratio_new is not null group by symbol, ex_date`,
    );
    const factors = new Map(rows.map(({ day, factor }) => [day, Number(factor).toFixed(4)]));
    const published = rowsOf('splits_and_bonuses_2021-07_2022-12.csv');
    const differing = published
      .map((row) => ({ day: `${row.symbol} ${row.ex_date}`, price_factor: row.price_factor }))
      .filter(({ day, price_factor }) => factors.get(day) !== Number(price_factor).toFixed(4))
      .map(({ day, price_factor }) => `${day}: ${price_factor}, here ${factors.get(day)}`);
    expect(published).toHaveLength(146);
    // A split and a bonus on one day, of which the published list has each separately, or only one.
    expect(differing).toEqual([
      'VEEDOL 2021-07-26: 0.4, here 0.2000',
      'DHARAN 2021-08-12: 0.5, here 0.1000',
      'DHARAN 2021-08-12: 0.2, here 0.1000',
    ]);
  });

  test('closes before splits and bonuses are those of an independent series, but for its rounding', async () => {
    const column = 'independent_adjusted_close_as_of_2022-12-31';
    const published = rowsOf('splits_and_bonuses_2021-07_2022-12.csv').filter((row) => row[column] !== '');
    const rows = await query(
      `select symbol || ' ' || trade_date as day, close_price as close from market.adjusted_prices('2022-12-31')
        where exchange = 'NSE' and series = 'EQ' and symbol = any($1)`,
      [published.map(({ symbol }) => symbol)],
    );
    const closes = new Map(rows.map(({ day, close }) => [day, Number(close)]));
    const ofThese = published.map((row) => ({
      day: `${row.symbol} ${row.prev_session}`,
      theirs: Number(row[column]),
      ours: closes.get(`${row.symbol} ${row.prev_session}`),
    }));
    expect(ofThese).toHaveLength(137);
    // The trading day before these events lies before the first prices that are there.
    expect(ofThese.filter(({ ours }) => ours === undefined).map(({ day }) => day)).toEqual([
      'GLOBE 2021-02-01',
      'RAJMET 2021-06-16',
      'TIRUPATIFL 2020-11-09',
    ]);
    const apart = ofThese.flatMap(({ day, ours, theirs }) =>
      ours === undefined || Math.abs(ours - theirs) <= 0.051 ? [] : [`${day} ${ours} ${theirs}`],
    );
    process.stdout.write(`further apart than 0.05: ${apart.join('; ')}\n`);
    // Each event of a share rounds their price once more, some of theirs are in whole rupees, and shares of less than
    // five rupees are rounded by more than a hundredth.
    const tooFar = ofThese.filter(
      ({ ours = Number.NaN, theirs }) => Math.abs(ours - theirs) > Math.max(0.051, 0.0095 * theirs),
    );
    expect(tooFar).toEqual([]);
  });

  test('series of 25 shares are those of an independent series, on every day that is there', async () => {
    const published = rowsOf('independent_adjusted_series_2021-07_2022-12.csv');
    const rows = await query(
      `select i.symbol || ' ' || p.trade_date as day, p.open_price, p.high_price, p.low_price, p.close_price
         from market.adjusted_prices('2022-12-31') p join market.instruments i using (exchange, instrument_id)
        where exchange = 'NSE' and p.series = 'EQ' and i.symbol = any($1)`,
      [[...new Set(published.map(({ symbol }) => symbol))]],
    );
    const ours = new Map(rows.map((row) => [row.day, row]));
    const missing = new Map<string, number>();
    const apart: string[] = [];
    for (const row of published) {
      const ourRow = ours.get(`${row.symbol} ${row.date}`);
      if (ourRow === undefined) missing.set(String(row.symbol), (missing.get(String(row.symbol)) ?? 0) + 1);
      else if (
        ['open', 'high', 'low', 'close'].some(
          (name) => Math.abs(Number(ourRow[`${name}_price`]) - Number(row[`adjusted_${name}`])) > 0.0501,
        )
      ) {
        apart.push(`${row.symbol} ${row.date}`);
      }
    }
    process.stdout.write(`days that are not there: ${JSON.stringify([...missing])}\n`);
    expect(published).toHaveLength(9261);
    expect(apart).toEqual([]);
  });

  test('gaps that no event explains are splits of funds, which no list reports; no applied event is without its gap', async () => {
    await checkQuality(context, { from: '2021-07-01', to: '2022-12-31' });
    const findingsOf = async (check: string) =>
      (await listFindings(context.db.drizzle, { check, limit: 1_000 })).findings
        .map(
          ({ date, instrument, found: got }) =>
            `${date} ${instrument?.split(' ')[0]} ${/by ([\d:]+);/.exec(got ?? '')?.[1]}`,
        )
        .sort();
    const gaps = await findingsOf('unexplained_gap');
    process.stdout.write(`unexplained gaps: ${gaps.length}\n${gaps.join('\n')}\n`);
    // Moves of shares without price bands within a day, and single odd prices of funds that few trade, are no gaps.
    expect(gaps).toEqual([
      '2021-07-22 KOTAKGOLD 1:10',
      '2021-10-28 ICICI500 1:10',
      '2021-11-25 ABSLBANETF 1:10',
      '2021-11-25 ABSLNN50ET 1:10',
      '2021-11-25 BSLGOLDETF 1:100',
      '2021-11-25 BSLNIFTY 1:10',
      '2021-11-25 BSLSENETFG 1:10',
      '2021-12-16 QGOLDHALF 1:50',
      '2022-08-11 MOLOWVOL 1:5',
      '2022-08-11 MOMOMENTUM 1:5',
      '2022-08-12 ICICIMOM30 1:10',
      '2022-09-01 ICICIBANKN 1:10',
      '2022-09-01 ICICITECH 1:10',
    ]);
    expect(await findingsOf('factor_without_gap')).toEqual([]);
    expect(await findingsOf('same_event_differs')).toEqual([]);
  }, 300_000);

  test('a dividend reinvested leaves the return of its ex-date as if it had not been paid out', async () => {
    const { rows } = await context.db.pool.query<Record<string, string>>(
      `select e.symbol, e.amount, p.unadjusted_close_price as before, p.close_price as before_adjusted, x.unadjusted_close_price as on_day, x.close_price as on_day_adjusted
         from (select symbol, instrument_id, ex_date, sum(amount) as amount from market.corporate_events
                where exchange = 'NSE' and kind = 'dividend' and status = 'applied' group by 1, 2, 3) e
         join lateral (select * from market.adjusted_prices('2022-12-31', total_return => true) t
                        where t.exchange = 'NSE' and t.instrument_id = e.instrument_id and t.trade_date < e.ex_date order by t.trade_date desc limit 1) p on true
         join market.adjusted_prices('2022-12-31', total_return => true) x on x.exchange = 'NSE' and x.instrument_id = e.instrument_id and x.trade_date = e.ex_date
        where e.symbol in ('ITC', 'TCS', 'COALINDIA', 'VEDL', 'HINDZINC', 'ONGC')`,
    );
    expect(rows.length).toBeGreaterThan(20);
    for (const row of rows) {
      const received = (Number(row.on_day) * Number(row.before)) / (Number(row.before) - Number(row.amount));
      expect(Number(row.on_day_adjusted) / Number(row.before_adjusted), row.symbol).toBeCloseTo(
        received / Number(row.before),
        10,
      );
    }
  });

  test('returns of market.prices on the days of splits and bonuses stay within the price bands, as on any day', async () => {
    const published = rowsOf('splits_and_bonuses_2021-07_2022-12.csv');
    const rows = await query(
      `select symbol || ' ' || trade_date as day, round(return_percent, 1) as percent, close_price / previous_close_price as printed
         from market.prices where exchange = 'NSE' and symbol || ' ' || trade_date = any($1)`,
      [published.map((row) => `${row.symbol} ${row.ex_date}`)],
    );
    // The others traded under another symbol or in another series that day.
    expect(rows.length).toBeGreaterThan(120);
    expect(rows.filter(({ percent }) => Math.abs(Number(percent)) > 20)).toEqual([]);
    expect(rows.filter(({ printed }) => Number(printed) < 0.8).length).toBeGreaterThan(100);
  });

  test('importing the lists again changes nothing', async () => {
    const state = async () => (await query('select market.state() as state'))[0]?.state;
    const before = await state();
    await importInto(context, [join(DATA, 'nse/CF-CA-equities-01-01-2016-to-31-12-2022.csv')], {
      force: true,
    });
    const events = await query("select count(*)::int as runs from etl.runs where kind = 'events'");
    expect(events).toEqual([{ runs: 1 }]);
    expect(Number(await state())).toBeLessThanOrEqual(Number(before) + 1);
  });
});

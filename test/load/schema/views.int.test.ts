import { beforeAll, describe, expect, test } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { updateHitBands } from '../../../src/load/price-tables.ts';
import { ALL_DAYS } from '../../../src/state/derived.ts';
import { importInto, newFile, openStore } from '../../support/import-support.ts';

const HEADER =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty';

/**
 * Trading days as `day symbol series isin open high low close previous quantity turnover`, and as a bhav copy says
 * them.
 */
const bhavCopy = (exchange: string, lines: string) =>
  newFile(`${exchange}.csv`, [
    HEADER,
    ...lines
      .trim()
      .split('\n')
      .map((line) => {
        const [day, symbol, series, isin, open, high, low, close, previous, quantity, turnover] = line
          .trim()
          .split(/ +/);
        const id = exchange === 'BSE' ? '500001' : '1';
        return `${day},${day},CM,${exchange},STK,${id},${isin},${symbol},${series},${symbol} LTD,${[open, high, low, close, close, previous, quantity, turnover].map((one) => (one === '-' ? '' : one)).join()},3,F1,1`;
      }),
  ]);

/**
 * ALPHA has a new ISIN from its split on and a new symbol the day after, BETA is suspended over its own and comes back in another series, GAMMA is
 * stored only from after its split on, DELTA is a share and a bond, EPSILON is listed and delisted.
 */
const NSE = `
2023-12-28 ALPHA   EQ INE000A01011 100 105  95  100   99 1000 100000
2023-12-29 ALPHA   EQ INE000A01011 100 115 100  110  100 2000 220000
2024-01-01 ALPHA   EQ INE000A01011 110 120 105  120  110 1000 118000
2024-01-02 ALPHA   EQ INE000A01011 118 118  99  100  120    0      0
2024-01-03 ALPHA   EQ INE000A01029  21  23  20   22  100 6000 129000
2024-01-04 ALFA    EQ INE000A01029  22  24  22 23.1   22 5000 115000
2023-12-29 BETA    EQ INE000B01019  50  50  50   50   49  100   5000
2024-01-09 BETA    BE INE000B01027  10  11  10   11   50  500   5300
2024-01-10 BETA    BE INE000B01027  11  13  11 12.1   11  500   6000
2024-01-08 GAMMA   EQ INE000C01017  30  34  30   33   30  100   3200
2024-01-09 GAMMA   EQ INE000C01017  33  33  33 36.3   33  100   3300
2024-01-09 DELTA   EQ INE000D01015  10  10  10   10   10    -      -
2024-01-09 DELTA   N1 INE000D07011 999 999 999  999 1000    1    999
2024-01-02 EPSILON EQ INE000E01013  70  77  70   77    0  100   7500
2024-01-05 EPSILON EQ INE000E01013  77  80  60   70   77  100   7000
`;
const BSE =
  '2024-01-03 ALPHA A INE000A01011 21 22 20 21 100 10 210\n2024-01-10 ALPHA A INE000A01029 24 24 24 24 23 10 240';

let context: Context;
const query = async (text: string, values: unknown[] = []) =>
  (await context.db.pool.query<Record<string, string | null>>(text, values)).rows;
/** Each row as a line, numbers without trailing zeros. */
const lines = async (text: string) =>
  (await query(text)).map((row) =>
    Object.values(row)
      .map((value) =>
        value === null ? '-' : /^-?\d+\.\d+$/.test(String(value)) ? String(Number(value)) : value,
      )
      .join(' '),
  );

beforeAll(async () => {
  context = await openStore();
  await importInto(context, [
    bhavCopy('NSE', NSE),
    bhavCopy('BSE', BSE),
    newFile('MTO.DAT', [
      'Delivery',
      '10,MTO,29122023,1,1',
      '20,1,ALPHA,EQ,2000,500,25.00',
      '20,2,BETA,EQ,100,-,-',
    ]),
    newFile('events.csv', [
      'exchange,symbol,ex_date,kind,ratio,note',
      'NSE,ALFA,2024-01-03,split,5:1,',
      'NSE,BETA,2024-01-04,split,5:1,',
      'NSE,GAMMA,2024-01-04,split,5:1,',
    ]),
  ]);
  await context.db.pool.query(
    `insert into market.circuit_breakers (exchange, trade_date, scrip_id, series, band, symbol, first_loaded_at, last_changed_at, revision, run_id, load_id)
     select 'NSE', day::date, symbol, series, band, symbol, now(), now(), 1, 1, 1 from (values
       ('2023-12-29', 'ALPHA', 'EQ', 'H'), ('2023-12-29', 'BETA', 'EQ', 'L'), ('2024-01-03', 'ALPHA', 'EQ', 'H'),
       ('2024-01-03', 'ALPHA', 'EQ', 'L'), ('2024-01-05', 'EPSILON', 'EQ', 'H'), ('2024-01-05', 'NOBODY', 'EQ', 'L')) v(day, symbol, series, band)`,
  );
  await updateHitBands(context.db.drizzle, ALL_DAYS);
  // Nothing is known of the bands of 2024-01-02; on 2024-01-09 there were none. On 2024-01-04 and 2024-01-10 records were
  // rejected: of these a later response had none, of the others no response came. A stray record is of no day.
  await context.db.pool.query(
    `insert into etl.coverage (operation, exchange, day, last_position, last_said, last_records, loaded_position, loaded_records)
     select 'GetCircuitBreakers', 'NSE', day::date, '2024-02-01', said, records, loaded::timestamptz, nullif(records, 0)
       from (values ('2023-12-29', 'loaded', 2, '2024-02-01'), ('2024-01-03', 'loaded', 2, '2024-02-01'),
                    ('2024-01-05', 'loaded', 2, '2024-02-01'), ('2024-01-09', 'empty', 0, null),
                    ('2024-01-04', 'loaded', 1, '2024-02-01'), ('2024-01-08', 'loaded', 1, '2024-02-01'),
                    ('2024-01-10', 'loaded', 1, '2024-02-01')) v(day, said, records, loaded)`,
  );
  await context.db.pool.query(
    `insert into etl.rejected_records (run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, problems, is_stray,
         first_seen_at, last_seen_at, settled_at)
     select 1, 1, 'GetCircuitBreakers', 'NSE', 0, day::date, day::date, day, '[]', is_stray, '2024-01-31', '2024-01-31', settled::timestamptz
       from (values ('2024-01-04', false, null), ('2024-01-08', true, null), ('2024-01-10', false, '2024-02-01')) v(day, is_stray, settled)`,
  );
}, 120_000);

describe('market.prices', () => {
  test('compares each close with the one before as the events since then left it', async () => {
    const returns = (symbols: string) =>
      lines(
        `select trade_date::text, symbol, previous_close_price, adjusted_previous_close_price, round(return_percent, 4)::text as return
           from market.prices where exchange = 'NSE' and symbol in (${symbols}) and series <> 'N1' order by 1`,
      );
    expect(await returns("'ALPHA', 'ALFA'")).toEqual([
      '2023-12-28 ALPHA 99 99 1.0101',
      '2023-12-29 ALPHA 100 100 10',
      '2024-01-01 ALPHA 110 110 9.0909',
      '2024-01-02 ALPHA 120 120 -16.6667',
      '2024-01-03 ALPHA 100 20 10',
      // Its first trading day under this symbol, but not since the split.
      '2024-01-04 ALFA 22 22 5',
    ]);
    // It did not trade on the ex-date.
    expect(await returns("'BETA'")).toEqual([
      '2023-12-29 BETA 49 49 2.0408',
      '2024-01-09 BETA 50 10 10',
      '2024-01-10 BETA 11 11 10',
    ]);
    // What came between the split and the first trading day that is stored is not known: its previous close is one from
    // after it.
    expect(await returns("'GAMMA'")).toEqual(['2024-01-08 GAMMA 30 30 10', '2024-01-09 GAMMA 33 33 10']);
    expect(await returns("'EPSILON'")).toEqual([
      '2024-01-02 EPSILON - - -',
      '2024-01-05 EPSILON 77 77 -9.0909',
    ]);
  });

  test('has the returns of adjusted closes, wherever the trading day before is stored', async () => {
    const rows = await query(
      `select p.symbol, p.trade_date::text as day, round(p.return_percent, 2) as reported, round((a.close_price / a.before - 1) * 100, 2) as adjusted
         from market.prices p
         join (select instrument_id, exchange, trade_date, close_price, lag(close_price) over (partition by exchange, instrument_id order by trade_date) as before
                 from market.prices_adjusted) a using (instrument_id, exchange, trade_date)
        where a.before is not null and exchange = 'NSE' and p.series <> 'N1'`,
    );
    expect(rows).toHaveLength(9);
    expect(rows.filter(({ reported, adjusted }) => reported !== adjusted)).toEqual([]);
  });

  test('has a row for each row of the bhav copy: series apart, deliveries and bands beside, nulls where there is nothing', async () => {
    const [counts] = await query(
      `select (select count(*)::int from market.prices) as prices, (select count(*)::int from market.bhavcopy_cm) as rows,
         (select count(distinct (instrument_id, trade_date))::int from market.prices) as keys`,
    );
    expect(counts).toEqual({ prices: 17, rows: 17, keys: 17 });
    expect(
      await lines(
        `select symbol, series, name, vwap, traded_quantity, trade_count, delivered_quantity, delivered_percent, band_hit
           from market.prices where exchange = 'NSE' and trade_date in ('2023-12-29', '2024-01-02', '2024-01-03', '2024-01-09') order by trade_date, 1, 2`,
      ),
    ).toEqual([
      'ALPHA EQ ALPHA LTD 110 2000 3 500 25 H',
      'BETA EQ BETA LTD 50 100 3 - - L',
      'ALPHA EQ ALPHA LTD - 0 3 - - -',
      'EPSILON EQ EPSILON LTD 75 100 3 - - -',
      'ALPHA EQ ALPHA LTD 21.5 6000 3 - - HL',
      'BETA BE BETA LTD 10.6 500 3 - - none',
      'DELTA EQ DELTA LTD - - 3 - - none',
      'DELTA N1 DELTA LTD 999 1 3 - - none',
      'GAMMA EQ GAMMA LTD 33 100 3 - - none',
    ]);
    expect(
      await lines(
        `select distinct trade_date::text, band_hit from market.prices
          where exchange = 'NSE' and trade_date in ('2024-01-04', '2024-01-08', '2024-01-10') order by 1`,
      ),
    ).toEqual(['2024-01-04 -', '2024-01-08 none', '2024-01-10 none']);
  });
});

describe('market.candles', () => {
  const candles = (period: string, rest = '') =>
    lines(
      `select period_start::text, symbol, first_session::text, last_session::text, sessions, open_price, high_price, low_price, close_price, traded_quantity
         from market.candles('${period}'${rest}) where exchange = 'NSE' and symbol in ('ALFA', 'BETA', 'DELTA') order by symbol, 1, open_price`,
    );

  test('by week follow a share through its new symbol, adjusted; a week without a trading day has none', async () => {
    expect(await candles('week')).toEqual([
      '2023-12-25 ALFA 2023-12-28 2023-12-29 2 20 23 19 22 15000',
      '2024-01-01 ALFA 2024-01-01 2024-01-04 4 22 24 19.8 23.1 16000',
      '2023-12-25 BETA 2023-12-29 2023-12-29 1 10 10 10 10 500',
      '2024-01-08 BETA 2024-01-09 2024-01-10 2 10 13 10 12.1 1000',
      '2024-01-08 DELTA 2024-01-09 2024-01-09 1 10 10 10 10 -',
      '2024-01-08 DELTA 2024-01-09 2024-01-09 1 999 999 999 999 1',
    ]);
  });

  test('by month, quarter and year begin with them, in either word', async () => {
    const starts = async (period: string) =>
      (
        await query(`select distinct period_start::text as day from market.candles($1) order by 1`, [period])
      ).map(({ day }) => day);
    expect(await starts('month')).toEqual(['2023-12-01', '2024-01-01']);
    expect(await starts('quarter')).toEqual(['2023-10-01', '2024-01-01']);
    expect(await starts('YEAR')).toEqual(['2023-01-01', '2024-01-01']);
    for (const period of ['week', 'month', 'quarter', 'year']) {
      expect(await candles(`${period}ly`)).toEqual(await candles(period));
    }
  });

  test('as of a day know no later trading day and no later event; from a day on they read no trading day before', async () => {
    expect(await candles('week', ", '2024-01-02'")).toEqual([
      '2023-12-25 ALFA 2023-12-28 2023-12-29 2 100 115 95 110 3000',
      '2024-01-01 ALFA 2024-01-01 2024-01-02 2 110 120 99 100 1000',
      '2023-12-25 BETA 2023-12-29 2023-12-29 1 50 50 50 50 100',
    ]);
    expect(await candles('month', ", '2024-01-10', '2024-01-10'")).toEqual([
      '2024-01-01 BETA 2024-01-10 2024-01-10 1 11 13 11 12.1 500',
    ]);
  });

  test('of any other period are an error', async () => {
    await expect(query(`select * from market.candles('day')`)).rejects.toThrow(
      `there are no candles by 'day'`,
    );
    await expect(query(`select * from market.candles(null)`)).rejects.toThrow('there are no candles by null');
  });
});

describe('market.universe_on', () => {
  const universe = (day: string) =>
    lines(
      `select symbol, series, isin, first_session::text, last_session::text, has_traded from market.universe_on('${day}', 'NSE') order by 1, 2`,
    );

  test('lists what was tradable, suspended and since delisted shares too, by their names of that day', async () => {
    expect(await universe('2024-01-03')).toEqual([
      'ALPHA EQ INE000A01029 2023-12-28 2024-01-04 true',
      'BETA EQ INE000B01019 2023-12-29 2024-01-10 false',
      'EPSILON EQ INE000E01013 2024-01-02 2024-01-05 false',
    ]);
    expect(await universe('2024-01-04')).toContain('ALFA EQ INE000A01029 2023-12-28 2024-01-04 true');
    expect(await universe('2023-12-27')).toEqual([]);
    expect(await universe('2024-01-10')).toEqual(['BETA BE INE000B01027 2023-12-29 2024-01-10 true']);
    // After the newest trading day, as on it.
    expect(await universe('2024-01-13')).toEqual(['BETA BE INE000B01027 2023-12-29 2024-01-10 false']);
    const both = await query(`select exchange from market.universe_on('2024-01-04') order by 1`);
    expect(both.map(({ exchange }) => exchange)).toEqual(['BSE', 'NSE', 'NSE', 'NSE']);
  });
});

test('market.band_hits follow the share into its next trading day, whatever its series is then', async () => {
  expect(
    await lines(
      `select trade_date::text, symbol, band, close_price, round(return_percent, 2)::text as a, next_session::text, next_close_price,
           round(next_return_percent, 2)::text as b from market.band_hits order by 1, 2, 3`,
    ),
  ).toEqual([
    '2023-12-29 ALPHA H 110 10 2024-01-01 120 9.09',
    '2023-12-29 BETA L 50 2.04 2024-01-09 11 10',
    '2024-01-03 ALPHA H 22 10 2024-01-04 23.1 5',
    '2024-01-03 ALPHA L 22 10 2024-01-04 23.1 5',
    '2024-01-05 EPSILON H 70 -9.09 - - -',
    '2024-01-05 NOBODY L - - - - -',
  ]);
});

test('market.pledge_changes compares with the last figures before, however old, and lists no day on which nothing changed', async () => {
  await context.db.pool.query(
    `insert into market.consolidated_pledge (exchange, scrip_code, trade_date, scrip_id, depository_pledged_shares, depository_pledged_percent,
         encumbered_last_quarter_of_promoter_shares_percent, first_loaded_at, last_changed_at, revision, run_id, load_id)
       select 'BSE', 500001, day::date, 'ALPHA', shares, percent, encumbered, now(), now(), 1, 1, 1 from (values
         ('2024-01-01', 100, 1.0, 5.0), ('2024-01-02', 100, 1.0, 5.0), ('2024-01-09', 150, 1.5, 5.0), ('2024-01-10', null, null, 5.0),
         ('2024-01-11', 150, 1.5, 4.0)) v(day, shares, percent, encumbered)`,
  );
  expect(
    await lines(
      `select instrument_id, trade_date::text, previous_date::text, depository_pledged_shares, depository_pledged_shares_change,
           depository_pledged_percent_change, encumbered_last_quarter_of_promoter_shares_percent_change
           from market.pledge_changes order by 2`,
    ),
  ).toEqual([
    'BSE:500001 2024-01-09 2024-01-02 150 50 0.5 0',
    'BSE:500001 2024-01-10 2024-01-09 - - - 0',
    'BSE:500001 2024-01-11 2024-01-10 150 - - -1',
  ]);
});

test('market.classification_on gives what was allotted last by then, to the instruments of both exchanges and through a new ISIN', async () => {
  await context.db.pool.query(
    `insert into market.sectoral_classification (exchange, isin, scrip_code, allotted_from, symbol, sector, basic_industry, first_loaded_at,
         last_changed_at, revision, run_id, load_id)
       select 'BSE', 'INE000A01029', 500001, day::date, 'ALPHA', sector, 'Of ' || sector, now(), now(), 1, 1, 1
         from (values ('2020-01-01', 'Chemicals'), ('2024-01-03', 'Power')) v(day, sector)`,
  );
  const sectors = (day: string) =>
    lines(
      `select instrument_id, exchange, sector, basic_industry, allotted_from::text from market.classification_on('${day}') order by 1`,
    );
  expect(await sectors('2019-12-31')).toEqual([]);
  expect(await sectors('2024-01-02')).toEqual([
    'BSE:500001 BSE Chemicals Of Chemicals 2020-01-01',
    'NSE:INE000A01011 NSE Chemicals Of Chemicals 2020-01-01',
  ]);
  expect((await sectors('2024-01-03')).map((line) => line.split(' ')[2])).toEqual(['Power', 'Power']);
});

test('market.financial_ratios_wide reads facts and columns alike, and knows the newest of a company', async () => {
  await context.db.pool.query(
    `insert into market.financial_ratios (exchange, symbol, nature_of_report, variant, as_of_date, period, pe_ratio, market_cap_crore, first_loaded_at, last_changed_at, revision, run_id, load_id)
       values ('BSE', 'ALPHA', 'Standalone', 'eod', '2024-01-09', '', 20, 100, '2024-01-09', now(), 1, 1, 1),
              ('BSE', 'ALPHA', 'Standalone', 'quarter', '2023-12-31', '2023QD', 19, null, '2024-01-09', now(), 1, 1, 1);
       insert into market.financial_ratio_facts (exchange, symbol, nature_of_report, variant, as_of_date, period, fact_key, unit_id, value, value_number, first_loaded_at, last_changed_at, revision, run_id, load_id)
       select 'BSE', 'ALPHA', 'Standalone', 'eod', day::date, '', key, '', value, number, '2024-01-10', now(), 1, 1, 1
         from (values ('2024-01-10', 'PeRatio', '21.5', 21.5), ('2024-01-10', 'LastQ', 'QD', null), ('2024-01-10', 'Book Value Per Share', '7', 7),
                      ('2024-01-09', 'PeRatio', '99', 99)) v(day, key, value, number)`,
  );
  expect(
    await lines(
      `select instrument_id, variant, as_of_date::text, is_latest, pe_ratio, market_cap_crore, last_q, book_value_per_share
           from market.financial_ratios_wide where symbol = 'ALPHA' order by as_of_date`,
    ),
  ).toEqual([
    'BSE:500001 quarter 2023-12-31 false 19 - - -',
    'BSE:500001 eod 2024-01-09 false 20 100 - -',
    'BSE:500001 eod 2024-01-10 true 21.5 - QD 7',
  ]);
});

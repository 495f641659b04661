import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Row } from '../../src/declaration/table.ts';
import { operations } from '../../src/operations/registry.ts';
import { readAs } from './support.ts';

const sample = (name: string) => readFileSync(new URL(`../fixtures/samples/${name}.json`, import.meta.url));

/** The rows of a sample, without the columns that it has no value for: these may grow in number. */
function rowsOf(name: string): readonly Row[] {
  const read = readAs(name, sample(name));
  expect(read.rejects).toEqual([]);
  expect(read.warnings).toEqual([]);
  expect(read.unknownFields).toEqual([]);
  expect(read.batches).toHaveLength(1);
  return [...(read.batches[0]?.rows ?? [])].map((row) =>
    Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)),
  );
}

describe('the samples of the service, every value', () => {
  test('GetCircuitBreakers', () => {
    const row = (scrip_id: string, symbol: string, scrip_name: string, series: string, band: string) => ({
      exchange: 'NSE',
      trade_date: '2025-07-03',
      scrip_id,
      series,
      band,
      symbol,
      scrip_name,
    });
    expect(rowsOf('GetCircuitBreakers')).toEqual([
      row('21STCENMGM', '21STCENMGM', '21ST CENTURY MGMT SERVICE', 'EQ', 'H'),
      row('AARTECH', 'AARTECH', 'AARTECH SOLONICS LIMITED', 'EQ', 'L'),
      row('ABHAPOWER.ST', 'ABHAPOWER', 'ABHA POWER N STEEL LTD', 'ST', 'H'),
      row('ABMINTLLTD.BE', 'ABMINTLLTD', 'ABM INTERNATIONAL LTD', 'BE', 'L'),
    ]);
  });

  test('GetCorporateActionsCategories', () => {
    const row = (purpose_code: string, corporate_action_type: string) => ({
      exchange: 'BSE',
      purpose_code,
      corporate_action_type,
    });
    expect(rowsOf('GetCorporateActionsCategories')).toEqual([
      row('AGM', 'A.G.M.'),
      row('AM', 'Amalgamation'),
      row('ABC', 'Annual Book Closure'),
      row('BN', 'Bonus issue'),
      row('BGM', 'Buy Back of Shares'),
      row('EX', 'Change in Terms or Status'),
      row('CS', 'Consolidation of Shares'),
      row('FC', 'Conversion of FCD'),
    ]);
  });

  test('GetFinancialRatios: the key comes from the request', () => {
    expect(rowsOf('GetFinancialRatios')).toEqual([
      {
        exchange: 'BSE',
        symbol: 'TCS',
        nature_of_report: 'Standalone',
        variant: 'eod',
        as_of_date: '2025-02-27',
        period: '',
        year: 2024,
        last_q: 'QM',
        market_cap_crore: 1304121.56,
        eod_close_price: 3604.45,
        week52_high_price: 4585.9,
        week52_low_price: 3060.25,
        eps: 134.19,
        pe_ratio: 26.8587928464978,
        book_value_per_share: 261.756906077348,
        dividend_yield: 119296.980121794,
        ebit: 661270000000,
        interest_coverage_ratio: 83.0741206030151,
        face_value: 1,
        price_sales_ratio: 5.11041226050038,
        profit_after_tax: 487970000000,
        enterprise_value: 12957795600000,
        debt: 0,
      },
    ]);
  });

  test('GetSectoralClassification', () => {
    expect(rowsOf('GetSectoralClassification')).toEqual([
      {
        exchange: 'BSE',
        isin: 'INE467B01029',
        scrip_code: 532540,
        allotted_from: '2022-03-31',
        symbol: 'TCS',
        company_name: 'Tata Consultancy Services Ltd.',
        macro_sector_code: 'IN08',
        macro_sector: 'Information Technology',
        sector_code: 'IN0801',
        sector: 'Information Technology',
        industry_code: 'IN080101',
        industry: 'IT - Software',
        basic_industry_code: 'IN080101001',
        basic_industry: 'Computers - Software & Consulting',
        source_received_at: '2025-05-07 16:56:40+05:30',
        source_saved_at: '2025-05-07 16:56:52+05:30',
      },
    ]);
  });

  test('GetTop5GainersLosers: gainers and losers are ranked each for themselves', () => {
    const row = (
      scrip_code: number,
      is_loser: boolean,
      rank: number,
      scrip_name: string,
      scrip_group: string,
      [close_price, previous_close_price, change_percent, quantity, turnover_lakh]: [
        number,
        number,
        number,
        number,
        number,
      ],
    ) => ({
      exchange: 'BSE',
      trade_date: '2025-02-25',
      scrip_code,
      is_loser,
      rank,
      scrip_name,
      scrip_group,
      close_price,
      previous_close_price,
      change_percent,
      quantity,
      turnover_lakh,
      source_received_at: '2025-02-25 21:02:33+05:30',
      source_saved_at: '2025-02-25 21:02:33+05:30',
    });
    expect(rowsOf('GetTop5GainersLosers')).toEqual([
      row(750958, false, 1, 'THANG-RE', 'B', [203.9, 145.65, 39.99, 932, 1.79]),
      row(533158, false, 2, 'THANGAMAYIL', 'B', [1861.85, 1551.55, 20, 10651, 188.13]),
      row(540210, false, 3, 'HEADSUP', 'B', [13.36, 11.14, 19.93, 216028, 28.56]),
      row(541299, false, 4, 'DLCL', 'M', [14.52, 12.12, 19.8, 4000, 0.58]),
      row(543350, false, 5, 'VIJAYA', 'A', [1065.8, 923.35, 15.43, 189163, 1933.34]),
      row(511696, true, 1, 'CHARTERED CA', 'X', [212.6, 258.35, -17.71, 6406, 13.77]),
      row(537707, true, 2, 'ETT LTD', 'X', [14.89, 18.03, -17.42, 344067, 53.95]),
      row(532124, true, 3, 'RELIAB VEN', 'X', [19.49, 22.37, -12.87, 41732, 8.68]),
      row(543108, true, 4, 'UTCRFS2RQP', 'F', [420.22, 466.91, -10, 1, 0]),
      row(542817, true, 5, 'NIEHSPI', 'B', [32.18, 35.75, -9.99, 987, 0.34]),
    ]);
  });

  test('GetTotalTradeHighlights', () => {
    expect(rowsOf('GetTotalTradeHighlights')).toEqual([
      {
        exchange: 'BSE',
        trade_date: '2025-02-27',
        trade_highlight: 'Total',
        scrip_count: 4471,
        trade_count: 2802025,
        shares_volume_crore: 43.87,
        turnover_crore: 4179,
        source_received_at: '2025-02-27 21:02:02+05:30',
        source_saved_at: '2025-02-27 21:02:02+05:30',
      },
    ]);
  });
});

test.each(operations.map((operation) => [operation.name, operation] as const))(
  'each operation reads its own sample whole: %s',
  (name, operation) => {
    const read = readAs(name, operation.sample.response as object);
    expect(read.rejects).toEqual([]);
    expect(read.unknownFields).toEqual([]);
    expect(read.fetched).toBeGreaterThan(0);
    const rows = read.batches.flatMap((batch) => [...batch.rows]);
    expect(rows).toHaveLength(read.fetched);
    for (const batch of read.batches) {
      const columns = batch.table.fields.map((field) => field.column);
      for (const row of batch.rows) expect(Object.keys(row)).toEqual(columns);
    }
  },
);

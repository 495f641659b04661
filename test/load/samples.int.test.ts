import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/load/database/database.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { expectedRow, offlineSource, recordsOf, shapeOf, stored } from './expected.ts';
import { load, openStore } from './support.ts';

/** The samples, how many records each holds, and a row of each as an analyst will see it. */
const SAMPLES: readonly (readonly [
  name: string,
  records: number,
  row: Readonly<Record<string, string | null>>,
])[] = [
  [
    'GetCircuitBreakers',
    4,
    {
      exchange: 'NSE',
      trade_date: '07-03-2025',
      scrip_id: 'ABHAPOWER.ST',
      series: 'ST',
      band: 'H',
      symbol: 'ABHAPOWER',
      scrip_name: 'ABHA POWER N STEEL LTD',
      source_saved_at: null,
    },
  ],
  [
    'GetCorporateActionsCategories',
    8,
    { exchange: 'BSE', purpose_code: 'AM', corporate_action_type: 'Amalgamation', source_received_at: null },
  ],
  [
    'GetFinancialRatios',
    1,
    {
      exchange: 'BSE',
      symbol: 'TCS',
      nature_of_report: 'Standalone',
      variant: 'eod',
      period: '',
      as_of_date: '02-27-2025',
      year: '2024',
      last_q: 'QM',
      pe_ratio: '26.8587928464978',
      enterprise_value: '12957795600000',
      dividend_yield: '119296.980121794',
      debt: '0',
    },
  ],
  [
    'GetSectoralClassification',
    1,
    {
      exchange: 'BSE',
      isin: 'INE467B01029',
      scrip_code: '532540',
      allotted_from: '03-31-2022',
      macro_sector_code: 'IN08',
      basic_industry: 'Computers - Software & Consulting',
      source_received_at: '05-07-2025 16:56:40',
      source_saved_at: '05-07-2025 16:56:52',
    },
  ],
  [
    'GetTop5GainersLosers',
    10,
    {
      exchange: 'BSE',
      trade_date: '02-25-2025',
      scrip_code: '532124',
      is_loser: 'true',
      rank: '3',
      scrip_name: 'RELIAB VEN',
      scrip_group: 'X',
      close_price: '19.49',
      percent_change: '-12.87',
      quantity: '41732',
      turnover: '8.68',
      source_saved_at: '02-25-2025 21:02:33',
    },
  ],
  [
    'GetTotalTradeHighlights',
    1,
    {
      exchange: 'BSE',
      trade_date: '02-27-2025',
      trade_highlight: 'Total',
      scrip_count: '4471',
      trade_count: '2802025',
      shares_volume: '43.87',
      turnover_rs_crore: '4179',
    },
  ],
];

describe('the sample answers of the service', () => {
  const source = offlineSource();
  let store: Database;
  beforeAll(async () => {
    store = await openStore();
  });

  test.each(SAMPLES)('%s loads into its table, every value as sent', async (name, records, row) => {
    const operation = operationNamed(name);
    const body = readFileSync(new URL(`../fixtures/samples/${name}.json`, import.meta.url));
    const answer: unknown = JSON.parse(body.toString('utf8'));
    const asked = { ...operation.sample.asked, calledOn: '2026-11-21' };
    const read = source.read(operation, asked, { body, contentType: 'text/plain', bytes: body.length });
    expect(read).toMatchObject({ fetched: records, rejects: [], warnings: [], unknownFields: [] });

    expect(await load(store, { batches: read.batches })).toMatchObject({
      fetched: records,
      inserted: records,
    });

    const shape = shapeOf(operation, answer);
    const memory = new Map<string, number>();
    const expected = recordsOf(answer).map((record) => expectedRow(shape, asked, record, memory));
    const found = await stored(store, shape.table);
    expect(found).toHaveLength(records);
    expect(found).toEqual(expect.arrayContaining(expected));
    expect(found).toContainEqual(expect.objectContaining(row));
  });
});

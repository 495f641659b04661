import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { operationNamed } from '../../src/operations/registry.ts';
import { expectedRow, offlineSource, recordsOf, shapeOf, storedRows } from '../support/expected.ts';
import { load, openStore } from './support.ts';

/** Named corrections of what is printed wrong in the documentation. */
const CORRECTIONS = {
  'doubled quotes': (text: string) => text.replaceAll(/""([^"]+)""/g, '"$1"'),
  'a list that is not closed': (text: string) => text.replace(/\}\s*\}\s*$/, '}]}'),
  'one brace too many': (text: string) => text.replace(/\}\s*\}\s*$/, '}'),
} as const;

type Correction = keyof typeof CORRECTIONS;

/** The samples that are printed as JSON. */
const VALID: readonly (readonly [operation: string, file: string])[] = [
  ['GetCircuitBreakers', 'GetCircuitBreakers.json'],
  ['GetSeriesChange', 'GetSeriesChange.json'],
  ['GetTop5GainersLosers', 'GetTop5GainersLosers.json'],
  ['GetTotalTradeHighlights', 'GetTotalTradeHighlights.json'],
];

/** The others, with what is wrong in them, and in which line. */
const BROKEN: readonly (readonly [operation: string, file: string, wrong: Correction, line: number])[] = [
  ['GetConsolidatedPledge', 'GetCorporateActions.txt', 'doubled quotes', 13],
  ['GetCorporateActions', 'GetCorporateActions.txt', 'doubled quotes', 13],
  ['GetCorporateActionsCategories', 'GetCorporateActions.txt', 'doubled quotes', 13],
  ['GetCorporateActionsCategories', 'GetCorporateActionsCategories.txt', 'a list that is not closed', 18],
  ['GetFinancialRatios', 'GetFinancialRatios.txt', 'one brace too many', 21],
  ['GetFinRatioEOD', 'GetFinancialRatios.txt', 'one brace too many', 21],
  ['GetSectoralClassification', 'GetSectoralClassification.txt', 'doubled quotes', 7],
];

/** The published corporate action as it is stored: its id is made, and its dates are sent with times. */
const ACTION = {
  exchange: 'BSE',
  scrip_code: '538897',
  action_id: 'ET 2025-02-27 2025-02-20T11:06:03Z',
  symbol: 'SHRINIWAS',
  company_name: 'Shri Niwas Leasing and Finance Limited',
  industry_name: 'Financial Services',
  listed_status: 'Active',
  scrip_face_value: '10.0',
  isin: 'INE201F01015',
  announce_type: 'U',
  announcement_date: '02-20-2025',
  announced_at: '02-20-2025 16:36:03',
  meeting_date: null,
  corporate_action_type: 'Right Issue of Equity Shares',
  purpose_code: 'ET',
  announcement_url: 'https://{host}/xml-data/corpfiling/AttachHis/3f6bbaa7-8faa-4e87-8aa8-824213bfa789.pdf',
  ratio_amount: '00100001',
  bc_rd_flag: 'RD',
  bc_rd_from: '02-27-2025',
  bc_rd_to: '02-27-2025',
  prov_xdate: '02-27-2025',
  nd_start_date: null,
  nd_end_date: null,
  payment_date: null,
  reference_srno: '1',
  modify_date: '02-24-2025 16:43:15',
  source_received_at: '02-24-2025 16:44:02',
  source_saved_at: '02-24-2025 16:44:02',
};

describe('the sample responses as the documentation prints them', () => {
  const source = offlineSource();
  const printed = (file: string) =>
    readFileSync(new URL(`../fixtures/service-samples/${file}`, import.meta.url), 'utf8');

  /** Reads a text as a response about the day of its first record. */
  function readText(name: string, text: string) {
    const operation = operationNamed(name);
    const day = /"(?:Date|ChangeDate)": "(\d\d)-(\d\d)-(\d{4})"/.exec(text);
    const on = day === null ? operation.sample.requested.from : `${day[3]}-${day[1]}-${day[2]}`;
    const requested = { ...operation.sample.requested, from: on, to: on, calledOn: '2026-11-21' };
    const body = Buffer.from(text);
    const read = () =>
      source.read(operation, requested, { body, contentType: 'text/plain', bytes: body.length });
    return { operation, requested, read };
  }

  test.each([
    ...VALID.map(([name, file]) => [name, file, printed(file)] as const),
    ...BROKEN.map(([name, file, wrong]) => [name, file, CORRECTIONS[wrong](printed(file))] as const),
  ])('%s: %s loads into its table, every value as sent', async (name, _file, text) => {
    const response: unknown = JSON.parse(text);
    const { operation, requested, read } = readText(name, text);
    const extracted = read();
    const records = recordsOf(response);
    expect(extracted).toMatchObject({ rejects: [], warnings: [], unknownFields: [] });
    const store = await openStore();
    expect(await load(store, { batches: extracted.batches })).toMatchObject({ inserted: records.length });
    const shape = shapeOf(operation, response);
    const memory = new Map<string, number>();
    const isAction = shape.table.name === 'corporate_actions';
    const expected = isAction
      ? [ACTION]
      : records.map((record) => expectedRow(shape, requested, record, memory));
    const rows = await storedRows(store, shape.table);
    expect(rows).toHaveLength(records.length);
    expect(rows).toEqual(expect.arrayContaining(expected));
  });

  test.each(BROKEN)(
    '%s: %s is no JSON as printed (%s), which is an error that names line %i',
    (name, file, _wrong, line) => {
      const { read } = readText(name, printed(file));
      const where = expect.stringMatching(
        `broken JSON, \\d+ characters: the error is at line ${line}, character`,
      );
      expect(read).toThrowError(expect.objectContaining({ kind: 'unreadable', message: where }));
    },
  );
});

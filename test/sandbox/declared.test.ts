import { expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { buildUrl, readResponse } from '../../src/extract/index.ts';
import type { Requested } from '../../src/operations/fields.ts';
import type { Operation } from '../../src/operations/operation.ts';
import { DEFAULT_BEHAVIOUR } from '../../src/sandbox/behaviour.ts';
import { readQuery } from '../../src/sandbox/http/parameters.ts';
import { Market } from '../../src/sandbox/market/market.ts';
import { createResponse } from '../../src/sandbox/response/source-response.ts';
import { raw, requestedOf, SETTINGS } from '../extract/support.ts';
import { contracts, deals, details, items } from '../support/declared.ts';
import { manualClock } from './support.ts';

const TODAY = '2025-09-12';

const market = new Market({
  calendar: loadCalendar(),
  clock: manualClock(),
  instrumentsPerExchange: 20,
  revision: 0,
  splits: false,
});

const queryOf = (operation: Operation, search: URLSearchParams) =>
  readQuery(operation, search, DEFAULT_BEHAVIOUR, market);

/** What the sandbox responses to the pipeline's own request, read again. */
async function sent(
  operation: Operation,
  changes: Partial<Requested>,
  format: 'Json' | 'Xml' | 'Csv' = 'Json',
) {
  const requested = requestedOf(operation, { calledOn: TODAY, ...changes });
  const settings = { ...SETTINGS, format };
  const query = queryOf(operation, new URL(buildUrl(settings, operation, requested)).searchParams);
  const { body } = await createResponse(market, query, DEFAULT_BEHAVIOUR, new Map());
  const { batches, ...facts } = readResponse(operation, requested, raw(body), settings);
  return { ...facts, body, rows: batches.flatMap(({ rows }) => [...rows]) };
}

test.each(['Json', 'Xml', 'Csv'] as const)('a span has the records of its sessions: %s', async (format) => {
  const days = { from: '2025-09-10', to: '2025-09-11' };
  const { rows, rejects, warnings } = await sent(deals, days, format);
  expect(rejects).toEqual([]);
  expect([...new Set(rows.map((row) => row.deal_date))]).toEqual(['2025-09-10', '2025-09-11']);
  expect(warnings).toEqual([
    expect.stringMatching(/^\d+ records are of days that were not requested, and left out$/),
  ]);
});

test('instruments that are requested are those of the records', async () => {
  const range = { from: '2024-01-01', to: TODAY };
  const { rows, rejects } = await sent(items, { ...range, instruments: ['TCS', 'INFY'] });
  expect(rejects).toEqual([]);
  expect([...new Set(rows.map((row) => row.symbol))]).toEqual(['TCS', 'INFY']);
  const { rows: own } = await sent(deals, { from: TODAY, to: TODAY, instruments: ['M&M'] });
  expect([...new Set(own.map((row) => row.symbol))]).toEqual(['M&M']);
});

test('any request about a row is sent, each with its own facts', async () => {
  const ask = (year: string) => sent(details, { params: { year, natureOfReport: 'Standalone' } });
  const [one, again, other] = [await ask('2024'), await ask('2024'), await ask('2023')];
  expect(one.rows.length).toBeGreaterThan(1);
  expect(one.rejects).toEqual([]);
  expect(again.rows).toEqual(one.rows);
  expect(other.rows).not.toEqual(one.rows);
});

test('a segment, in an envelope of its own', async () => {
  const { body, rows, rejects } = await sent(contracts, {});
  expect(body).toMatch(/^\{"INSTRUMENTS":\[/);
  expect(rejects).toEqual([]);
  expect([...new Set(rows.map((row) => row.exchange))]).toEqual(['BFO']);
});

test.each<[Operation, Record<string, string>, string]>([
  [deals, {}, 'Parameter range is missing.'],
  [deals, { range: 'Previous9days' }, 'Parameter range is invalid.'],
  [deals, { range: 'yesterday', from: '2024' }, 'Parameter from is unknown.'],
  [items, { onlyActive: 'true', instrumentIdentifiers: 'TCS', from: '2024' }, 'Parameter to is missing.'],
  [
    items,
    { onlyActive: 'true', instrumentIdentifiers: 'TCS', from: '24', to: '2024' },
    'Parameter from is invalid.',
  ],
  [items, { onlyActive: 'true', from: '2024', to: '2024' }, 'Parameter instrumentIdentifiers is missing.'],
  [items, { instrumentIdentifiers: 'TCS', from: '2024', to: '2024' }, 'Parameter onlyActive is missing.'],
  [items, { onlyActive: 'no' }, 'Parameter onlyActive is invalid.'],
  [items, { onlyActive: 'true', dTFormat: 'String' }, 'Parameter dTFormat is unknown.'],
  [details, { year: '2024' }, 'Parameter instrumentIdentifier is missing.'],
  [details, { instrumentIdentifier: 'TCS', year: '2024' }, 'Parameter natureOfReport is missing.'],
  [contracts, { exchange: 'NFO' }, 'Data for requested exchange is disabled.'],
])('%#: refuses what is wrong', (operation, params, line) => {
  const search = new URLSearchParams({ exchange: 'BSE', ...params });
  expect(() => queryOf(operation, search)).toThrow(line);
});

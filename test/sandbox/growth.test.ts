import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/index.ts';
import { date, datetime, int8, numeric, text } from '../../src/operations/fields.ts';
import { defineOperation, type Operation } from '../../src/operations/operation.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { defineTable } from '../../src/operations/table.ts';
import { answer } from '../../src/sandbox/answer/answer.ts';
import { answerFields, complete } from '../../src/sandbox/answer/record.ts';
import { DEFAULT_BEHAVIOUR } from '../../src/sandbox/behaviour.ts';
import { dataSets } from '../../src/sandbox/datasets/index.ts';
import { Market } from '../../src/sandbox/market/market.ts';
import type { Query } from '../../src/sandbox/query.ts';
import { findBhavcopies, realBhavcopy } from '../../src/sandbox/real-bhavcopy.ts';
import { manualClock } from './support.ts';

/** What a twelfth operation would look like. */
const table = defineTable({
  name: 'delivery_volumes',
  comment: 'Delivered quantities.',
  key: ['exchange', 'symbol', 'trade_date'],
  fields: [
    text('symbol', 'symbol', 'Ticker.', { required: true }),
    date('tradDt', 'trade_date', 'Day.', { required: true }),
    int8('deliveredQty', 'delivered_quantity', 'Delivered.', { unit: 'shares' }),
    numeric('deliveredPer', 'delivered_pct', 'Share.', { unit: 'percent' }),
    datetime('countedAt', 'counted_at', 'When it was counted.'),
  ],
});

const twelfth = defineOperation({
  ...operationNamed('GetTotalTradeHighlights'),
  name: 'GetDeliveryVolumes',
  shapes: [{ table, has: ['symbol', 'deliveredQty'], dated: true, fullSet: 'days' }],
});

function market(): Market {
  return new Market({
    calendar: loadCalendar(),
    clock: manualClock(),
    instrumentsPerExchange: 20,
    revision: 0,
    splits: false,
  });
}

/** What is asked of an operation, but for its days. */
const ASKED = {
  segment: 'NSE',
  exchange: 'NSE',
  range: null,
  day: null,
  instruments: [],
  options: {},
  format: 'Json',
  dates: 'String',
} as const;

test('an operation the simulation knows nothing of is answered from its declaration', async () => {
  const range = { from: '2025-09-06', to: '2025-09-09' };
  const query: Query = { ...ASKED, operation: twelfth, range };
  const { body } = await answer(market(), query, DEFAULT_BEHAVIOUR, new Map());
  const rows = (JSON.parse(body) as { Value: Record<string, unknown>[] }).Value;
  expect(new Set(rows.map((row) => row.TradDt))).toEqual(new Set(['09-08-2025', '09-09-2025']));
  expect(rows.length).toBeGreaterThan(4);
  expect(Object.keys(rows[0] ?? {})).toEqual([
    'Symbol',
    'TradDt',
    'DeliveredQty',
    'DeliveredPer',
    'CountedAt',
    'ReceivedAt',
    'SavedAt',
  ]);
  for (const row of rows) {
    expect(row.DeliveredQty).toBeTypeOf('number');
    expect(row.CountedAt).toMatch(/^09-0[89]-2025 21:00:\d\d$/);
  }
  expect((await answer(market(), query, DEFAULT_BEHAVIOUR, new Map())).body).toBe(body);
});

/** The operation of this name, with one field more in each of its tables. */
function grown(name: string): Operation {
  const operation = operationNamed(name);
  const added = defineTable({
    name: 'one_more',
    comment: 'One field.',
    key: ['exchange'],
    fields: [text('addedLater', 'added_later', 'A field added later.')],
  }).fields.filter(({ column }) => column === 'added_later');
  const [first, ...others] = operation.shapes.map((shape) => ({
    ...shape,
    table: { ...shape.table, fields: [...shape.table.fields, ...added] },
  }));
  if (first === undefined) throw new Error(`${name} has no shape`);
  return { ...operation, shapes: [first, ...others] };
}

test('two operations that fill one table give a field added later the same value', async () => {
  const addedBy = async (name: string, options: Query['options']) => {
    const query: Query = {
      ...ASKED,
      operation: grown(name),
      day: '2025-09-09',
      instruments: ['TCS'],
      options: { natureOfReport: 'Consolidated', ...options },
    };
    return (
      JSON.parse((await answer(market(), query, DEFAULT_BEHAVIOUR, dataSets)).body) as { AddedLater: string }
    ).AddedLater;
  };
  const value = await addedBy('GetFinRatioEOD', {});
  expect(value).toMatch(/^ADDE\d+$/);
  expect(await addedBy('GetFinancialRatios', { type: 'EOD' })).toBe(value);
});

test('a field added later is empty where the exchanges’ own files are served, which lack it', async () => {
  const files = findBhavcopies(fileURLToPath(new URL('../fixtures/bhavcopy', import.meta.url)));
  const range = { from: '2025-08-29', to: '2025-08-29' };
  const query: Query = { ...ASKED, operation: grown('GetBhavCopyCM'), range };
  const known = new Map([['GetBhavCopyCM', { sample: realBhavcopy(files) }]]);
  const { body } = await answer(market(), query, DEFAULT_BEHAVIOUR, known);
  const rows = (JSON.parse(body) as { Value: Record<string, unknown>[] }).Value;
  expect(rows.length).toBeGreaterThan(50);
  expect(new Set(rows.map((row) => row.AddedLater))).toEqual(new Set(['']));
});

test('a field the simulation knows nothing of is filled in, one left out on purpose is not', () => {
  const record = complete(
    { symbol: 'TCS', tradDt: '2025-09-09', receivedAt: undefined },
    answerFields(table),
    'TCS',
  );
  expect(record.deliveredQty).toBeTypeOf('number');
  expect(record.receivedAt).toBeUndefined();
  expect(record.symbol).toBe('TCS');
});

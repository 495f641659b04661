import { expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/index.ts';
import { date, datetime, int8, numeric, text } from '../../src/operations/fields.ts';
import { defineOperation } from '../../src/operations/operation.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { defineTable } from '../../src/operations/table.ts';
import { answer } from '../../src/sandbox/answer/answer.ts';
import { answerFields, complete } from '../../src/sandbox/answer/record.ts';
import { DEFAULT_BEHAVIOUR } from '../../src/sandbox/behaviour.ts';
import { Market } from '../../src/sandbox/market/market.ts';
import type { Query } from '../../src/sandbox/query.ts';
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

test('an operation the simulation knows nothing of is answered from its declaration', async () => {
  const query: Query = {
    operation: twelfth,
    exchange: 'NSE',
    range: { from: '2025-09-06', to: '2025-09-09' },
    day: null,
    instruments: [],
    options: {},
    format: 'Json',
    dates: 'String',
  };
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

import { expect, test } from 'vitest';
import { fullSetsOf } from '../../src/jobs/worker/store-answer.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { bhavcopy, bhavRow } from '../load/support.ts';

const DAY = '2025-08-29';
const operation = operationNamed('GetBhavCopyCM');
const window = { exchange: 'NSE', from: DAY, to: DAY, instruments: [], variant: '', filtered: false };
const whole = { batches: [{ table: bhavcopy, rows: [bhavRow({ symbol: 'A' })] }], rejects: [] };

test('an answer about whole days is their full set', () => {
  expect(fullSetsOf(operation, window, whole, [])).toEqual([
    { table: bhavcopy, exchange: 'NSE', days: { from: DAY, to: DAY }, mayBeEmpty: false },
  ]);
  const circuits = operationNamed('GetCircuitBreakers');
  expect(fullSetsOf(circuits, window, { batches: [], rejects: [] }, [])).toMatchObject([
    { table: circuits.shapes[0].table, mayBeEmpty: true },
  ]);
});

test.each([
  ['some instruments were asked for', { ...window, instruments: ['A'] }, whole],
  ['a part of the day was asked for', { ...window, filtered: true }, whole],
  ['a record was rejected', window, { ...whole, rejects: [{ position: 0, record: {}, problems: [] }] }],
])('nothing is when %s', (_, asked, extracted) => {
  expect(fullSetsOf(operation, asked, extracted, [])).toEqual([]);
});

test('nothing is while it is too early for a day', () => {
  const early = { day: DAY, instrument: '', variant: '', state: 'not_published' as const, records: 0 };
  expect(fullSetsOf(operation, window, whole, [early])).toEqual([]);
});

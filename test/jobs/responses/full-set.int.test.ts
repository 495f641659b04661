import { expect, test } from 'vitest';
import { findFullSets } from '../../../src/jobs/responses/response-days.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { bhavcopy, bhavRow } from '../../load/support.ts';

const DAY = '2025-08-29';
const operation = operationNamed('GetBhavCopyCM');
const window = { exchange: 'NSE', from: DAY, to: DAY, instruments: [], variant: '', filtered: false };
const whole = { batches: [{ table: bhavcopy, rows: [bhavRow({ symbol: 'A' })] }], rejects: [] };

test('a response about whole days is their full set', () => {
  expect(findFullSets(operation, window, whole, [], DAY)).toEqual([
    { table: bhavcopy, exchange: 'NSE', days: { from: DAY, to: DAY }, mayBeEmpty: false },
  ]);
  const circuits = operationNamed('GetCircuitBreakers');
  expect(findFullSets(circuits, window, { batches: [], rejects: [] }, [], DAY)).toMatchObject([
    { table: circuits.shapes[0].table, mayBeEmpty: true },
  ]);
});

test.each([
  ['some instruments were requested', { ...window, instruments: ['A'] }, whole],
  ['a part of the day was requested', { ...window, filtered: true }, whole],
  ['a record was rejected', window, { ...whole, rejects: [{ position: 0, record: {}, problems: [] }] }],
])('nothing is when %s', (_, entry, extracted) => {
  expect(findFullSets(operation, entry, extracted, [], DAY)).toEqual([]);
});

test('nothing is on the evening of a day without records', () => {
  const early = { day: DAY, instrument: '', variant: '', state: 'not_published' as const, records: 0 };
  expect(findFullSets(operation, window, whole, [early], DAY)).toEqual([]);
  // On a later day what may come late is one thing, and what is listed another.
  expect(findFullSets(operation, window, whole, [early], '2025-08-30')).toHaveLength(1);
});

import { beforeAll, expect, test } from 'vitest';
import { readResponse } from '../../src/extract/index.ts';
import type { Database } from '../../src/load/database/database.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { EncodedRows } from '../../src/operations/rows.ts';
import { load, openStore } from './support.ts';

const operation = operationNamed('GetBhavCopyCM');

let store: Database;
beforeAll(async () => {
  store = await openStore();
});

const record = (n: number, changes: object = {}) => ({
  ...(operation.sample.response as { Value: object[] }).Value?.[0],
  Src: 'NSE',
  Symbol: `S${n}`,
  SctySrs: 'EQ ',
  TradDt: '02-27-2025',
  FinInstrmNm: n % 50 === 0 ? `₹ "A" \\ ${n}\t` : `COMPANY ${n}`,
  ClosePrice: n / 100,
  ...changes,
});

/** Reads records of a day the given way. */
function read(records: readonly object[], scanFrom: number, day = '2025-02-27') {
  const body = Buffer.from(JSON.stringify({ Value: records, Count: records.length }));
  const requested = { exchange: 'NSE', from: day, to: day, instruments: [], params: {}, calledOn: day };
  const raw = { body, contentType: null, bytes: body.length };
  const extracted = readResponse(
    operation,
    requested,
    raw,
    { accessKey: '', timeZone: 'Asia/Kolkata' },
    scanFrom,
  );
  expect(extracted.rejects).toEqual([]);
  expect(extracted.batches[0]?.rows instanceof EncodedRows).toBe(scanFrom === 0);
  return { batches: extracted.batches, exchange: 'NSE' };
}

test('rows that are text are stored as rows that are objects', async () => {
  const records = Array.from({ length: 300 }, (_, n) => record(n));
  expect(await load(store, read(records, 0))).toMatchObject({ inserted: 300, duplicate: 0 });
  expect(await load(store, read(records, Number.POSITIVE_INFINITY))).toMatchObject({ unchanged: 300 });
  const corrected = records.map((one, n) => (n === 7 ? { ...one, ClosePrice: 1.5 } : one));
  expect(await load(store, read(corrected, 0))).toMatchObject({ updated: 1, unchanged: 299 });
});

test('two of them with one key are seen, on a day that had no row before', async () => {
  const records = Array.from({ length: 300 }, (_, n) => record(n === 299 ? 7 : n, { TradDt: '02-28-2025' }));
  expect(await load(store, read(records, 0, '2025-02-28'))).toMatchObject({ inserted: 299, duplicate: 1 });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import { chooseReader } from '../../src/declaration/readers.ts';
import { type Extracted, readResponse } from '../../src/extract/index.ts';
import { sanitizeRecord } from '../../src/extract/sanitize.ts';
import { operationNamed, operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { raw, requestedOf, SETTINGS } from './support.ts';

/** A NUL or half a surrogate pair inside JSON, where a backslash before the escape is a text about one. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;
/** By name, so that a failing case prints small. */
const operation = fc.constantFrom(...operations.map(({ name }) => name));

/** Reads anything; whatever comes must be rows and rejects that add up, or a typed error. */
function read(name: string, body: Buffer | string): Extracted | null {
  const operation = operationNamed(name);
  try {
    const extracted = readResponse(operation, requestedOf(operation), raw(body), SETTINGS);
    check(extracted);
    return extracted;
  } catch (error) {
    if (error instanceof PipelineError) return null;
    throw error;
  }
}

function check({ batches, rejects, fetched, warnings, unknownFields }: Extracted): void {
  const count = batches.reduce((sum, { rows }) => sum + rows.length, 0);
  expect(count + rejects.length).toBe(fetched);
  for (const { table, rows } of batches) {
    for (const row of rows) {
      expect(Object.keys(row)).toEqual(table.fields.map((field) => field.column));
      for (const field of table.fields) {
        const value = row[field.column] ?? null;
        if (table.key.includes(field.column)) expect(value).not.toBeNull();
        // A stored value reads as itself: nothing half-read gets through.
        if (value !== null && value !== '')
          expect(chooseReader(field.kind, 'Asia/Kolkata')(value)).toEqual(value);
      }
    }
  }
  for (const { problems, record } of rejects) {
    expect(problems.length).toBeGreaterThan(0);
    expect(Buffer.byteLength(JSON.stringify(record) ?? '')).toBeLessThanOrEqual(65_536);
  }
  expect(JSON.stringify([rejects, warnings, unknownFields])).not.toMatch(UNSTORABLE);
}

const nasty = fc.oneof(
  fc.jsonValue({ depthSize: 'large' }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom<unknown>(
    1e308,
    -1e308,
    5e-324,
    2 ** 53,
    '02-30-2025',
    '01-01-0001',
    '9'.repeat(2_000),
    'x'.repeat(200_000),
    'a\u0000b',
    '\ud800',
    "'; DROP TABLE market.bhavcopy_cm; --",
    '\\N',
    { toString: 1 },
    Array(300).fill('y'.repeat(300)),
    JSON.parse('{"__proto__":{"x":1}}'),
  ),
);

function sampleRecords(name: string): Record<string, unknown>[] {
  const response = operationNamed(name).sample.response as { Value?: Record<string, unknown>[] };
  return response.Value ?? [response as Record<string, unknown>];
}

describe('nothing the source sends can crash the reading', () => {
  test('any JSON value', () =>
    forAll([operation, fc.jsonValue({ depthSize: 'large' })], (operation, value) => {
      read(operation, JSON.stringify(value));
      read(operation, JSON.stringify({ Value: [value], count: value }));
    }));

  test('any text, any bytes', () =>
    forAll([operation, fc.string({ unit: 'binary' }), fc.uint8Array()], (operation, text, bytes) => {
      read(operation, text);
      read(operation, Buffer.from(bytes));
    }));

  test('a valid response with any one value replaced: the other records load', () =>
    forAll([operation, fc.nat(), nasty], { numRuns: 150 }, (operation, pick, value) => {
      const [good = {}] = sampleRecords(operation);
      const keys = Object.keys(good);
      const bad = { ...good, [keys[pick % keys.length] as string]: value };
      const extracted = read(operation, JSON.stringify([good, bad, good]));
      expect(extracted?.fetched).toBe(3);
      const loaded = extracted?.batches.reduce((sum, { rows }) => sum + rows.length, 0);
      expect(loaded).toBeGreaterThanOrEqual(2);
    }));

  test('a valid response with any keys removed or added', () =>
    forAll([operation, fc.array(fc.nat(40)), fc.dictionary(fc.string(), nasty)], (operation, drop, add) => {
      const [good = {}] = sampleRecords(operation);
      const kept = Object.entries(good).filter((_, index) => !drop.includes(index));
      expect(read(operation, JSON.stringify([{ ...Object.fromEntries(kept), ...add }]))?.fetched).toBe(1);
    }));

  test('a valid response cut anywhere, or with a byte changed', () =>
    forAll([operation, fc.nat(), fc.nat(255)], { numRuns: 150 }, (operation, at, byte) => {
      const body = Buffer.from(JSON.stringify(operationNamed(operation).sample.response));
      const cut = body.subarray(0, at % body.length);
      expect(read(operation, cut)).toBeNull();
      const changed = Buffer.from(body);
      changed[at % body.length] = byte;
      read(operation, changed);
    }));
});

describe('copies of rejected records', () => {
  test('hold nothing that jsonb cannot store, and stay small', () =>
    forAll([fc.oneof(nasty, fc.dictionary(fc.string({ unit: 'binary' }), nasty))], (record) => {
      const json = JSON.stringify(sanitizeRecord(record));
      expect(Buffer.byteLength(json)).toBeLessThanOrEqual(65_536);
      expect(json).not.toMatch(UNSTORABLE);
    }));

  test('name what they leave out', () => {
    expect(sanitizeRecord({ 'a\u0000': '\ud800', b: 'z'.repeat(3_000) })).toEqual({
      'a\\u0000': '\\ud800',
      b: `${'z'.repeat(2_000)}… (3000 characters)`,
    });
    expect(sanitizeRecord(Array(300).fill(1))).toEqual([...Array(200).fill(1), '… 100 more']);
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`k${index}`, index]));
    expect(sanitizeRecord(many)).toMatchObject({ k199: 199, '…': '100 more' });
    let deep: unknown = 'bottom';
    for (let level = 0; level < 100_000; level++) deep = { deep };
    expect(JSON.stringify(sanitizeRecord(deep))).toContain('nested deeper than 20 levels');
    const wide = Array(200).fill(Array(200).fill('w'.repeat(1_000)));
    expect(Buffer.byteLength(JSON.stringify(sanitizeRecord(wide)))).toBeLessThanOrEqual(65_536);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeValue } from '../../../src/declaration/rows.ts';
import type { Row, Scalar, TableDefinition } from '../../../src/declaration/table.ts';
import { encodeRows } from '../../../src/load/merge/copy-text.ts';
import { tables } from '../../../src/operations/registry.ts';
import { forAll } from '../../support/for-all.ts';
import { bhavcopy, bhavRow } from '../support.ts';

test('each kind of value', () => {
  expect(encodeValue(null)).toBe('\\N');
  expect(encodeValue('')).toBe('');
  expect(encodeValue('\\N')).toBe('\\\\N');
  expect(encodeValue('a\tb\nc\rd\\e')).toBe('a\\tb\\nc\\rd\\\\e');
  expect(encodeValue(true)).toBe('t');
  expect(encodeValue(false)).toBe('f');
  expect(encodeValue(1.5)).toBe('1.5');
  expect(encodeValue('9697194403.80')).toBe('9697194403.80');
});

test('no value can end its field or its line, whatever it holds', () =>
  forAll([fc.string({ unit: 'binary' })], (text) => {
    expect(encodeValue(text)).not.toMatch(/[\t\n\r]/);
  }));

type Line = Parameters<typeof encodeRows>[2];

const written = (table: TableDefinition, rows: readonly Row[], line: Line) =>
  Buffer.concat([...encodeRows(table, rows, line)]).toString();

/** The same, value by value. */
function simply({ fields }: TableDefinition, rows: readonly Row[], { positions, audit = '' }: Line): string {
  const lines = rows.map((row, index) => {
    const values = fields.map(({ column }) => encodeValue(row[column] ?? null));
    return `${positions === true ? `${index}\t` : ''}${values.join('\t')}${audit}\n`;
  });
  // As bytes and back: halves of surrogate pairs become what UTF-8 has for them.
  return Buffer.from(lines.join('')).toString();
}

test('many rows come in pieces that together hold every row once, in order', () => {
  const rows = Array.from({ length: 2_000 }, (_, n) => bhavRow({ symbol: `S${n}` }));
  for (const line of [{ positions: true }, { audit: '\tnow\t1' }]) {
    const pieces = [...encodeRows(bhavcopy, rows, line)];
    expect(pieces.length).toBeGreaterThan(1);
    expect(Buffer.concat(pieces).toString()).toBe(simply(bhavcopy, rows, line));
  }
  expect([...encodeRows(bhavcopy, [], { positions: true })]).toEqual([]);
});

describe('written as bytes, rows are the same as value by value', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 80 }),
    fc.string({
      unit: fc.constantFrom('a', ' ', '\\', '\t', '\n', '\r', '\u007f', '\u0080', 'é', '₹', '🪔'),
      maxLength: 70,
    }),
    fc.string({ unit: fc.constantFrom('a', 'Z', '~', ' '), minLength: 60, maxLength: 70 }),
  );
  const number = fc.oneof(
    fc.double(),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.maxSafeInteger().map((cents) => cents / 100),
    fc.integer().map((cents) => cents / 100),
    fc.integer().map((part) => part / 1_000),
    fc.integer({ min: -100, max: 100 }).map((part) => 1e13 + part / 100),
    fc.constantFrom(0, -0, 0.1 + 0.2, 1e-7, 1e21, 0.005, 1.005, 999_999_999, 1e9, 1e9 + 1, 1e18, Number.NaN),
  );
  const value: fc.Arbitrary<Scalar | undefined> = fc.oneof(
    text,
    number,
    fc.boolean(),
    fc.constantFrom(null, undefined),
  );
  const line = fc.record({ positions: fc.boolean(), audit: fc.constantFrom('', '\t2025-08-29\t1', '\t₹') });

  test.each(tables)('of $name', (table) => {
    const row = fc.record(Object.fromEntries(table.fields.map(({ column }) => [column, value])));
    forAll([fc.array(row, { maxLength: 5 }), line], { numRuns: 60 }, (rows, options) => {
      expect(written(table, rows as Row[], options)).toBe(simply(table, rows as Row[], options));
    });
  });

  test('of numbers, many of them', () => {
    const [table] = tables;
    const column = table?.fields[0]?.column;
    if (table === undefined || column === undefined) throw new Error('there is no table');
    forAll([fc.array(number, { minLength: 100, maxLength: 100 })], (numbers) => {
      const rows = numbers.map((number) => ({ [column]: number }));
      expect(written(table, rows, {})).toBe(simply(table, rows, {}));
    });
  });

  test('wherever a line of short values reaches the end of the buffer', () => {
    const short = bhavcopy.fields.map(({ column }, at) => [column, at % 2 === 0 ? 'x'.repeat(60) : null]);
    // Behind a very long line there is as much room as at the start.
    const long = { symbol: '₹'.repeat(200_000) };
    for (let size = 42_500; size < 43_800; size += 20) {
      const rows = [long, { ...Object.fromEntries(short), exchange: '₹'.repeat(size) }, { symbol: 'a' }];
      expect(written(bhavcopy, rows, {})).toBe(simply(bhavcopy, rows, {}));
    }
  });

  test('of very long lines, and those after them', () => {
    const rows = [
      bhavRow({ symbol: 'a'.repeat(900_000), series: '\\'.repeat(100_000) }),
      bhavRow({ symbol: '₹'.repeat(300_000) }),
      ...Array.from({ length: 500 }, () => bhavRow({ symbol: 'b' })),
    ];
    expect(written(bhavcopy, rows, { positions: true })).toBe(simply(bhavcopy, rows, { positions: true }));
  });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { safeParse } from 'zod/v4/core';
import type { Field, Kind } from '../../src/declaration/fields.ts';
import { readersOf } from '../../src/declaration/readers.ts';
import type { TableDefinition } from '../../src/declaration/table.ts';
import { InvalidValue } from '../../src/declaration/value-readers.ts';
import { openResponse } from '../../src/extract/envelope.ts';
import { createRecordReader, schemaOf } from '../../src/extract/records.ts';
import { markUnsafeNumbers } from '../../src/extract/unsafe-numbers.ts';
import { operations, tables } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { requestedOf } from './support.ts';

const ZONE = 'Asia/Kolkata';
const quoted = (text: string) => JSON.stringify(text);

/** Values as JSON has them: what is right for a kind, … */
const GOOD: Readonly<Record<Kind, readonly string[]>> = {
  text: [
    '"EQ"',
    '"EQ "',
    '"M&M"',
    '"\\u20b9 रिलायंस"',
    '0',
    '-0',
    '532215',
    '1.5',
    '""',
    'null',
    '"a\\\\b\\t"',
  ],
  int2: ['1', '"2"', '-0', '32767', '" 7 "', 'null'],
  int4: ['1', '"2.00"', '-0', '2147483647', '-2147483648', '0', 'null'],
  int8: ['1', '9007199254740991', '"9223372036854775807"', '"1.2E+3"', '-0', '""', 'null'],
  numeric: ['1.5', '-0', '-17.71', '"9697194403.80"', '"+1.50"', '1e3', '0.1', '"1e-7"', '""', 'null'],
  boolean: ['true', 'false', '"True"', '1', '0', '-0', '"false "', 'null'],
  date: ['"08-29-2025"', '"2025-08-29"', '"29-AUG-2025"', '1756405800', '"01-01-0001"', '""', 'null'],
  datetime: ['"08-29-2025 21:02:11"', '"2025-08-29T21:02:11.5Z"', '1756405800', '"1756405800"', 'null'],
};

/** … and what is odd for most of them. */
const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
  fc.string({ unit: 'binary', maxLength: 80 }).map(quoted),
  fc.constantFrom(
    // More digits than a double holds.
    '12345678901234567890.5',
    '-9007199254740993',
    '1e400',
    '0.1234567890123456789',
    '9007199254740992',
    '32768',
    '2147483648',
    '1.0000001',
    '-0.0',
    '"-0"',
    '"a\\u0000b"',
    '"\\ud800"',
    '" \\u00a0 "',
    '"02-30-2025"',
    '20250829',
    '"1.5.1"',
    '"yes"',
    '[]',
    '{"a":[1]}',
    'true',
    quoted('x'.repeat(201)),
    quoted('x'.repeat(100_001)),
    quoted('9'.repeat(1_001)),
  ),
);

/** Values as they are when a response has been parsed. */
const parsed = (texts: readonly string[]) => {
  const json = `[${texts.join(',')}]`;
  return JSON.parse(String(markUnsafeNumbers(Buffer.from(json)) ?? json)) as unknown[];
};

/** A schema with one transform for each field, as zod is used ordinarily. */
function schemaByField({ fields }: TableDefinition, readers: ReturnType<typeof readersOf>) {
  const transformOf = ({ column, meaningless }: Field) =>
    z.unknown().transform((sent, context) => {
      const value = readers.get(column)?.(sent);
      if (!(value instanceof InvalidValue)) return value;
      if (meaningless === true) return null;
      context.addIssue({ code: 'custom', message: value.problem });
      return z.NEVER;
    });
  return z.object(Object.fromEntries(fields.map((field) => [field.column, transformOf(field)])));
}

/** All that comes of a record, in a form that shows -0 and the order of columns. */
const factsOf = (result: z.core.util.SafeParseResult<unknown>) =>
  result.success
    ? Object.entries(result.data as object)
    : result.error.issues.map(({ path, message }) => ({ path, message }));

test.each(tables.map((table) => [table.name, table] as const))(
  'a schema of single fields makes the same of every record of %s',
  (_, table) => {
    const ofField = (oddity: number) => (field: Field) =>
      fc.oneof(
        { weight: 60, arbitrary: fc.constantFrom(...GOOD[field.kind]) },
        { weight: oddity, arbitrary: odd },
      );
    const records = fc
      .constantFrom(0, 1, 20)
      .chain((oddity) => fc.array(fc.tuple(...table.fields.map(ofField(oddity))), { maxLength: 8 }));
    const schema = schemaOf(table, ZONE);
    const byField = schemaByField(table, readersOf(table, ZONE));
    const counts = { rows: 0, rejects: 0 };
    forAll([records], { numRuns: 60 }, (texts) => {
      for (const values of texts.map(parsed)) {
        const record = Object.fromEntries(table.fields.map(({ column }, at) => [column, values[at]]));
        const result = safeParse(schema, values);
        expect(factsOf(result)).toStrictEqual(factsOf(byField.safeParse(record)));
        counts[result.success ? 'rows' : 'rejects'] += 1;
      }
    });
    expect(counts.rejects).toBeGreaterThan(10);
    expect(counts.rows).toBeGreaterThan(table.fields.some(({ required }) => required) ? 0 : 10);
  },
);

test.each(operations.map((operation) => [operation.name, operation] as const))(
  'a record of %s is read as if it were the only one, whatever was read before',
  (_, operation) => {
    const response = Buffer.from(JSON.stringify(operation.sample.response));
    const samples = openResponse(response, { operation, redact: (text) => text }).records as object[];
    const record = fc
      .constantFrom(...samples)
      .chain((sample) => fc.shuffledSubarray(Object.entries(sample)))
      .chain((entries) => fc.tuple(...entries.map(([key, good]) => fc.tuple(fc.constant(key), mostly(good)))))
      .map((entries) => Object.fromEntries(entries));
    const mostly = (good: unknown) =>
      fc.oneof(
        { weight: 30, arbitrary: fc.constant(good) },
        { weight: 1, arbitrary: odd.map((text) => parsed([text])[0]) },
      );
    const newReader = () => createRecordReader(operation, requestedOf(operation), ZONE);
    /** What is read, without the columns that depend on the records before. */
    const read = (reader: ReturnType<typeof newReader>, record: unknown) => {
      const result = reader.read(record);
      if (result.table === null) return result;
      const { name, fields } = result.table;
      const isOwn = (field: Field) => field.from !== 'derived' && !('compute' in field);
      return [name, fields.filter(isOwn).map(({ column }) => [column, result.row[column]])];
    };
    forAll(
      [fc.array(fc.oneof({ weight: 9, arbitrary: record }, odd), { maxLength: 12 })],
      { numRuns: 30 },
      (records) => {
        const reader = newReader();
        for (const record of records) expect(read(reader, record)).toStrictEqual(read(newReader(), record));
      },
    );
  },
);

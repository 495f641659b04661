import fc from 'fast-check';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { type Kind, plainName, type Requested } from '../../src/declaration/fields.ts';
import type { Shape } from '../../src/declaration/operation.ts';
import { readersOf } from '../../src/declaration/readers.ts';
import { InvalidValue, isBlank } from '../../src/declaration/value-readers.ts';
import { readResponse } from '../../src/extract/index.ts';
import { markUnsafeNumbers } from '../../src/extract/unsafe-numbers.ts';
import { operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { raw, requestedOf, SETTINGS } from './support.ts';

const DAY = '2025-02-27';

/** Values as JSON and CSV have them: what is right for a kind, … */
const GOOD: Readonly<Record<Kind, readonly string[]>> = {
  text: ['"EQ"', '"EQ "', '"M&M"', '"\\u20b9 रिलायंस"', '0', '532215', '""', 'null', '"a\\\\b"'],
  int2: ['1', '"2"', '32767', '0', 'null'],
  int4: ['1', '"2.00"', '2147483647', '-2147483648', '7.0', 'null'],
  int8: ['1', '9007199254740991', '"9223372036854775807"', '12.00', '""', 'null'],
  numeric: ['1.5', '-17.71', '12.50', '0.05', '"9697194403.80"', '1e3', '1e-400', '""', 'null'],
  boolean: ['true', '"True"', '1', '0', 'null'],
  date: [`"02-27-2025"`, `"2025-02-27"`, '1740614400', '"01-01-0001"', '""', 'null'],
  datetime: ['"02-27-2025 21:02:11"', '"2025-02-27T21:02:11.5Z"', '1740671531', 'null'],
};

/** … and what is odd for most of them. */
const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    ...'12345678901234567890.5 -9007199254740993 1e400 0.1234567890123456789 32768 2147483648 -0.0'.split(
      ' ',
    ),
    ...['"a\\u0000b"', '"\\ud800"', '"02-30-2025"', '20250829', '"1.5.1"', '[]', '{"a":[1,"}"]}'],
    `"${'x'.repeat(201)}"`,
  ),
);

/** The zod schema of a shape's records, with one transform for each column. */
function schemaOfRecords({ table }: Shape, requested: Requested) {
  const readers = readersOf(table, SETTINGS.timeZone);
  const columns = table.fields.map((field) => {
    const transform = z.unknown().transform((sent, context) => {
      const value = readers.get(field.column)?.(sent) ?? null;
      if (!(value instanceof InvalidValue)) return value;
      if (field.meaningless === true) return null;
      context.addIssue({ code: 'custom', message: value.problem });
      return z.NEVER;
    });
    return [field.column, transform] as const;
  });
  const schema = z.object(Object.fromEntries(columns));
  return (record: Readonly<Record<string, unknown>>) =>
    schema.safeParse(
      Object.fromEntries(
        table.fields.map((field) => {
          if (field.from === 'request') return [field.column, field.value(requested)];
          const names = field.from === 'response' ? [field.source, ...(field.orElse ?? [])] : [];
          const sent = names.map((name) => record[name]);
          return [field.column, sent.find((value) => !isBlank(value)) ?? sent.at(-1)];
        }),
      ),
    );
}

/** Shapes whose records are rows or rejects by their values alone. */
const plain = operations.flatMap((operation) =>
  operation.shapes
    .filter(
      ({ contradiction, table }) =>
        contradiction === undefined && table.fields.every(({ from }) => from !== 'derived'),
    )
    .map((shape) => [`${operation.name} ${shape.table.name}`, operation, shape] as const),
);

test('there are such shapes of most operations', () => {
  expect(new Set(plain.map(([, { name }]) => name)).size).toBeGreaterThan(operations.length / 3);
});

test.each(plain)('a response is read as the zod schema reads its records: %s', (_, operation, shape) => {
  const requested = requestedOf(operation, { from: DAY, to: DAY, exchange: 'BSE', instruments: ['TCS'] });
  const { table, exchangeColumn } = shape;
  const fields = table.fields.flatMap((field) =>
    field.from === 'response'
      ? [field.source, ...(field.orElse ?? [])].map((source) => ({ ...field, source }))
      : [],
  );
  const unique = [...new Map(fields.map((field) => [plainName(field.source), field])).values()];
  const tokensOf = (oddity: number) =>
    fc.tuple(
      ...unique.map(({ source, column, kind }) => {
        if (column === table.dateColumn) return fc.constant(`"${DAY}"`);
        if (column === exchangeColumn) return fc.constantFrom('"BSE"', '"BSE "', 'null');
        // Whether a record names its instrument, and so which shape it has, is no matter of the schema.
        if (shape.namedBy?.includes(source) === true) return fc.constant('"TCS"');
        return fc.oneof(
          { weight: 60, arbitrary: fc.constantFrom(...GOOD[kind]) },
          { weight: oddity, arbitrary: odd },
        );
      }),
    );
  const read = schemaOfRecords(shape, requested);
  forAll(
    [fc.constantFrom(0, 1, 10).chain((oddity) => fc.array(tokensOf(oddity), { minLength: 1, maxLength: 8 }))],
    { numRuns: 30 },
    (records) => {
      const json = `{"Value":[${records
        .map((tokens) => `{${tokens.map((token, at) => `"${unique[at]?.source}":${token}`).join()}}`)
        .join()}]}`;
      const marked = markUnsafeNumbers(Buffer.from(json));
      const parsed = JSON.parse(marked?.toString() ?? json) as { Value: Record<string, unknown>[] };
      const expected = parsed.Value.map((record) => read(record));
      const { batches, rejects } = readResponse(operation, requested, raw(json), SETTINGS);
      expect(batches.flatMap(({ rows }) => [...rows])).toEqual(
        expected.flatMap((result) => (result.success ? [result.data] : [])),
      );
      expect(rejects.map(({ problems }) => problems.map(({ message }) => message))).toEqual(
        expected.flatMap((result) =>
          result.success ? [] : [result.error.issues.map(({ message }) => message)],
        ),
      );
    },
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { markUnsafeNumbers } from '../../src/extract/decimals.ts';
import { openAnswer } from '../../src/extract/envelope.ts';
import { generatedReader } from '../../src/extract/generated-reader.ts';
import { createLayouts } from '../../src/extract/layout.ts';
import { createRecordReader } from '../../src/extract/records.ts';
import type { AskedFor, Kind } from '../../src/operations/fields.ts';
import type { Operation, Shape } from '../../src/operations/operation.ts';
import { operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { askedOf } from './support.ts';

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

const inAnyCase = (name: string) =>
  fc.oneof(
    { weight: 200, arbitrary: fc.constantFrom(name, name.toLowerCase(), name.toUpperCase()) },
    { weight: 1, arbitrary: fc.constantFrom(` ${name}`, name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ')) },
  );

/** A key and what its values are like. */
type Column = readonly [key: string, values: fc.Arbitrary<string>];

/** Lists of keys as an operation's answers may have them: most fields, some twice, some that nobody declared. */
function columnsOf({ table, has, hasOneOf = [] }: Shape): fc.Arbitrary<Column[]> {
  const fields = table.fields.flatMap((field) =>
    field.from === 'answer'
      ? [field.source, ...(field.orElse ?? [])].map((name) => [name, field.kind] as const)
      : [],
  );
  const needed = [...has, ...hasOneOf];
  const names = [...new Map(fields)];
  const column = ([name, kind]: readonly [string, Kind]) =>
    inAnyCase(name).map((key): Column => {
      const good = fc.constantFrom(...GOOD[kind]);
      return [key, fc.oneof({ weight: 60, arbitrary: good }, { weight: 1, arbitrary: odd })];
    });
  const others = fc.constantFrom('Unknown', '__proto__', 'a"b', 'a b', "'];throw 1;//", '\u2028', '', '0');
  return fc
    .tuple(
      fc.shuffledSubarray(names.filter(([name]) => needed.includes(name))),
      fc.subarray(names, { minLength: Math.floor(names.length * 0.8) }),
      fc.array(
        others.map((key): Column => [key, odd]),
        { maxLength: 2 },
      ),
      fc.subarray(names, { maxLength: 1 }),
    )
    .chain(([first, most, unknown, again]) =>
      fc
        .tuple(...[...first, ...most, ...again].map(column))
        .map((columns): Column[] => [...columns, ...unknown]),
    );
}

/** Records that share their keys, as they are when the answer has been parsed. */
function recordsOf(columns: readonly Column[]): fc.Arbitrary<unknown[]> {
  const record = fc
    .tuple(...columns.map(([, values]) => values))
    .map((values) => `{${columns.map(([key], at) => `${quoted(key)}:${values[at]}`).join(',')}}`);
  return fc.array(record, { minLength: 1, maxLength: 12 }).map((texts) => {
    const json = `[${texts.join(',')}]`;
    return JSON.parse(String(markUnsafeNumbers(Buffer.from(json)) ?? json)) as unknown[];
  });
}

/** All that comes of records, in a form that shows -0 and the order of columns. */
function readAll(operation: Operation, asked: AskedFor, records: readonly unknown[], generateAfter: number) {
  const reader = createRecordReader(operation, asked, ZONE, generateAfter);
  const results = records.map((record) => {
    const result = reader.read(record);
    return result.table === null ? result : { table: result.table.name, row: Object.entries(result.row) };
  });
  return { results, unknown: [...reader.unknownFields()], warnings: reader.warnings() };
}

function isGenerated(operation: Operation, record: unknown): boolean {
  return generatedReader(createLayouts(operation)(record as object), ZONE) !== null;
}

test.each(operations.map((operation) => [operation.name, operation] as const))(
  'generated code reads every record as the schema does of %s',
  (_, operation) => {
    const asked = fc.constantFrom(
      askedOf(operation),
      askedOf(operation, { instruments: [] }),
      askedOf(operation, { exchange: '', instruments: ['', 'A'], params: { quarterEndDate: 'x' } }),
    );
    const lists = fc.array(
      fc
        .constantFrom(...operation.shapes)
        .chain(columnsOf)
        .chain(recordsOf),
      { minLength: 1, maxLength: 2 },
    );
    let [rows, generated] = [0, 0];
    forAll(
      [asked, lists, fc.constantFrom(0, 3)],
      { numRuns: 60 },
      (request, [one = [], other = []], after) => {
        // In turns, so that records of another layout come between.
        const records = [...one, ...other, 5, ...one, { x: 1 }, ...other];
        const slow = readAll(operation, request, records, Number.POSITIVE_INFINITY);
        expect(readAll(operation, request, records, after)).toStrictEqual(slow);
        if (isGenerated(operation, one[0]) && one.length > after) generated += 1;
        rows += slow.results.filter(({ table }) => table !== null).length;
      },
    );
    expect(rows).toBeGreaterThan(100);
    expect(generated).toBeGreaterThan(20);
  },
);

test.each(operations.map((operation) => [operation.name, operation] as const))(
  'the sample of %s is read by generated code, which is kept',
  (_, operation) => {
    const { records } = openAnswer(Buffer.from(JSON.stringify(operation.sample.answer)), {
      operation,
      redact: (text) => text,
    });
    const layout = () => createLayouts(operation)(records[0] as object);
    const read = generatedReader(layout(), ZONE);
    expect(generatedReader(layout(), ZONE)).toBe(read);
    const asked = askedOf(operation);
    const known = Object.fromEntries(
      layout().shape?.table.fields.map((field) => [
        field.column,
        field.from === 'request' ? field.value(asked) : null,
      ]) ?? [],
    );
    const row = read?.(records[0] as Record<string, unknown>, known);
    expect(Object.keys(row ?? {})).toEqual(layout().shape?.table.fields.map(({ column }) => column));
  },
);

test('a key that is no plain word does not get into code', () => {
  const operation = operations.find(({ name }) => name === 'GetBhavCopyCM') as Operation;
  const layout = createLayouts(operation)({ symbol: 'A', 'Trad\u00a0Dt': '08-29-2025' });
  expect(layout.shape).not.toBeNull();
  expect(generatedReader(layout, ZONE)).toBeNull();
});

import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readResponse } from '../../src/extract/index.ts';
import type { Kind, Requested } from '../../src/operations/fields.ts';
import type { Shape } from '../../src/operations/operation.ts';
import { operationNamed, operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { isSlowLayer } from '../support/layer.ts';
import { ALWAYS, isScanned, NEVER, raw, readFacts, requestedOf, SETTINGS } from './support.ts';

const quoted = (text: string) => JSON.stringify(text);

const GOOD: Readonly<Record<Kind, readonly string[]>> = {
  text: [
    '"EQ"',
    '"EQ "',
    '"  A B "',
    '" "',
    '"\\u0020"',
    '"M\\u0026M"',
    '"\\u20b9 रिलायंस"',
    '"a\\\\b\\t"',
    '0',
    '500325',
    '""',
    'null',
  ],
  int2: ['1', '"2"', '32767', '0', 'null'],
  int4: ['1', '"2.00"', '2147483647', '-2147483648', '123456789', '7.0', 'null'],
  int8: ['1', '9007199254740991', '999999999999999', '"9223372036854775807"', '12.00', '""', 'null'],
  numeric: ['1.5', '-17.71', '12.50', '3.00', '0.05', '0.000001', '"9697194403.80"', '1e3', '""', 'null'],
  boolean: ['true', 'false', '"True"', '1', '0', 'null'],
  date: ['"02-27-2025"', '"2025-02-27"', '1740614400', '"01-01-0001"', '""', 'null'],
  datetime: ['"02-27-2025 21:02:11"', '"2025-02-27T21:02:11.5Z"', '1740671531', 'null'],
};

/** Values that are wrong or odd for most kinds. */
const ODD = [
  ...'-0 -0.0 -0.00 0.0 0 -5 0.0000001 1.0000001 0.1234567890123456789 12345678901234567890.5'.split(' '),
  ...'9999 32767 32768 -32769 99999 999999999 2147483647 2147483648 -2147483649 9999999999'.split(' '),
  ...'9007199254740992 -9007199254740993 999999999999999 9999999999999999 10000000000000000000000'.split(' '),
  ...'1e400 1E5 20250829 123456789012.25 true false null [] [[{}],[]]'.split(' '),
  '{"a":[1,"}"]}',
  '""',
  '" "',
  '"\\u0020"',
  '"\\""',
  '"-0"',
  '"a\\u0000b"',
  '"\\ud800"',
  '" \\u00a0 "',
  '"\u00a0x"',
  '"02-30-2025"',
  '"02-26-2025"',
  '"1.5.1"',
  '"yes"',
  '"BSE"',
  '"NSE"',
  '"NSE "',
  '"\u007f"',
  quoted('x'.repeat(200)),
  quoted('x'.repeat(201)),
  quoted('9'.repeat(1_001)),
  '"\ufeff1"',
  '"\\t"',
];

/** No JSON: a response that holds such a thing cannot be read as a whole. */
const BROKEN = [
  '',
  '"\t"',
  '"\\x"',
  '"\\u26"',
  '"a',
  "'a'",
  '"\\',
  ']',
  ...'01 1. - .5 1.5.2 +1 nul nulll truE NaN'.split(' '),
];

const odd = fc.oneof(
  fc.constantFrom(...ODD),
  fc.constantFrom(...BROKEN),
  fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
  fc.integer().map((cents) => String(cents / 100)),
  fc.string({ unit: 'binary', maxLength: 80 }).map(quoted),
);

type Column = readonly [key: string, values: fc.Arbitrary<string>];

const DAY = '"02-27-2025"';

/** Keys of the records of one shape, with the values they have. */
function columnsOf(
  { table, has, hasOneOf = [], exchangeColumn }: Shape,
  oddity: number,
): fc.Arbitrary<Column[]> {
  const fields = table.fields.flatMap((field) =>
    field.from === 'response'
      ? [field.source, ...(field.orElse ?? [])].map((name) => [name, field] as const)
      : [],
  );
  const unique = [...new Map(fields)];
  const column = ([name, field]: (typeof unique)[number]): fc.Arbitrary<Column> => {
    const known = {
      [String(table.dateColumn)]: [DAY],
      [String(exchangeColumn)]: ['"BSE"', '"BSE "', 'null'],
    };
    const all = known[field.column] ?? GOOD[field.kind];
    const good = field.required === true ? all.filter((token) => !['null', '""'].includes(token)) : all;
    return fc
      .constantFrom(name, name.toLowerCase(), name.toUpperCase())
      .map((key) => [
        key,
        fc.oneof({ weight: 400, arbitrary: fc.constantFrom(...good) }, { weight: oddity, arbitrary: odd }),
      ]);
  };
  const needed = unique.filter(([name]) => [...has, ...hasOneOf].includes(name));
  const others = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('Unknown', 'value', 'Message', '0', '__proto__') },
    { weight: 1, arbitrary: fc.constantFrom('a"b', 'a b', '\u2028', '') },
  );
  return fc
    .tuple(
      fc.shuffledSubarray(needed, { minLength: needed.length }),
      fc.shuffledSubarray(unique, { minLength: Math.floor(unique.length * 0.8) }),
      fc.array(
        others.map(
          (key): Column => [
            key,
            fc.oneof(
              { weight: 12, arbitrary: fc.constantFrom('null', '1.50', '"x"', 'true') },
              { weight: 1, arbitrary: fc.constantFrom('"\\x"', '"\\u26"', '01') },
              { weight: 1, arbitrary: odd },
            ),
          ],
        ),
        { maxLength: 1 },
      ),
    )
    .chain(([first, most, unknown]) =>
      fc
        .tuple(...[...new Map([...first, ...most])].map(column))
        .map((columns): Column[] => [...columns, ...unknown]),
    );
}

/** How the parts of JSON are set apart. */
const space = fc.constantFrom('', '', ' ', '\n  ', '\t\r\n');

function recordsOf(columns: readonly Column[]): fc.Arbitrary<string[]> {
  return space.chain((gap) =>
    fc.array(
      fc
        .tuple(...columns.map(([, values]) => values))
        .map(
          (values) =>
            `{${gap}${columns.map(([key], at) => `${quoted(key)}:${gap}${values[at]}`).join(`,${gap}`)}${gap}}`,
        ),
      { minLength: 1, maxLength: 12 },
    ),
  );
}

/** Members of an envelope beside the records, and what may stand around a list. */
const envelope = fc.constantFrom<(list: string, records: number) => string>(
  (list) => list,
  (list, records) => `{"Value":${list},"Count":${records}}`,
  (list) => `{ "odata.metadata" : "x" , "value" : ${list} }`,
  (list, records) => `{"Count":${records + 1},"Value":${list}}`,
  (list, records) => `{"Value":${list},"Count":${records - 1}}`,
  (list) => `{"Value":${list},"Count":12345678901234567890.5}`,
  (list) => `{"Value":${list},"Value":[]}`,
  (list) => `{"Value":[],"value":${list}}`,
  (list) => `{"VALUE":${list},"value":[{"a":1}]}`,
  (list) => `{"Value":${list},"odata.nextLink":"http://more"}`,
  (list) => `{"Status":"Access denied. Key expired.","Value":${list}}`,
  (list) => `{"Value":${list},"Message":"x"}`,
  (list) => `{"Value":${list},}`,
  (list) => `{"Value":${list}`,
  (list) => `{"Value":${list}} x`,
  (list) => `\ufeff ${list}\n`,
  (list) => `{"Value":${quoted(list)}}`,
  (list) => `{"other":{},"Value":${list}}`,
);

test.each(operations.map((operation) => [operation.name, operation] as const))(
  'record by record a response is read as it is when it is parsed as a whole: %s',
  (name, operation) => {
    const requested = fc.constantFrom<Partial<Requested>>(
      { instruments: [], from: '2025-02-27', to: '2025-02-27', exchange: 'BSE' },
      { instruments: [], from: '2025-02-26', to: '2025-02-28', exchange: 'BSE' },
      { instruments: [], from: '2025-02-26', to: '2025-02-28', exchange: '' },
      {},
    );
    const lists = fc.constantFrom(0, 1, 20).chain((oddity) =>
      fc.array(
        fc
          .constantFrom(...operation.shapes)
          .chain((shape) => columnsOf(shape, oddity))
          .chain(recordsOf),
        { minLength: 1, maxLength: 2 },
      ),
    );
    const between = fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(',', ' ,\n ') },
      { weight: 1, arbitrary: fc.constantFrom(',5,', ',,', ',null,', ',{},', ',[],', ' ') },
    );
    let scanned = 0;
    forAll(
      [
        requested,
        lists,
        between,
        fc.oneof(
          { weight: 3, arbitrary: fc.constant((list: string) => list) },
          { weight: 2, arbitrary: envelope },
        ),
        fc.oneof(
          { weight: 9, arbitrary: fc.constant(0) },
          { weight: 1, arbitrary: fc.integer({ min: 1, max: 300 }) },
        ),
      ],
      { numRuns: 14 },
      (changes, [one = [], other = []], comma, wrap, cut) => {
        const records = [...one, ...other, ...one];
        const whole = Buffer.from(wrap(`[${records.join(comma)}]`, records.length));
        const body = whole.subarray(0, whole.length - cut);
        if (isScanned(operation, requestedOf(operation, changes), body)) scanned += 1;
      },
    );
    // Operations that request data per instrument, and those with values that are computed, are always parsed as a
    // whole.
    const isParsed =
      operation.windows.per === 'instrument' ||
      operation.shapes.every(({ table }) => table.fields.some(({ from }) => from === 'derived'));
    if (isParsed) expect(scanned, name).toBe(0);
    else expect(scanned, name).toBeGreaterThan(0);
  },
);

/** Whose fields are all tried: in `npm test` those of two, which have every kind between them. */
const ODD_OF = isSlowLayer
  ? operations
  : ['GetBhavCopyCM', 'GetTop5GainersLosers'].map((name) => operationNamed(name));

test.each(ODD_OF.map((operation) => [operation.name, operation] as const))(
  'an odd value of any field of %s, and one of a field that nobody declared',
  (_, operation) => {
    const requested = requestedOf(operation, { instruments: [] });
    for (const { table } of operation.shapes) {
      const fields = table.fields.flatMap((field) => (field.from === 'response' ? [field] : []));
      const isOfDay = (column: string) => column === table.dateColumn;
      const good = fields.map(({ source, column, kind }) => [
        source,
        isOfDay(column) ? quoted(requested.from) : (GOOD[kind][0] as string),
      ]);
      const record = (changed: string, token: string) =>
        `{${[...good, ['Other', '1']].map(([key, value]) => `"${key}":${key === changed ? token : value}`).join()}}`;
      for (const field of [...fields.map(({ source }) => source), 'Other']) {
        const records = ODD.map((token) => record(field, token));
        // Broken ones end the response, so each has one of its own.
        const bodies = [
          [record('', ''), ...records],
          ...BROKEN.map((token) => [record('', ''), record(field, token)]),
        ];
        for (const body of bodies.map((one) => `[${one.join()}]`)) {
          const slow = readFacts(operation, requested, body, NEVER);
          expect(readFacts(operation, requested, body, ALWAYS).result, field).toStrictEqual(slow.result);
        }
      }
    }
  },
);

test.each(['accept', 'ignore'] as const)('a count that does not fit, by the rule to %s it', (count) => {
  const operation = operationNamed('GetBhavCopyCM');
  const requested = requestedOf(operation, { instruments: [] });
  const { Value } = operation.sample.response as { Value: object[] };
  for (const stated of [5, '5', 0, 1, null, 'many']) {
    for (const body of [
      { Value, Count: stated },
      { Count: stated, Value, '@odata.count': 9 },
    ]) {
      const [whole, scanned] = [NEVER, ALWAYS].map((scanFrom) => {
        const read = readResponse(operation, requested, raw(body), { ...SETTINGS, count }, scanFrom);
        return { fetched: read.fetched, warnings: read.warnings, miscount: read.miscount };
      });
      expect(scanned).toEqual(whole);
      expect(whole?.fetched).toBe(1);
      if (count === 'ignore') expect(whole).toMatchObject({ warnings: [], miscount: undefined });
      else if (Number(stated) === 5)
        expect(whole?.miscount).toContain('says 5, the response holds 1 records');
    }
  }
});

test('only the first of many records is parsed, and those that are not plain', () => {
  const operation = operationNamed('GetBhavCopyCM');
  const [first] = (operation.sample.response as { Value: Record<string, unknown>[] }).Value;
  const records: Record<string, unknown>[] = Array.from({ length: 500 }, (_, n) => ({
    ...first,
    Symbol: `S${n}`,
    ClosePrice: n / 100,
  }));
  records[400] = { ...first, Symbol: 'A', Extra: [1] };
  const body = JSON.stringify({ Value: records, Count: 500 });
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  const extracted = readResponse(operation, requestedOf(operation, { instruments: [] }), raw(body), SETTINGS);
  expect(extracted).toMatchObject({
    fetched: 500,
    rejects: [],
    warnings: ['the source sends fields that no column reads: Extra'],
    unknownFields: ['Extra'],
  });
  expect([...(extracted.batches[0]?.rows ?? [])].map((row) => row.symbol)).toEqual(
    records.map((record) => record.Symbol),
  );
  // The two, and the envelope.
  expect(parse).toHaveBeenCalledTimes(3);
});

test('a record longer than a row may be is parsed only where there is room for the whole response', () => {
  const operation = operationNamed('GetBhavCopyCM');
  const { Value } = operation.sample.response as { Value: object[] };
  const records = [Value[0], { ...Value[0], Extra: '0'.repeat(1_000_000) }];
  const body = Buffer.from(JSON.stringify({ Value: records, Count: 2 }));
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  readResponse(operation, requestedOf(operation, { instruments: [] }), raw(body), SETTINGS, ALWAYS);
  const lengths = parse.mock.calls.map(([text]) => text.length);
  expect(lengths.filter((length) => length > 1_000_000)).toEqual([body.length]);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkHeapRoom } from '../../src/extract/heap-room.ts';
import type { Kind, Requested } from '../../src/operations/fields.ts';
import type { Shape } from '../../src/operations/operation.ts';
import { operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { isScanned, requestedOf } from './support.ts';

const GOOD: Readonly<Record<Kind, readonly string[]>> = {
  text: [
    'EQ',
    'EQ          ',
    '  A B ',
    '"A, B"',
    '"EQ  "',
    '',
    '""',
    'M&M',
    'रिलायंस',
    'a\\b',
    '0',
    '-',
    '500325',
  ],
  int2: ['1', '"2"', '32767', '0', ''],
  int4: ['1', '2.00', '2147483647', '-2147483648', ' 7 ', ''],
  int8: ['1', '9007199254740991', '999999999999999', '9223372036854775807', '12.00', ''],
  numeric: ['1.5', '-17.71', '12.50', '3.00', '0.05', '.5', '9697194403.80', '1e3', '"1.5"', ''],
  boolean: ['True', 'False', '1', ''],
  date: ['"02-27-2025"', '02-27-2025', '2025-02-27', '1740614400', '"01-01-0001"', ''],
  datetime: ['"02-27-2025 21:02:11"', '2025-02-27T21:02:11.5Z', '1740671531', ''],
};

/** Cells that are wrong or odd for most kinds, and ways to write them that are. */
const ODD = [
  ...'-0 -0.0 007 -007 +5 5. 0.0000001 12345678901234567890.5 9999 32768 9999999999 1e400 - -- true null'.split(
    ' ',
  ),
  ...'02-30-2025 "02-26-2025" BSE NSE "NSE" yes 7.5" "a""b" ""a"" "a"b a"b" "a" '.split(' '),
  '"a" ',
  ' "a"',
  '"a',
  'a"',
  '"',
  '"a\nb"',
  '"a\r\nb"',
  'a\rb',
  '\t1\t',
  '\u00a01',
  '\ufeff',
  '\0',
  '\f1',
  '"\t"',
  '"  "',
  'a, b',
  'a,b',
  ',',
  `${'x'.repeat(201)}`,
  `"${'x'.repeat(201)}"`,
  `${'9'.repeat(1_001)}`,
];

const odd = fc.oneof(
  fc.constantFrom(...ODD),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.string({ unit: 'binary', maxLength: 20 }),
);

/** The names of the columns of one shape, with the cells they have. */
function columnsOf({ table, has, hasOneOf = [], exchangeColumn }: Shape, oddity: number) {
  const fields = table.fields.flatMap((field) => (field.from === 'response' ? [field] : []));
  const needed = fields.filter(({ source }) => [...has, ...hasOneOf].includes(source));
  return fc
    .tuple(
      fc.shuffledSubarray(fields, { minLength: Math.floor(fields.length * 0.8) }),
      fc.subarray(['Unknown', '0', 'SavedAt', 'saved_at', 'a b', '__proto__'], { maxLength: 2 }),
    )
    .map(([most, others]) => [
      ...[...new Set([...needed, ...most])].map(({ source, column, kind, required }) => {
        const isDay = column === table.dateColumn;
        const cells = isDay
          ? ['"02-27-2025"']
          : column === exchangeColumn
            ? ['BSE', 'BSE  ', '']
            : GOOD[kind];
        const good = required === true ? cells.filter((cell) => !['', '""'].includes(cell)) : cells;
        return [
          source,
          fc.oneof({ weight: 400, arbitrary: fc.constantFrom(...good) }, { weight: oddity, arbitrary: odd }),
        ] as const;
      }),
      ...others.map((name) => [name, fc.constantFrom('', '1.50', '"x"')] as const),
    ]);
}

test.each(operations.map((operation) => [operation.name, operation] as const))(
  'row by row a response in CSV is read as it is when it is parsed as a whole: %s',
  (name, operation) => {
    const requested = fc.constantFrom<Partial<Requested>>(
      { instruments: [], from: '2025-02-27', to: '2025-02-27', exchange: 'BSE' },
      { instruments: [], from: '2025-02-26', to: '2025-02-28', exchange: 'BSE' },
      { instruments: [], from: '2025-02-26', to: '2025-02-28', exchange: '' },
      {},
    );
    const lines = fc
      .constantFrom(0, 1, 20)
      .chain((oddity) => fc.constantFrom(...operation.shapes).chain((shape) => columnsOf(shape, oddity)))
      .chain((columns) =>
        fc.tuple(
          fc.constant(columns.map(([column]) => column).join(',')),
          fc.array(fc.tuple(...columns.map(([, cells]) => cells)), { minLength: 1, maxLength: 12 }),
        ),
      );
    const rarely = <Value>(usual: Value, ...others: Value[]) =>
      fc.oneof(
        { weight: 12, arbitrary: fc.constant(usual) },
        { weight: 1, arbitrary: fc.constantFrom(...others) },
      );
    const style = fc.record({
      mark: rarely('', '\ufeff', ' ', '\n'),
      separator: fc.constantFrom('\n', '\r\n'),
      between: rarely('', '\n', '\r\n', '\r', ' \n', ' \r\n', 'x\n', 'x\r\n', ',\n', ',\r\n'),
      at: fc.nat(12),
      // Names that the rows have no cells for, as the source was seen to send, and cells that have no name.
      further: fc.constantFrom('', '', ',ReceivedAt,SavedAt', ',Further', ',"Quoted"'),
      superfluous: rarely('', ',', ',x', ', x'),
      cut: rarely(0, 1, 2, 30),
    });
    let scanned = 0;
    forAll(
      [requested, lines, style],
      { numRuns: 20 },
      (changes, [header, rows], { mark, separator, between, at, further, superfluous, cut }) => {
        const texts = rows.map((cells) => `${cells.join(',')}${superfluous}${separator}`);
        const all = [`${mark}${header}${further}${separator}`, ...texts];
        const text = all.map((line, position) => (position === at + 1 ? `${between}${line}` : line)).join('');
        const whole = Buffer.from(text);
        const body = whole.subarray(0, whole.length - cut);
        if (isScanned(operation, requestedOf(operation, changes), body)) scanned += 1;
      },
    );
    // As with JSON: these are always parsed as a whole.
    const isParsed =
      operation.windows.per === 'instrument' ||
      operation.shapes.every(
        ({ table, contradiction }) =>
          contradiction !== undefined || table.fields.some(({ from }) => from === 'derived'),
      );
    if (isParsed) expect(scanned, name).toBe(0);
    else expect(scanned, name).toBeGreaterThan(0);
  },
);

describe('a body that has to be parsed as a whole', () => {
  const MB = 1024 * 1024;
  const csv = `A,B,C,D\n${'1.25,2,3,text\n'.repeat(80_000)}`;
  const json = JSON.stringify(Array.from({ length: 40_000 }, () => ({ A: 1.25, B: 2, C: 3, D: 'text' })));
  const xml = `<List>${'<Record><A>1.25</A><B>2</B><C>3</C></Record>'.repeat(30_000)}</List>`;

  test.each([
    ['CSV', csv],
    ['JSON', json],
    ['XML', xml],
  ])(
    'in %s is refused if its values would take too much of the heap; the message names the setting',
    (_, text) => {
      const body = Buffer.from(text);
      expect(() => checkHeapRoom(body, 100 * MB)).not.toThrow();
      expect(() => checkHeapRoom(body, 16 * MB)).toThrow(
        /^the response is too large: 2 MB, which take some \d+ MB .* at most 10 MB .* process \(16 MB\); NODE_OPTIONS=--max-old-space-size=\d+ /,
      );
    },
  );

  test('is not looked at if it fits in any case, nor refused for long texts', () => {
    expect(() => checkHeapRoom(Buffer.alloc(100_000, ','), 16 * MB)).not.toThrow();
    expect(() => checkHeapRoom(Buffer.alloc(2_000_000, 'x'), 16 * MB)).not.toThrow();
  });
});

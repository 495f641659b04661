import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PipelineError } from '../../../src/core/errors.ts';
import type { DataSet } from '../../../src/declaration/operation.ts';
import { countValues } from '../../../src/declaration/rows.ts';
import type { Row, TableDefinition } from '../../../src/declaration/table.ts';
import { type FilePart, readCsvFile } from '../../../src/extract/files/read-file.ts';
import { encodeRows } from '../../../src/load/merge/copy-text.ts';
import { dataSets } from '../../../src/operations/registry.ts';
import { forAll } from '../../support/for-all.ts';

const ZONE = 'Asia/Kolkata';

const FIXTURES = [
  'bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv',
  'bhavcopy/BhavCopy_BSE_CM_0_0_0_20250909_F_0000.CSV',
  'files/sec_bhavdata_full_15112024.csv',
  'derivatives/BhavCopy_NSE_FO_0_0_0_20250312_F_0000.csv',
  'derivatives/BhavCopy_BSE_FO_0_0_0_20250312_F_0000.CSV',
].map((path) => readFileSync(new URL(`../../fixtures/${path}`, import.meta.url), 'utf8'));

const OLD_NSE = [
  'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN,',
  'ACC,EQ,340.25,344,338,341.50,341,339,120,40980.5,03-JAN-2005,12,INE012A01025,',
  '20MICRONS,EQ,0.0,0.05,.5,5.,1e2,-1.5,007,12345678901234567890.25,03-JAN-2005,-0,INE144J01027,',
].join('\n');

const TEMPLATES = [...FIXTURES, OLD_NSE].map((text) =>
  text
    .split(/\r?\n/)
    .filter(Boolean)
    .slice(0, 30)
    .map((line) => line.split(',')),
);

/** Everything that is stored or reported of a file, or what it fails with. */
function readParts(text: string, toBuffer: (text: string) => Buffer = Buffer.from) {
  let parts: readonly FilePart[];
  try {
    parts = readCsvFile('any.csv', toBuffer(text), ZONE);
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    // Some messages quote the file, and so the quote that `quoted` adds.
    return error.message.replace(/ begins ".*/s, ' begins');
  }
  return parts.map(({ content: _, rows, also, ...facts }) => {
    const { table } = (dataSets.find(({ name }) => name === facts.dataSet) as DataSet).shapes[0];
    return {
      ...facts,
      text: textOf(table, rows),
      also: also === null ? null : textOf(also.table, also.rows),
      counts: ['trade_date', 'source_saved_at', 'symbol'].map((column) => [...countValues(rows, column)]),
    };
  });
}

const textOf = (table: TableDefinition, rows: readonly Row[]) =>
  Buffer.concat([...encodeRows(table, rows, { positions: true, audit: '\tx' })]).toString();

/** The same file with a quote, so that the parser has to read it. */
const quoted = (text: string) => text.replace(/^(\s*)([^,\r\n]*)/, '$1"$2"');

const ODD = [
  '',
  ' ',
  '-',
  ' - ',
  '\t-',
  '0',
  '-0',
  '-0.0',
  '00',
  '007',
  '.5',
  '5.',
  '+5',
  '1e3',
  '1.50',
  '12.00',
  '-',
  '--1',
  '1.5.1',
  '5 5',
  ' 7.5 ',
  '7.5\t',
  'A\\B',
  '\\N',
  'L&T',
  "D'S",
  'ABC ',
  '#',
  'Österreich',
  '\u00a0',
  '\u00a0-',
  '₹',
  '9007199254740993',
  '9223372036854775808',
  '999999999999999',
  '1234567890.123456',
  '32768',
  '2147483648',
  '2025-08-28',
  '29-AUG-2025',
  '31-02-2025',
  '14-Nov-2024',
  'BSE',
  'NSE',
  'FO',
  'CM',
  'NULL',
  'null',
  '\u0000',
  '\u000b',
  'a\u007fb',
  'x'.repeat(250),
  '9'.repeat(40),
  '20MICRONS',
  '0x0',
  'Infinity',
];

type Change = (rows: string[][]) => void;
const pick = (size: number, part: number) => Math.min(size - 1, Math.floor(part * size));
const part = fc.double({ min: 0, max: 1, noNaN: true });

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(part, part, fc.constantFrom(...ODD)).map(
      ([row, cell, odd]): Change =>
        (rows) => {
          const cells = rows[pick(rows.length, row)] as string[];
          cells[pick(cells.length, cell)] = odd;
        },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(part, part, fc.constantFrom(...ODD)).map(
      ([, cell, odd]): Change =>
        (rows) => {
          for (const cells of rows.slice(1)) cells[pick(cells.length, cell)] = odd;
        },
    ),
  },
  {
    weight: 1,
    arbitrary: part.map(
      (row): Change =>
        (rows) => {
          rows[pick(rows.length, row)]?.pop();
        },
    ),
  },
  {
    weight: 1,
    arbitrary: part.map(
      (row): Change =>
        (rows) => {
          rows[pick(rows.length, row)]?.push('more');
        },
    ),
  },
  {
    weight: 1,
    arbitrary: part.map(
      (row): Change =>
        (rows) => {
          rows.splice(1 + pick(rows.length, row), 0, ['']);
        },
    ),
  },
);

const file = fc
  .record({
    template: fc.constantFrom(...TEMPLATES),
    rows: fc.integer({ min: 1, max: 30 }),
    changes: fc.array(change, { maxLength: 4 }),
    lineEnd: fc.constantFrom('\n', '\n', '\r\n', '\r'),
    end: fc.constantFrom('', '\n', '\r\n', '\n\n', ' ', '\u001a', '\r'),
    start: fc.constantFrom('', '', '', '\ufeff', '\n', ' '),
  })
  .map(({ template, rows, changes, lineEnd, end, start }) => {
    const cells = template.slice(0, rows + 1).map((row) => [...row]);
    for (const apply of changes) apply(cells);
    return start + cells.map((row) => row.join(',')).join(lineEnd) + end;
  });

describe('a file without quotes', () => {
  test('is read as the parser reads it with one, whatever it holds', () =>
    forAll([file], { numRuns: 200 }, (text) => {
      expect(readParts(text)).toEqual(readParts(quoted(text)));
    }));

  test('may be in another code page', () => {
    const [header, ...rows] = TEMPLATES[0] as string[][];
    const nameAt = header?.indexOf('FinInstrmNm') ?? -1;
    (rows[3] as string[])[nameAt] = 'CAF\u00c9 LIMITED';
    const text = [header, ...rows].map((row) => row?.join(',')).join('\n');
    const latin1 = (from: string) => Buffer.from(from, 'latin1');
    expect(readParts(text, latin1)).toEqual(readParts(quoted(text), latin1));
    expect(JSON.stringify(readParts(text, latin1))).toContain('CAF\u00c9 LIMITED');
  });
});

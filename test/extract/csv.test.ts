import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  endsItsLastLine,
  readAnyCsv,
  readCsv,
  readCsvInSlices,
  readPlainCsv,
} from '../../src/extract/csv.ts';
import { joinedRowsDoubt } from '../../src/extract/doubts.ts';
import type { Extracted } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { readAs } from './support.ts';

const NAME = 'GetTotalTradeHighlights';
const rows = (read: Extracted) => read.batches.flatMap((batch) => [...batch.rows]);

/** As the service writes it: a header with more names than the rows have fields. */
const CSV = [
  'TradeHighlights,ScripsNo,TradesNo,SharesVol,TurnoverRsCr,Date,ReceivedAt,SavedAt,ReceivedAt,SavedAt',
  'Total     ,4471,2802025,43.87,4179,"02-27-2025","02-27-2025 21:02:02","02-27-2025 21:02:02"',
  '',
].join('\r\n');

/** Numbers come as text from CSV, which the table stores as the same decimals. */
function sameAsJson(): object[] {
  const json = rows(readAs(NAME, operationNamed(NAME).sample.response as object));
  return json.map((row) => ({ ...row, shares_volume_crore: '43.87', turnover_crore: '4179' }));
}

test.each<[string, string | object]>([
  ['CSV', CSV],
  ['with line feeds only', CSV.replaceAll('\r', '')],
  ['with a byte order mark', `\ufeff${CSV}`],
  ['CsvContent: CSV in a JSON string', JSON.stringify(CSV)],
  ['CSV as the value of an envelope', { Value: CSV }],
  ['names in quotes', CSV.replace(/^[^\r]*/, (header) => header.replace(/\w+/g, '"$&"'))],
  ['spaces after the commas', CSV.replaceAll(',', ', ')],
  ['names in upper case', CSV.replace(/^[^\r]*/, (header) => header.toUpperCase())],
])('the same rows as from JSON: %s', (_, body) => {
  const read = readAs(NAME, body);
  expect(read).toMatchObject({ rejects: [], fetched: 1, unknownFields: [], warnings: [] });
  expect(rows(read)).toEqual(sameAsJson());
});

test('only a header is an empty response', () => {
  expect(readAs(NAME, CSV.split('\r\n')[0] as string)).toMatchObject({
    fetched: 0,
    rejects: [],
    batches: [],
  });
});

test('booleans, digits beyond a double, quotes inside names', () => {
  const csv = [
    'ScripCode,ScripName,IsLoser,Date,CurrentClosing',
    '500001,7.5" PIPES & "CO",True,"02-27-2025",12345678901234567890.12345',
    '500002,"A, ""B"" Ltd",False,"02-27-2025",',
    '',
  ].join('\n');
  const day = { from: '2025-02-27', to: '2025-02-27' };
  expect(rows(readAs('GetTop5GainersLosers', csv, day))).toMatchObject([
    { scrip_name: '7.5" PIPES & "CO"', is_loser: true, close_price: '12345678901234567890.12345' },
    { scrip_name: 'A, "B" Ltd', is_loser: false, close_price: null },
  ]);
});

test('short rows lack their last fields; bad ones are rejected one by one', () => {
  const csv =
    'Date,TradeHighlights,ScripsNo,SharesVol\n02-27-2025,Total,5,1.5\n02-27-2025,Short\n02-31-2025,Bad,x,y\n';
  const read = readAs(NAME, csv);
  expect(rows(read)).toMatchObject([
    { trade_highlight: 'Total', scrip_count: 5 },
    { trade_highlight: 'Short', scrip_count: null },
  ]);
  expect(read.rejects).toMatchObject([
    { position: 2, problems: [{ path: 'Date' }, { path: 'ScripsNo' }, { path: 'SharesVol' }] },
  ]);
});

describe('text with commas that is not in quotes', () => {
  const HEADER = 'Sector,Symbol,SectCode,AllotedFrom,ISIN';
  const read = (...lines: string[]) =>
    readAs('GetSectoralClassification', [HEADER, ...lines, ''].join('\r\n'));

  test('is put together where a space follows the comma', () => {
    const { rejects, batches } = read(
      'Media, Entertainment & Publication  ,PVR   ,IN01,"03-31-2022",INE191H01014',
      'Power,NTPC,IN03,"03-31-2022",INE733E01010',
      '"Iron, and ""Steel""",TATA,IN04,"03-31-2022",INE081A01020',
      'Oil, Gas, and Consumable Fuels,ONGC,IN05,"03-31-2022",INE213A01029',
      'Iron and Steel,TATA,IN06,"03-31-2022",INE081A01012,,',
    );
    expect(rejects).toEqual([]);
    expect([...(batches[0]?.rows ?? [])]).toMatchObject([
      { sector: 'Media, Entertainment & Publication', symbol: 'PVR', sector_code: 'IN01' },
      { sector: 'Power', symbol: 'NTPC' },
      { sector: 'Iron, and "Steel"', symbol: 'TATA', sector_code: 'IN04' },
      { sector: 'Oil, Gas, and Consumable Fuels', symbol: 'ONGC', sector_code: 'IN05' },
      { sector: 'Iron and Steel', sector_code: 'IN06', isin: 'INE081A01012' },
    ]);
  });

  test('makes no later row look cut off, whether or not the last line has an end', () => {
    const lines = [
      HEADER,
      'Oil, Gas & Consumable Fuels,ONGC,IN05,"03-31-2022",INE213A01029',
      'Power,NTPC,IN03,"03-31-2022",INE733E01010',
    ];
    for (const end of ['', '\n']) {
      const { rejects, fetched, batches } = readAs('GetSectoralClassification', lines.join('\n') + end);
      expect({ rejects, fetched }).toEqual({ rejects: [], fetched: 2 });
      expect([...(batches[0]?.rows ?? [])][0]).toMatchObject({ sector: 'Oil, Gas & Consumable Fuels' });
    }
    const cut = lines.join('\n').slice(0, -'"03-31-2022",INE733E01010'.length - 1);
    expect(() => readCsv(cut)).toThrowError(/breaks off inside its last row/);
  });

  test('is put together under a header that repeats names, too', () => {
    const header = 'TradeHighlights,ScripsNo,Date,ReceivedAt,SavedAt,ReceivedAt,SavedAt';
    const plain = { TradeHighlights: 'Total', ScripsNo: '2', Date: '3', ReceivedAt: '4', SavedAt: '5' };
    const comma = { ...plain, TradeHighlights: 'Groups A, B' };
    expect(readCsv(`${header}\nGroups A, B,2,3,4,5\nTotal,2,3,4,5`)).toEqual([comma, plain]);
    expect(readCsv(`${header}\nGroups A, B,2,3,4,5\n`)).toEqual([comma]);
    expect(readCsv(`${header}\nGroups A, B,2,3,4,5,4,5\nTotal,2,3,4,5,4,5\n`)).toEqual([comma, plain]);
    expect(() => readCsv(`${header}\nTotal,2,3,4,5,4,5\nTotal,2,3,4,5`)).toThrowError(/breaks off/);
  });

  test('is a reject with all its cells where it cannot be known, and shifts no value into another column', () => {
    const { rejects, batches } = read(
      'Iron,Steel,TATA,IN04,"03-31-2022",INE081A01020',
      'Power, Gas,NTPC, IN03,"03-31-2022",INE733E01010',
      'Power,NTPC,IN03,"03-31-2022",INE733E01010',
    );
    const message = expect.stringContaining('more cells than the header');
    expect(rejects).toMatchObject([
      {
        position: 0,
        record: ['Iron', 'Steel', 'TATA', 'IN04', '03-31-2022', 'INE081A01020'],
        problems: [{ message }],
      },
      { position: 1, problems: [{ message }] },
    ]);
    expect([...(batches[0]?.rows ?? [])]).toMatchObject([{ symbol: 'NTPC' }]);
  });
});

test.each([
  ['inside its last row', 'Date,TradeHighlights,ScripsNo\n02-27-2025,Total,5\n02-27-2025,To'],
  ['inside the end of its last line', 'Date,TradeHighlights,ScripsNo\r\n02-27-2025,Total,5\r'],
  ['inside a quoted text', 'Date,TradeHighlights,ScripsNo\n02-27-2025,"Tot'],
])('CSV that breaks off %s is no response', (_, csv) => {
  expect(() => readAs(NAME, csv)).toThrowError(expect.objectContaining({ kind: 'unreadable' }));
});

describe('lines in which ends of lines are missing', () => {
  const [header = '', row = ''] = CSV.split('\r\n');
  const names = header.split(',').slice(0, 8).join();
  const lines = Array.from({ length: 6 }, (_, at) => row.replaceAll('"', '').replace('Total', String(at)));

  test.each<[string, (csv: string) => Extracted]>([
    ['alone', (csv) => readAs(NAME, csv)],
    ['inside JSON', (csv) => readAs(NAME, { Value: csv })],
  ])('are rejects, and counted: %s', (_, read) => {
    forAll([fc.constantFrom(header, names), fc.subarray([0, 1, 2, 3])], (first, missing) => {
      const csv = lines.map((line, at) => line + (missing.includes(at) ? '' : '\r\n')).join('');
      const { doubts, rejects } = read(`${first}\r\n${csv}`);
      const expected = missing.filter((at) => !missing.includes(at - 1)).length;
      expect(rejects).toHaveLength(expected);
      expect(doubts).toEqual(expected === 0 ? [] : [joinedRowsDoubt(expected, 'its rows are missing')]);
    });
  });
});

test('rows without a header row are an error that says what to request', () => {
  const row = 'Total,4471,2802025,43.87,4179,"02-27-2025","02-27-2025 21:02:02","02-27-2025 21:02:02"';
  const message = expect.stringMatching(/CSV without a header row.*EOD_FORMAT=Csv: Total,4471/);
  for (const body of [row, `${row}\n${row}\n`, [row, row, row].join('\r\n')]) {
    expect(() => readAs(NAME, body)).toThrowError(
      expect.objectContaining({ kind: 'unknown_diagnostic', message }),
    );
  }
});

test('a text with commas is no CSV', () => {
  expect(() => readAs(NAME, 'Sorry, we are closed, try later')).toThrowError(
    expect.objectContaining({ kind: 'unknown_diagnostic' }),
  );
});

describe('CSV that needs no parser', () => {
  const cell = fc.string({
    unit: fc.constantFrom('a', '7', '.', '-', ' ', '\t', 'é', '\0'),
    maxLength: 5,
  });
  const odd = fc.constantFrom(
    '"',
    ',',
    '\r',
    'a\rb',
    '\n',
    'a\nb',
    '\r\n',
    '\f',
    '\u00a0a',
    '\ufeff',
    '__proto__',
    '',
  );
  const text = fc
    .record({
      rows: fc.array(
        fc.array(fc.oneof({ weight: 40, arbitrary: cell }, odd), { minLength: 1, maxLength: 4 }),
        { minLength: 1, maxLength: 6 },
      ),
      even: fc.boolean(),
      end: fc.constantFrom('\n', '\r\n'),
      last: fc.boolean(),
      mark: fc.boolean(),
    })
    .map(({ rows, even, end, last, mark }) => {
      const width = rows[0]?.length ?? 1;
      const lines = rows.map((cells) =>
        (even ? Array.from({ length: width }, (_, at) => cells[at] ?? 'x') : cells).join(','),
      );
      return `${mark ? '\ufeff' : ''}${lines.join(end)}${last ? end : ''}`;
    });

  test('is read as the parser reads it', () => {
    let plain = 0;
    forAll([text], { numRuns: 2_000, seed: 7 }, (text) => {
      const read = readPlainCsv(text);
      if (read === null) return;
      plain += 1;
      expect([...read]).toEqual([...readAnyCsv(text)]);
    });
    expect(plain).toBeGreaterThan(300);
  });

  const names = 'TradeHighlights,Date,ScripsNo';
  const operation = operationNamed(NAME);

  /** What a response is read as in slices of at least so many bytes; null if it has to be read as a whole. */
  function readInSlices(body: Buffer, sliceBytes?: number) {
    const records: unknown[] = [];
    const take = (position: number, record: unknown) => {
      expect(position).toBe(records.length);
      records.push(record);
    };
    const read = readCsvInSlices(operation, body, take, sliceBytes);
    return read && { ...read, records };
  }

  test('is read in slices as it is read as a whole, wherever slices end', () => {
    let inSlices = 0;
    const anyLine = fc.oneof(
      { weight: 40, arbitrary: fc.tuple(cell, cell, cell).map((cells) => cells.join()) },
      odd,
    );
    const line = fc.oneof({ weight: 9, arbitrary: fc.constant(names) }, anyLine);
    forAll(
      [
        line,
        fc.array(anyLine, { maxLength: 12 }),
        fc.constantFrom('\n', '\r\n'),
        fc.boolean(),
        fc.boolean(),
        fc.constantFrom(1, 20, 100, 10_000),
      ],
      (first, lines, end, isEnded, isMarked, sliceBytes) => {
        const csv = [first, ...lines].join(end) + (isEnded ? end : '');
        const body = Buffer.from(`${isMarked ? '\ufeff' : ''}${csv}`);
        const read = readInSlices(body, sliceBytes);
        if (read === null || read.records.length === 0) return;
        inSlices += 1;
        expect(read.records).toEqual([...readAnyCsv(csv)]);
        expect(read.endsItsLastLine).toBe(endsItsLastLine(csv));
      },
    );
    expect(inSlices).toBeGreaterThan(20);
  });

  test.each([
    ['of another operation', Buffer.from('a,b\n1,2\n')],
    ['XML', Buffer.from(`<a>,${names}\n1,2,3,4\n`)],
    ['JSON', Buffer.from(` [1,${names}\n1,2,3,4\n`)],
    ['with a quote far behind', Buffer.from(`${names}\n${'1,2,3\n'.repeat(100)}"1",2,3\n`)],
    ['in UTF-16', Buffer.from(`\ufeff${names}\n1,2,3\n`, 'utf16le')],
    ['whose header is not ended', Buffer.from(names)],
  ])('is not read in slices %s', (_, body) => {
    expect(readInSlices(body, 20)).toBeNull();
  });
});

describe('the work stays in proportion to the length of a hostile response', () => {
  const header = (columns: number) => Array.from({ length: columns }, (_, at) => `c${at}`).join(',');
  const unreadable = (problem: RegExp) =>
    expect.objectContaining({ kind: 'unreadable', message: expect.stringMatching(problem) });
  /** The parser builds one error object for each row whose length differs from the first. */
  const countErrors = () => {
    const spy = vi.spyOn(Error, 'captureStackTrace');
    onTestFinished(() => spy.mockRestore());
    return spy;
  };

  test('a wide header over short rows: no more cells are filled in than the text has characters', () => {
    const rows = (columns: number, count: number) => `${header(columns)}\n${'1\n'.repeat(count)}`;
    const wide = unreadable(/names far more columns than its rows fill/);
    // Few of them do no harm in a text of any length.
    expect(readCsv(rows(1_001, 10))).toHaveLength(10);
    expect(() => readCsv(rows(1_001, 11))).toThrowError(wide);
    expect(() => readCsv(rows(1_001, 1_000))).toThrowError(wide);
    expect(readCsv(rows(3, 20_000))).toHaveLength(20_000);
    expect(() => readCsv(rows(4, 20_000))).toThrowError(wide);
  });

  test('a row of more than a million bytes is not read to its end', () => {
    const long = unreadable(/broken CSV \(line [12] has \d+ bytes; at most 1000000 of a line are read/);
    expect(readCsv(`a,b\n${'x'.repeat(900_000)},"2"\n`)).toHaveLength(1);
    for (const row of [`a,b\n${'x'.repeat(1_100_000)},"2"\n`, '\0'.repeat(1_100_000)]) {
      expect(() => readCsv(row)).toThrowError(long);
    }
  });

  // A regular expression tries the end of the text again from each of its blanks: minutes for these.
  test.each<[string, string]>([
    ['line ends before the last row', `a,b\n1,2${'\n'.repeat(200_000)}3,4`],
    ['blanks inside a cell', `a,b\n c${' '.repeat(200_000)}d,e\n`],
  ])('many %s are passed over once', (_, text) => {
    expect(readCsv(text).length).toBeLessThanOrEqual(2);
  });

  test('rows of every length: reading ends at 10,000 that differ from the first', () => {
    const text = (uneven: number) => `a,b\n1,2\n${'1,2,3\n'.repeat(uneven)}`;
    expect(readCsv(text(10_000))).toHaveLength(10_001);
    const errors = countErrors();
    expect(() => readCsv(text(200_000))).toThrowError(unreadable(/rows of the CSV differ in length/));
    expect(errors.mock.calls.length).toBeLessThan(10_100);
  });

  test('rows that all lack the last columns of the header do not count as different in length', () => {
    const errors = countErrors();
    expect(readCsv(`a,b,c,b,c\n${'1,2,3\n'.repeat(20_000)}`)).toHaveLength(20_000);
    expect(errors).not.toHaveBeenCalled();
  });

  test('each name of a long header is looked at a few times, not once for every other name', () => {
    const text = `${header(5_000)},c0\n${'1,'.repeat(5_000)}2\n`;
    const trims = vi.spyOn(String.prototype, 'trim');
    onTestFinished(() => trims.mockRestore());
    const [record = {}] = readCsv(text);
    expect(trims.mock.calls.length).toBeLessThan(50_000);
    expect(Object.keys(record)).toHaveLength(5_000);
    expect(record).toMatchObject({ c0: '1', c4999: '1' });
  });
});

test('a header over several lines, behind empty ones; problems name the line of the text', () => {
  expect(readCsv('\ufeff\n\n"a\nb", c \r\n\r\n1,2\r\n')).toEqual([{ 'a\nb': '1', c: '2' }]);
  expect(() => readCsv('a,b\n1,2\n\n3,"4\n')).toThrowError(/line 4 has a quote that is never closed/);
  expect(readCsv('\n')).toEqual([]);
});

test('a text with commas is put together beside lines of blanks as well', () => {
  const csv = `a,b\n\nIron, Steel,1\n  \n"",\n2,3\n`;
  expect(readCsv(csv)).toEqual([
    { a: 'Iron, Steel', b: '1' },
    { a: '', b: '' },
    { a: '2', b: '3' },
  ]);
});

test('rows that end with carriage returns alone are lines', () => {
  expect(readCsv(`a,b\r${`${'1'.repeat(200)},2\r`.repeat(6_000)}`)).toHaveLength(6_000);
});

// The parser itself, whose calls are counted.
vi.mock('csv-parse/sync', { spy: true });

describe('a line that is longer than a row may be never becomes a string', () => {
  const long = Buffer.alloc(2_000_000, ',');
  const header = 'TradeHighlights,ScripsNo,TradesNo,SharesVol,TurnoverRsCr,Date';
  const start = Buffer.from(`${header}\n`);
  const good = Buffer.from('Total,4471,2802025,43.87,4179,02-27-2025\n');

  test.each([
    ['the first row', Buffer.concat([start, long, Buffer.from('\n')]), 2],
    ['a later row', Buffer.concat([start, good, long, Buffer.from('\n'), good]), 3],
    ['the last row, without an end', Buffer.concat([start, good, long]), 3],
    ['the header', Buffer.concat([Buffer.from(header), long, Buffer.from('\n'), good]), 1],
  ])('as %s of CSV', (_, body, line) => {
    const { mock } = vi.mocked(parse).mockClear();
    const split = vi.spyOn(String.prototype, 'split');
    expect(() => readAs(NAME, body)).toThrowError(
      expect.objectContaining({
        kind: 'unreadable',
        message: expect.stringMatching(
          `^the response cannot be read: broken CSV \\(line ${line} has 20000..? bytes; at most 1000000 of a line are read\\)$`,
        ),
      }),
    );
    const cells = split.mock.results.map(({ value }) => (value as string[]).length);
    split.mockRestore();
    expect(mock.calls.reduce((sum, [text]) => sum + text.length, 0)).toBeLessThan(50_000);
    expect(Math.max(0, ...cells)).toBeLessThan(100);
  });
});

import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { readCsv } from '../../src/extract/csv.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { ALWAYS, isScanned, readFacts, requestedOf } from './support.ts';

// The parser itself, whose calls are counted.
vi.mock('csv-parse/sync', { spy: true });

const operation = operationNamed('GetTotalTradeHighlights');
const requested = requestedOf(operation, { instruments: [], exchange: 'NSE' });
const header = 'TradeHighlights,ScripsNo,TradesNo,SharesVol,TurnoverRsCr,Date';
const row = (at: number) => `Group ${at},4471,2802025,43.87,4179,02-27-2025`;

describe('the work is in proportion to the bytes', () => {
  /** The bytes that the parser was given to read a body once; each start counts as 500. */
  function workOf(body: Buffer): number {
    const { mock } = vi.mocked(parse).mockClear();
    readFacts(operation, requested, body, ALWAYS);
    return mock.calls.reduce((sum, [given]) => sum + 500 + given.length, 0);
  }

  /** The first rows may be parsed alone, twice where they are too long, and then all at once: up to three times. */
  const most = (body: Buffer) => 2 * 105 * (500 + 100) + 8 * body.length;

  test('whatever the line ends and rows are, and the plain reader reads the same', () => {
    const lineEnd = fc.constantFrom('\n', '\r\n');
    const odd = fc.constantFrom(
      '',
      ' ',
      '\t \t',
      '\r',
      '\f',
      ',',
      ',,,,,',
      'x',
      'short,1',
      `${row(1)},longer`,
      row(2).replace(' ', 's A, B'),
      row(3).replace('Group 3', '"Quoted ""text"""'),
      row(4).replace('o', 'é'),
      '"open',
      `${row(5)},`,
    );
    const text = fc
      .record({
        end: lineEnd,
        otherEnd: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, lineEnd),
        kinds: fc.array(odd, { minLength: 1, maxLength: 3 }),
        // Of so many rows each is followed by so many odd lines.
        every: fc.constantFrom(1, 2, 10, 100),
        times: fc.constantFrom(1, 1, 3, 20),
        rows: fc.integer({ min: 1, max: 120 }),
        further: fc.constantFrom('', ',ReceivedAt,SavedAt'),
      })
      .map(({ end, otherEnd, kinds, every, times, rows, further }) => {
        const lines = [`${header}${further}${end}`];
        for (let at = 0; at < rows; at += 1) {
          lines.push(row(at), end);
          for (let odd = 0; at % every === 0 && odd < times; odd += 1)
            lines.push(kinds[(at + odd) % kinds.length] as string, otherEnd ?? end);
        }
        return lines.join('');
      });
    let scanned = 0;
    forAll([text], { numRuns: 30, seed: 24 }, (one) => {
      const body = Buffer.from(one);
      if (isScanned(operation, requested, body)) scanned += 1;
      expect(workOf(body)).toBeLessThan(most(body));
    });
    expect(scanned).toBeGreaterThan(5);
  });

  test.each([
    ['empty lines', `${header}\n${row(1)}\n${'\n'.repeat(400_000)}`],
    ['empty lines with carriage returns', `${header}\r\n${row(1)}\r\n${'\r\n'.repeat(200_000)}`],
    ['lines of blanks', `${header}\n${row(1)}\n${' \t\n'.repeat(100_000)}`],
  ])('%s do not start the parser', (_, text) => {
    const body = Buffer.from(text);
    expect(readFacts(operation, requested, body, ALWAYS)).toMatchObject({
      scanned: true,
      result: { fetched: 1 },
    });
    expect(workOf(body)).toBeLessThan(2_000);
  });

  test('an empty line after each row costs nothing, and the rows are the same', () => {
    const rows = Array.from({ length: 2_000 }, (_, at) => row(at));
    const [dense, spaced] = ['\n', '\n\n'].map((end) => Buffer.from([header, ...rows, ''].join(end))) as [
      Buffer,
      Buffer,
    ];
    expect(readFacts(operation, requested, spaced, ALWAYS)).toStrictEqual(
      readFacts(operation, requested, dense, ALWAYS),
    );
    expect(workOf(spaced)).toBe(workOf(dense));
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
});

describe('a line that is longer than a row may be never becomes a string', () => {
  const long = Buffer.alloc(2_000_000, ',');
  const start = Buffer.from(`${header}\n`);
  const good = Buffer.from(`${row(1)}\n`);

  test.each([
    ['the first row', Buffer.concat([start, long, Buffer.from('\n')]), 2],
    ['a later row', Buffer.concat([start, good, long, Buffer.from('\n'), good]), 3],
    ['the last row, without an end', Buffer.concat([start, good, long]), 3],
    ['the header', Buffer.concat([Buffer.from(header), long, Buffer.from('\n'), good]), 1],
  ])('as %s of CSV', (_, body, line) => {
    const { mock } = vi.mocked(parse).mockClear();
    const split = vi.spyOn(String.prototype, 'split');
    const { result } = readFacts(operation, requested, body, ALWAYS);
    const cells = split.mock.results.map(({ value }) => (value as string[]).length);
    split.mockRestore();
    expect(result).toMatchObject({
      kind: 'unreadable',
      message: expect.stringMatching(
        `^the response cannot be read: broken CSV \\(line ${line} has 20000..? bytes; at most 1000000 of a line are read\\)$`,
      ),
    });
    expect(mock.calls.reduce((sum, [given]) => sum + given.length, 0)).toBeLessThan(50_000);
    expect(Math.max(0, ...cells)).toBeLessThan(100);
  });
});

import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { print } from '../../src/cli/cli.ts';
import { bold, clockTime, duration, firstLines, plural, rangeText, table } from '../../src/cli/output.ts';
import { captureCli } from '../support/cli.ts';

interface Row {
  readonly name: string;
  readonly rows: number | null;
}

const COLUMNS = [
  { head: 'name', cell: (row: Row) => row.name },
  { head: 'rows', cell: (row: Row) => row.rows },
  { head: '', cell: (row: Row) => (row.rows === null ? 'none' : '') },
];

const drawn = (rows: readonly Row[]) => stripVTControlCharacters(table(COLUMNS, rows)).split('\n');

describe('a table', () => {
  test('is aligned, with numbers to the right and no blank at the end of a line', () => {
    expect(
      drawn([
        { name: 'TCS', rows: 1234567 },
        { name: 'मिड ₹', rows: null },
      ]),
    ).toEqual(['name        rows', 'TCS    1,234,567', 'मिड ₹             none']);
  });

  test('keeps one line a row, whatever is in a cell', () => {
    expect(drawn([{ name: 'two\r\n  lines', rows: 1 }])[1]).toBe('two lines     1');
  });

  test('of no rows is its head', () => {
    expect(drawn([])).toEqual(['name  rows']);
  });
});

test('bold print reaches a terminal only, and not one that asks for none', () => {
  const print1 = (isTTY: boolean, env = {}) => {
    const { cli, stdout } = captureCli({ env });
    print({ ...cli, stdout: { write: cli.stdout.write, isTTY } }, bold('head'));
    return stdout();
  };
  expect(print1(true)).toBe('\u001b[1mhead\u001b[22m\n');
  expect(print1(false)).toBe('head\n');
  expect(print1(true, { NO_COLOR: '1' })).toBe('head\n');
});

test('words for counts, times and ranges', () => {
  expect([plural(1, 'window'), plural(1200, 'window')]).toEqual(['1 window', '1,200 windows']);
  expect([4, 80, 7500].map(duration)).toEqual(['4s', '1m 20s', '2h 05m']);
  expect(clockTime('2025-09-12T13:30:00Z', 'Asia/Kolkata')).toBe('19:00 IST');
  expect(rangeText({ from: '2025-02-27', to: '2025-02-27' })).toBe('2025-02-27');
  expect(rangeText({ from: '2025-02-20', to: '2025-02-27' })).toBe('2025-02-20 to 2025-02-27');
  expect(firstLines([1, 2, 3], 2, (one) => `${one}`)).toEqual(['1', '2', '  … and 1 more']);
});

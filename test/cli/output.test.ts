import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { print } from '../../src/cli/cli.ts';
import {
  bold,
  clockTime,
  duration,
  firstLines,
  fittedTable,
  plural,
  rangeText,
  table,
} from '../../src/cli/output.ts';
import { changedColumns } from '../../src/cli/run-output.ts';
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

test('changed columns show moments on the clocks of the zone, whatever zone Postgres wrote them in', () => {
  const columns = {
    announced_at: { old: '2025-09-12T15:32:14+00:00', new: '2025-09-12 21:05:00+05:30' },
    close_price: { old: '1.50', new: null },
  };
  expect(changedColumns({ columns }, 'Asia/Kolkata')).toBe(
    'announced_at: 2025-09-12 21:02:14 → 2025-09-12 21:05:00, close_price: 1.50 → null',
  );
});

test('a table that is too wide tells the rest below', () => {
  const rows = [
    { name: 'A'.repeat(60), some: 1, more: 22, none: 0 },
    { name: 'B', some: 0, more: 0, none: 0 },
  ];
  const column = (head: 'some' | 'more' | 'none') => ({
    head,
    cell: (row: (typeof rows)[number]) => row[head],
  });
  const name = { head: 'name', cell: (row: (typeof rows)[number]) => row.name };
  const heads = ['some', 'none', 'more'] as const;
  const text = fittedTable([name], heads.map(column), rows, (row) => row.name.slice(0, 1));
  expect(text.split('\n').map((line) => line.replaceAll(/ {2,}/g, '|'))).toEqual([
    '\u001b[1mname\u001b[22m|\u001b[1msome\u001b[22m|\u001b[1mmore\u001b[22m',
    `${'A'.repeat(60)}|1|22`,
    'B|0|0',
  ]);
  const wide = fittedTable(
    [name, { ...name, cell: () => 'C'.repeat(15) }],
    heads.map(column),
    rows,
    () => 'A',
  );
  expect(wide).toMatch(/\n\nA: 1 some, 22 more$/);
});

test('a cell cannot steer the terminal, nor begin a line', () => {
  const name = 'A\u001b[1mB\u001b]0;x\u0007\tC\nD\u202e';
  const { cli, stdout } = captureCli();
  print(
    { ...cli, stdout: { write: (text) => cli.stdout.write(text), isTTY: true } },
    table(COLUMNS, [{ name, rows: 1 }]),
  );
  expect(stdout().split('\n')[1]).toBe('A\\u001b[1mB\\u001b]0;x\\u0007 C D\\u202e     1');
});

import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { print } from '../../src/cli/cli.ts';
import {
  bold,
  clockTime,
  commandText,
  duration,
  firstLines,
  fittedTable,
  plural,
  rangeText,
  table,
  wrap,
} from '../../src/cli/output.ts';
import { progressView } from '../../src/cli/progress.ts';
import { pipelineLines } from '../../src/cli/shared-texts.ts';
import { quoteForShell, retryText } from '../../src/core/wording.ts';
import { captureCli } from '../support/cli.ts';
import { forAll } from '../support/for-all.ts';

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

test('a retry whose time has come is said to wait for its turn, without a time, because other rules may hold it back', () => {
  const retry = {
    operation: 'GetSeriesChange',
    exchange: 'NSE',
    windows: 1,
    error: 'the source responded with HTTP status 500',
    attempt: 2,
    retryAt: null,
    isPaused: false,
  };
  expect(retryText(retry, 'Asia/Kolkata')).toBe('GetSeriesChange NSE: HTTP 500, 2nd call waits for its turn');
});

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

test('bold print reaches a terminal only, and not one that wants none', () => {
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
  const numbers = Array.from({ length: 22 }, (_, at) => at);
  const lines = firstLines(numbers, (number) => `${number}`);
  expect(lines).toEqual([...numbers.slice(0, 20).map(String), '  … and 2 more']);
});

test('a table that is too wide shows the rest below', () => {
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

describe('what is wider than the page', () => {
  const words = Array.from({ length: 30 }, (_, at) => `word${at}`).join(' ');
  const address = `https://example.org/${'a'.repeat(80)}`;

  test('is broken between two words, and goes on indented', () => {
    const lines = wrap(`  failed: ${words}\nshort`).split('\n');
    expect(lines.map((line) => [...line].length <= 80)).not.toContain(false);
    expect(lines.map((line) => /^ */.exec(line)?.[0].length)).toEqual([2, 4, 4, 0]);
    expect(lines.map((line) => line.trim()).join(' ')).toBe(`failed: ${words} short`);
  });

  test('goes on below the second column of a line that has one', () => {
    expect(wrap(`given by    ${words}`).split('\n')[1]).toMatch(/^ {12}word/);
  });

  test('is broken as a shell reads it where it is a command', () => {
    const command = 'eod backfill GetBhavCopyCM --exchange BSE --from 2025-08-29 --to 2025-08-29 --force';
    const printed = commandText(`    ${command}`);
    expect(printed.split('\n').map((line) => line.length <= 80)).toEqual([true, true]);
    expect(wrap(printed)).toBe(printed);
    expect(printed.replace(/ \\\n +/g, ' ').trim()).toBe(command);
    expect(commandText('    eod issues')).toBe('    eod issues');
  });

  test('stays whole where it is one word', () => {
    expect(wrap(`see ${address} and more`).split('\n')).toEqual(['see', address, '  and more']);
  });

  test('is wrapped in the last column of a table, and stands below where a word does not fit', () => {
    const lines = drawn([
      { name: 'short', rows: 1 },
      { name: words, rows: 2 },
    ]);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    const columns = [{ head: 'at', cell: (row: Row) => row.rows }, ...COLUMNS.slice(0, 1)];
    const text = (name: string) => stripVTControlCharacters(table(columns, [{ name, rows: 1 }])).split('\n');
    expect(text(words).slice(0, 3)).toEqual([
      'at  name',
      expect.stringMatching(/^ 1 {2}word0 /),
      expect.stringMatching(/^ {4}word\d/),
    ]);
    expect(text(`${address} x`)).toEqual(['at  name', ' 1', `    ${address}`, '      x']);
  });

  test('stands below its row, by name where several columns do', () => {
    const wide = (head: string) => ({ head, cell: (row: Row) => `${head} ${row.name.padEnd(60, '.')}` });
    const [first, second] = [
      [wide('first'), wide('second')],
      [wide('first'), wide('second'), wide('third')],
    ].map((columns) => stripVTControlCharacters(table(columns, [{ name: 'a', rows: 1 }])));
    expect(first?.replaceAll(/\.+/g, '')).toBe('first\n    second\nfirst a\n    second a');
    expect(second?.replaceAll(/\.+/g, '')).toBe('first\nfirst a\n    second: second a\n    third: third a');
  });
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

test('progress on a terminal is one line, rewritten in place and never wider than the terminal', () => {
  const { cli: captured, stderr } = captureCli();
  const onTerminal = { write: (text: string) => captured.stderr.write(text), isTTY: true };
  const view = progressView({ ...captured, stdout: onTerminal, stderr: onTerminal }, 7);
  const facts = { kind: 'backfill', state: 'running', total: 207, requests: 4, isDeferred: false } as const;
  view.update({ ...facts, ended: 0, fetched: 0 });
  view.update({ ...facts, ended: 104, fetched: 5_200 }, 'waiting until 04:00 IST');
  view.update({ ...facts, ended: 207, fetched: 9_000, state: 'completed' }, null, 'failed '.repeat(40));
  view.end();
  const [before, ...lines] = stderr().split('\r\u001b[K');
  expect(before).toBe('');
  expect(lines.map((line) => /^run 7: (\S+) windows · /.exec(line)?.[1])).toEqual([
    '0/207',
    '104/207',
    '207/207',
  ]);
  expect(lines[1]).toContain('waiting');
  expect(lines.join('').match(/\n/g)).toHaveLength(1);
  expect(stderr().endsWith('\n')).toBe(true);
  for (const line of lines) expect(line.trimEnd().length).toBeLessThan(process.stderr.columns ?? 80);
});

describe('progress without a terminal', () => {
  const FAKE: Parameters<typeof vi.useFakeTimers>[0] = { toFake: ['Date'] };
  afterEach(() => void vi.useRealTimers());

  test('says once that the run waits, however long it waits', () => {
    vi.useFakeTimers(FAKE);
    const { cli, stderr } = captureCli();
    const view = progressView(cli, 7);
    const progress = {
      kind: 'backfill',
      state: 'running',
      total: 10,
      ended: 4,
      requests: 4,
      fetched: 40,
      isDeferred: false,
    } as const;
    view.update(progress);
    for (let minute = 0; minute < 60; minute++) {
      view.update(progress, 'waiting until 04:00 IST');
      vi.advanceTimersByTime(60_000);
    }
    view.update({ ...progress, ended: 5 }, 'waiting until 05:00 IST');
    view.end();
    const waits = (ended: number, until: string) =>
      `run 7: ${ended}/10 windows · 40 records · waiting until ${until}\n`;
    expect(stderr()).toBe(waits(4, '04:00 IST') + waits(5, '05:00 IST'));
  });

  test('names no total that will grow while a part is yet to be planned', () => {
    const { cli, stderr } = captureCli();
    const view = progressView(cli, 7);
    const facts = { kind: 'backfill', state: 'running', requests: 4, fetched: 0 } as const;
    view.update({ ...facts, ended: 140, total: 161, isDeferred: true });
    view.end();
    view.update({ ...facts, ended: 140, total: 207, isDeferred: false });
    view.end();
    expect(stderr()).toMatch(/^run 7: 140 of 161\+ windows done · .*\nrun 7: 140\/207 windows · /);
  });

  test('says what is done after the last window, and at the end how long all took', () => {
    vi.useFakeTimers(FAKE);
    const { cli, stderr } = captureCli();
    const view = progressView(cli, 7);
    const facts = {
      kind: 'backfill',
      requests: 2,
      isDeferred: false,
      ended: 2,
      total: 2,
      fetched: 0,
    } as const;
    for (let second = 0; second < 65; second++) {
      view.update({ ...facts, state: 'running' });
      vi.advanceTimersByTime(1_000);
    }
    view.update({ ...facts, state: 'completed' });
    view.end();
    expect(stderr()).toBe(
      'run 7: 2/2 windows · 0 records · naming instruments, computing corporate events\n' +
        'run 7: 2/2 windows · 0 records · took 1m 05s\n',
    );
  });

  test('a run with nothing to request says so once it has ended, not while it is planned', () => {
    const { cli, stderr } = captureCli();
    const view = progressView(cli, 7);
    const facts = {
      kind: 'backfill',
      requests: 0,
      fetched: 0,
      ended: 0,
      total: 0,
      isDeferred: false,
    } as const;
    view.update({ ...facts, state: 'running' });
    view.end();
    view.update({ ...facts, state: 'completed' });
    view.end();
    expect(stderr()).toMatch(/^run 7: 0\/0 windows · .*\nrun 7: nothing to request · 0 records · took 0s\n$/);
  });

  test('names a speed and a time left only once they are known, and a speed only above zero', () => {
    vi.useFakeTimers(FAKE);
    const step = fc.record({
      seconds: fc.integer({ min: 0, max: 40 }),
      ended: fc.nat(2),
      records: fc.nat(90),
    });
    const drawn = [
      fc.array(step, { minLength: 1, maxLength: 12 }),
      fc.boolean(),
      fc.constantFrom(null, 'A NSE: HTTP 500, 2nd call at 02:59'),
    ] as const;
    forAll([...drawn], {}, (steps, isDeferred, retries) => {
      const { cli, stderr } = captureCli();
      const view = progressView(cli, 7);
      const now = { kind: 'backfill', state: 'running', total: 40, requests: 0, isDeferred } as const;
      const counts = { ended: 0, fetched: 0 };
      for (const { seconds, ended, records } of steps) {
        vi.advanceTimersByTime(1_000 * seconds);
        counts.ended += ended;
        if (ended > 0) counts.fetched += records;
        view.update({ ...now, ...counts }, null, retries);
      }
      view.end();
      const lines = stderr().trimEnd().split('\n');
      for (const line of lines) {
        const [, done, rest = ''] =
          /^run 7: (\d+)(?:\/| of )40(?:\+)? windows(?: done)? · [\d,]+ records(?: · (.*))?$/.exec(line) ??
          [];
        const time = isDeferred ? 'more will be planned once these are loaded' : '[\\dhms ]+ left';
        // What waits to be tried again makes all guesses wrong.
        expect(rest, line).toMatch(
          done === '0' || rest === (retries ?? '')
            ? new RegExp(`^${retries ?? ''}$`)
            : new RegExp(`^([1-9][\\d,]*/s · )?${retries ?? time}$`),
        );
      }
    });
  });

  test('measures the speed anew after a pause', () => {
    vi.useFakeTimers(FAKE);
    const { cli, stderr } = captureCli();
    const view = progressView(cli, 7);
    const facts = { kind: 'backfill', state: 'running', total: 30, requests: 4, isDeferred: false } as const;
    view.update({ ...facts, ended: 10, fetched: 100 });
    view.update({ ...facts, ended: 10, fetched: 100 }, 'waiting until 04:00 IST');
    vi.advanceTimersByTime(1_800_000);
    view.update({ ...facts, ended: 10, fetched: 100 });
    vi.advanceTimersByTime(10_000);
    view.update({ ...facts, ended: 20, fetched: 200 });
    view.end();
    expect(stderr().split('\n').at(-2)).toBe('run 7: 20/30 windows · 200 records · 10/s · 10s left');
  });
});

describe('on a terminal that is narrower than the page', () => {
  const terminalBefore = { isTTY: process.stdout.isTTY, columns: process.stdout.columns };
  afterEach(() => {
    Object.assign(process.stdout, terminalBefore);
  });
  const columns = [
    { head: 'operation', cell: (row: { name: string; rows: number }) => row.name },
    { head: 'exchange', cell: () => 'NSE' },
    { head: 'complete to', cell: () => '2025-08-29' },
    { head: 'why', cell: () => 'the source responded with an error that is reported in a long sentence' },
  ];
  const rows = [{ name: 'GetCorporateActionsCategories', rows: 12 }];
  const widest = (text: string) => Math.max(...text.split('\n').map((line) => [...line].length));

  test.each([
    [40, 40],
    [60, 60],
    [20, 40],
    [200, 80],
    [0, 80],
  ])('of %i columns, tables and texts have lines of %i at most', (terminal, maxWidth) => {
    Object.assign(process.stdout, { isTTY: true, columns: terminal });
    const text = `${table(columns, rows)}\n${wrap('words '.repeat(40))}`;
    expect(widest(stripVTControlCharacters(text))).toBeLessThanOrEqual(maxWidth);
    expect(widest(stripVTControlCharacters(text))).toBeGreaterThan(maxWidth - 12);
    expect(text).toContain('2025-08-29');
  });

  test('a file or pipe has lines of 80', () => {
    Object.assign(process.stdout, { isTTY: undefined, columns: 40 });
    expect(widest(wrap('words '.repeat(40)))).toBeGreaterThan(70);
  });
});

test('the time since when the pipeline is blocked is not said to be that of the run, which may have begun later', () => {
  const pipeline = {
    state: 'blocked',
    cause: 'the source does not respond: HTTP 503',
    since: '2025-09-12T16:40:00Z',
    runId: 9,
    remedy: 'await_source',
    nextTry: null,
  } as const;
  expect(pipelineLines({ pipeline, isUnused: false }, 'Asia/Kolkata')[0]).toBe(
    'the source does not respond: HTTP 503 (since 2025-09-12 22:10:00; run 9 shows more)',
  );
});

test('a word is quoted for a shell where one of its characters has a meaning there', () => {
  expect(['demo-key-1234', 'M&M', "it's"].map(quoteForShell)).toEqual([
    'demo-key-1234',
    "'M&M'",
    "'it'\\''s'",
  ]);
});

import { describe, expect, test } from 'vitest';
import type { VersionDifference } from '../../src/cli/commands/diff.ts';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import { FOLDER_DAY } from '../support/bhav-folder.ts';
import { runCli, runJson } from '../support/cli.ts';
import { filledDatabase } from '../support/filled-database.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();
const DIFF = ['diff', '--operation', 'getbhavcopycm'];
const key = (exchange: string, symbol: string, series: string) => ({
  exchange,
  symbol,
  series,
  trade_date: FOLDER_DAY,
});

const url = await filledDatabase();
const options = { cwd, env: { DATABASE_URL: url } };

const diff = (...flags: string[]) => runCli([...DIFF, ...flags], options);
const diffJson = async (...flags: string[]) =>
  (await runJson<VersionDifference>([...DIFF, ...flags], options)).json;

describe.concurrent('between two runs', () => {
  test('what was inserted, changed and withdrawn, the changed columns old and new', async () => {
    const { from, to, states, ...rest } = await diffJson('--between', '1', '2');
    expect(states).toEqual({ from: 2, to: 4 });
    const row = (change: string, rowKey: object, columns: object = {}) => ({
      table: 'market.bhavcopy_cm',
      change,
      key: rowKey,
      columns,
    });
    expect(rest).toEqual({
      operation: 'GetBhavCopyCM',
      inserted: 2,
      updated: 2,
      withdrawn: 2,
      relisted: 0,
      rows: [
        row('updated', key('BSE', 'TCS', 'A'), { close_price: { old: '3049.45', new: '3333.3' } }),
        row('updated', key('NSE', 'TCS', 'EQ'), { close_price: { old: '3084.7', new: '3333.3' } }),
        row('withdrawn', key('BSE', 'GAIL', 'A')),
        row('withdrawn', key('NSE', 'ABAN', 'EQ')),
        row('inserted', key('BSE', 'NEWCO', 'A')),
        row('inserted', key('NSE', 'NEWCO', 'GB')),
      ],
      notListed: 0,
    });
    const ends = await query<{ end: string }>(
      url,
      `select to_char(finished_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as end
         from etl.runs where id <= 2 order by id`,
    );
    expect([from, to]).toEqual(ends.map(({ end }) => end));
  });

  test('the same as a table, with the key column by column', async () => {
    const { code, stdout, stderr } = await diff('--between', '1', '2');
    expect([code, stderr]).toEqual([0, '']);
    const [head, counts, blank, ...lines] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^Prices, bhavcopy_cm, \S+ \d\d:\d\d:\d\d to \S+ \d\d:\d\d:\d\d \(Asia\/Kolkata\)$/);
    expect(counts).toBe('2 updated, 2 withdrawn, 2 inserted');
    expect([blank, ...lines.map((line) => line.replaceAll(/ {2,}/g, ' | '))]).toEqual([
      '',
      'market.bhavcopy_cm',
      'change | exchange | symbol | series | trade_date | columns, old → new',
      `updated | BSE | TCS | A | ${FOLDER_DAY} | close_price: 3049.45 → 3333.3`,
      `updated | NSE | TCS | EQ | ${FOLDER_DAY} | close_price: 3084.7 → 3333.3`,
      `withdrawn | BSE | GAIL | A | ${FOLDER_DAY}`,
      `withdrawn | NSE | ABAN | EQ | ${FOLDER_DAY}`,
      `inserted | BSE | NEWCO | A | ${FOLDER_DAY}`,
      `inserted | NSE | NEWCO | GB | ${FOLDER_DAY}`,
    ]);
  });

  test('rows listed again, and the way back', async () => {
    const { rows, ...counts } = await diffJson('--between', '2', '4');
    expect(counts).toMatchObject({ inserted: 0, updated: 2, withdrawn: 2, relisted: 2 });
    expect(rows.map(({ change, key }) => `${change} ${key.symbol}`)).toEqual([
      'updated TCS',
      'updated TCS',
      'withdrawn NEWCO',
      'withdrawn NEWCO',
      'relisted GAIL',
      'relisted ABAN',
    ]);
  });

  test('what is at the end as it was at the start does not differ, nor does what came and went in between', async () => {
    const { rows, ...counts } = await diffJson('--between', '1', '4');
    expect(counts).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0, relisted: 0 });
    expect(rows).toEqual([]);
  });

  test('a run that changed nothing', async () => {
    const { code, stdout } = await diff('--between', '2', '3');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Prices, bhavcopy_cm, .*\nnothing changed\n$/);
    expect(await diffJson('--between', '2', '3')).toMatchObject({ updated: 0, rows: [], notListed: 0 });
    const other = await runCli(['diff', '--operation', 'GetSeriesChange', '--between', '1', '4'], options);
    expect(other).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nnothing changed\n$/) });
  });

  test('--limit lists fewer rows and counts all', async () => {
    const { stdout } = await diff('--between', '1', '2', '--limit', '1');
    expect(stdout).toMatch(/^2 updated, 2 withdrawn, 2 inserted$/m);
    expect(stdout).toMatch(/3333\.3\n\n5 more rows; --limit shows more\n$/);
    const json = await diffJson('--between', '1', '2', '--limit', '5');
    expect([json.rows.length, json.notListed, json.inserted]).toEqual([5, 1, 2]);
    // A hundred unless set otherwise: nobody reads the two hundred rows of a first load.
    const [all, some] = [
      await diff('--since', FOLDER_DAY),
      await diff('--since', FOLDER_DAY, '--limit', '198'),
    ];
    expect(all.stdout).toMatch(/\n200 inserted\n[\s\S]*\n100 more rows; --limit shows more\n$/);
    expect(some.stdout).toMatch(/\n2 more rows; --limit shows more\n$/);
    const whole = await diffJson('--since', FOLDER_DAY);
    expect([whole.rows.length, whole.notListed]).toEqual([200, 0]);
  });
});

describe('states', () => {
  const state = async (...flags: string[]) =>
    (await runJson<{ state: number; committedAt: string | null }>(['state', ...flags], options)).json;

  test('are in the report of every run, before and after', async () => {
    const reports = await Promise.all(
      [1, 2, 3, 4].map(async (run) => (await runJson<RunReport>(['runs', `${run}`], options)).json.states),
    );
    expect(reports).toEqual([
      { before: 0, after: 2 },
      { before: 2, after: 4 },
      { before: 4, after: 4 },
      { before: 4, after: 6 },
    ]);
    expect((await runCli(['runs', '2'], options)).stdout).toMatch(
      /^database state 2 → 4 \(every load makes a new one\)$/m,
    );
  });

  test('eod state shows the present one, and that of a moment', async () => {
    const { state: newest, committedAt } = await state();
    expect(newest).toBeGreaterThan(6);
    expect(committedAt).toMatch(/^\d{4}-.*Z$/);
    expect(await state('--at', committedAt ?? '')).toEqual({ state: newest, committedAt });
    expect(await state('--at', FOLDER_DAY)).toEqual({ state: 0, committedAt: null });
    expect((await runCli(['state'], options)).stdout).toMatch(
      new RegExp(
        `^database state ${newest}, since .* \\(Asia/Kolkata\\)\nmarket_history\\.<table>_at\\(${newest}\\) shows it\n$`,
      ),
    );
  });

  test('can be compared, and so can times, in place of runs', async () => {
    const { from, to, ...runs } = await diffJson('--between', '1', '2');
    const { from: fromState, to: toState, ...states } = await diffJson('--between', 'state:2', 'state:4');
    expect(states).toEqual(runs);
    expect([fromState <= from, toState <= to]).toEqual([true, true]);
    const { from: _, to: __, ...times } = await diffJson('--between', from, to);
    expect(times).toEqual(runs);
    const { from: ___, to: ____, ...mixed } = await diffJson('--between', '1', 'state:4');
    expect(mixed).toEqual(runs);
    expect(await diffJson('--between', 'state:0', '1')).toMatchObject({ inserted: 200, updated: 0 });
  });

  test('a state that is not there, and two in the wrong order', async () => {
    expect(await diff('--between', 'state:1', 'state:99')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('there is no state 99 ("eod state" shows'),
    });
    expect(await diff('--between', 'state:4', 'state:2')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('use --between state:2 state:4'),
    });
  });
});

test('since a moment: a time with its zone, or a day in EOD_TIMEZONE', async () => {
  const [run] = await query<{ utc: string; india: string }>(
    url,
    `select to_char(finished_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as utc,
       to_char(finished_at at time zone 'Asia/Kolkata', 'YYYY-MM-DD HH24:MI:SS.US"+05:30"') as india
     from etl.runs where id = 4`,
  );
  // Nothing was loaded since the last run.
  for (const moment of [run?.utc ?? '', run?.india ?? '']) {
    expect(await diffJson('--since', moment)).toMatchObject({ from: run?.utc, updated: 0, rows: [] });
  }
  const day = await diffJson('--since', '2025-09-10');
  expect(day).toMatchObject({ from: '2025-09-09T18:30:00.000000Z', inserted: 200, withdrawn: 0 });
  expect(day.rows).toHaveLength(200);
});

test('a run that is still open reaches to now, and cannot be the first', async () => {
  expect(await diffJson('--between', '2', '6')).toMatchObject({ updated: 2, withdrawn: 2, relisted: 2 });
  expect(await diff('--between', '6', '2')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('run 6 has not ended'),
  });
});

describe.concurrent('mistakes', () => {
  const mistakes: [string, string[], RegExp][] = [
    ['an unknown run', ['--between', '1', '999'], /there is no run 999 \("eod runs" lists them\)/],
    ['no number of a run', ['--between', 'first', '2'], /"first" is not a run \(12\)/],
    ['the runs in wrong order', ['--between', '2', '1'], /run 2 ended after run 1: use --between 1 2/],
    ['one run twice', ['--between', '2', '2'], /names run 2 twice/],
    ['one run', ['--between', '2'], /--between takes two runs, states or times, e\.g\. --between 12 15/],
    ['a word for a time', ['--since', 'yesterday'], /--since: "yesterday" is not a time; write .*\+05:30/],
    ['a time to come', ['--since', '2999-01-01'], /is in the future/],
    ['neither runs nor time', [], /give either --between A B \(runs, states or times\) or --since TIME/],
    ['a limit of nothing', ['--between', '1', '2', '--limit', '0'], /--limit: "0" is not a whole number/],
  ];
  test.each(mistakes)('%s ends with exit code 2', async (_, args, message) => {
    const { code, stdout, stderr } = await diff(...args);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^eod: .*\n$/);
    expect([code, stdout]).toEqual([2, '']);
  });

  test('an operation that is unknown or missing', async () => {
    const unknown = await runCli(['diff', '--operation', 'GetBhav', '--between', '1', '2'], options);
    expect(unknown).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean GetBhavCopyCM?'),
    });
    const none = await runCli(['diff', '--between', '1', '2'], options);
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('--operation') });
  });
});

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect } from 'vitest';
import type { Gaps } from '../../src/jobs/runs/read-gaps.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { bhavSource } from '../support/bhav-source.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const FOLDER = resolve('../shared/data/bhavcopy');
const RANGE = ['--from', '2025-08-29', '--to', '2025-09-11'];
const cwd = temporaryFolder();

if (!existsSync(FOLDER)) console.log(`not checked against real files: ${FOLDER} is not there`);

/** A source of these files, and what `eod` needs to use it. */
async function serve(folder: string) {
  const sandbox = await openSandbox(bhavSource(folder));
  const { url } = await testDatabase();
  const env = { DATABASE_URL: url, EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: 'kiwi', EOD_HTTP_PORT: '0' };
  return { url, options: { cwd, env } };
}

const spans = ({ gaps }: Gaps) =>
  gaps.map(({ exchange, from, to, sessions, reason }) => [exchange, from, to, sessions, reason]);

describe.runIf(existsSync(FOLDER))('gaps of real bhav copies', () => {
  test('are exactly the trading days the folder lacks, by exchange', async () => {
    const { options, url } = await serve(FOLDER);
    const load = await runJson<RunReport>(['backfill', 'GetBhavCopyCM', ...RANGE], options);
    expect(load.json).toMatchObject({ state: 'completed', windows: { total: 20 } });

    const { code, json } = await runJson<Gaps>(['gaps', 'GetBhavCopyCM', ...RANGE], options);
    expect(code).toBe(1);
    expect(spans(json)).toEqual([
      ['BSE', '2025-08-29', '2025-09-04', 5, 'empty'],
      ['NSE', '2025-09-01', '2025-09-11', 9, 'empty'],
    ]);
    expect(json).toMatchObject({ from: '2025-08-29', to: '2025-09-11', total: 14, observed: [] });

    // Between its own first and last file the folder lacks nothing of either exchange.
    const bse = ['--exchange', 'BSE', '--from', '2025-09-05', '--to', '2025-09-11'];
    const whole = await runCli(['gaps', 'GetBhavCopyCM', ...bse], options);
    expect(whole).toMatchObject({ code: 0, stdout: 'nothing is missing, 2025-09-05 to 2025-09-11\n' });

    // Without --from an exchange is looked at from its first loaded day on.
    const from = await runJson<Gaps>(['gaps', 'GetBhavCopyCM', '--to', '2025-09-11'], options);
    expect(spans(from.json)).toEqual([['NSE', '2025-09-01', '2025-09-11', 9, 'empty']]);

    const view = await query<{ exchange: string; day: string }>(
      url,
      `select exchange, to_char(day, 'YYYY-MM-DD') as day from etl.completeness
        where operation = 'GetBhavCopyCM' and state = 'missing' and day <= '2025-09-11' order by 1, 2`,
    );
    expect(view.map(({ exchange }) => exchange)).toEqual(Array(9).fill('NSE'));
    expect([view[0]?.day, view.at(-1)?.day]).toEqual(['2025-09-01', '2025-09-11']);

    const human = await runCli(['gaps', 'getbhavcopycm', ...RANGE], options);
    expect(human.code).toBe(1);
    expect(human.stdout).toMatch(
      /^bhavcopy_cm +NSE +2025-09-01 +2025-09-11 +9\n +the source listed nothing$/m,
    );
    expect(human.stdout).toContain('14 trading days missing in 2 ranges, 2025-08-29 to 2025-09-11');

    // Nothing is missing, nothing is requested: there is no run to report.
    const none = await runJson<null>(['gaps', 'fill', 'GetBhavCopyCM', ...bse], options);
    expect([none.code, none.json]).toEqual([0, null]);
  });
});

describe.concurrent('mistakes', () => {
  const mistakes: [string, string[], RegExp][] = [
    ['an unknown operation', ['GetBhavCopy'], /did you mean GetBhavCopyCM/],
    ['a reversed range', ['--from', '2025-09-02', '--to', '2025-09-01'], /reversed/],
    ['a day that does not exist', ['--from', '2025-02-30'], /--from: "2025-02-30" is not a day/],
    ['an unknown exchange', ['--exchange', 'XSE'], /unknown exchange "XSE"/],
  ];
  test.each(mistakes)('%s ends with exit code 2', async (_, args, message) => {
    for (const command of [['gaps'], ['gaps', 'fill']]) {
      const { code, stdout, stderr } = await runCli([...command, ...args], { cwd });
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toMatch(message);
    }
  });
});

test('a year that the calendar does not know is reported once, where days of it are planned', async ({
  url,
}) => {
  const env = { DATABASE_URL: url, EOD_BASE_URL: 'http://127.0.0.1:9', EOD_ACCESS_KEY: 'kiwi' };
  const range = ['--from', '2014-12-29', '--to', '2015-01-02'];
  const flags = ['GetBhavCopyCM', 'GetTotalTradeHighlights', '--exchange', 'BSE', ...range];
  const { code, stdout, stderr } = await runCli(['backfill', ...flags, '--dry-run'], { cwd, env });
  expect(code).toBe(0);
  expect(stdout).toContain('2014-12-29 to 2015-01-02');
  expect(stderr).toBe('no calendar data for BSE 2014: Monday to Friday was assumed (EOD_CALENDAR_FILE)\n');
  const long = await runCli(['gaps', 'GetBhavCopyCM', '--from', '2012-01-01', '--to', '2015-01-02'], {
    cwd,
    env,
  });
  expect(long.stderr).toBe(
    'no calendar data for BSE 2012 to 2014, NSE 2012 to 2014: Monday to Friday was assumed (EOD_CALENDAR_FILE)\n',
  );
});

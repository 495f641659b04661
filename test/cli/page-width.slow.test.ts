import { expect, test } from 'vitest';
import { operations } from '../../src/operations/registry.ts';
import { bhavcopy, bhavRow, loadBhav, newRun, newWindow, openPool } from '../load/support.ts';
import { runCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DAY = '2025-08-29';
const ADDRESS = `https://data.example.org/${'very/'.repeat(15)}long`;
const SENTENCE = `the source says: ${'please try again in an hour or so, '.repeat(5)}see ${ADDRESS}`;

/** Lines that are too wide and could have been broken: of more than one word, and not one member of a JSON object. */
function wideLines(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => [...line].length > 80 && line.trim().includes(' ') && !/^ *"[^"]+": /.test(line));
}

/** A database in which every command that only reads has something long to say. */
async function filledDatabase(): Promise<string> {
  const { url } = await testDatabase();
  const store = openPool(url);
  const rows = Array.from({ length: 20 }, (_, at) =>
    bhavRow({ symbol: `SYMBOL${at + 10}`, instrument_full_name: SENTENCE }),
  );
  const fullSets = [{ table: bhavcopy, exchange: 'NSE', days: { from: DAY, to: DAY }, mayBeEmpty: false }];
  const problems = [
    { path: 'ClosePrice', message: 'is not a number with at most 4 decimals: "about twelve rupees"' },
    { path: '', message: SENTENCE },
  ];
  const runId = await newRun(store);
  await loadBhav(store, rows, { fullSets });
  await loadBhav(store, rows.slice(8), { fullSets, runId });
  await loadBhav(store, [bhavRow({ symbol: 'SYMBOL29', instrument_full_name: ADDRESS })], {
    runId,
    rejects: [{ position: 4_000, record: { Symbol: 'A', Note: SENTENCE }, problems }],
  });
  const windowId = await newWindow(store, runId, 'failed');
  await store.pool.query('update etl.windows set error = $1 where id = $2', [SENTENCE, windowId]);
  await store.pool.query('update etl.runs set error = $1 where id = $2', [SENTENCE, runId]);
  await store.pool.query(
    `insert into etl.findings ("check", severity, operation, exchange, date, instrument, expected, found)
     values ('ratio_bounds', 'warning', 'GetFinancialRatios', 'NSE', $1, 'SYMBOL10 532540', $2, $3)`,
    [DAY, SENTENCE, ADDRESS],
  );
  return url;
}

test('what commands print for people fits a terminal of 80 columns', async () => {
  const env = {
    DATABASE_URL: `${await filledDatabase()}?application_name=${'a'.repeat(60)}`,
    EOD_BASE_URL: ADDRESS,
    EOD_ACCESS_KEY: 'a key for tests',
    EOD_INSTRUMENTS: 'RELIANCE,TCS,INFY,HDFCBANK,ICICIBANK,KOTAKBANK,AXISBANK,SBIN,BHARTIARTL,ITC',
    EOD_FINDING_SEVERITY: 'row_count=error,previous_close=info,ratio_bounds=off',
  };
  const range = ['--from', '2025-08-01', '--to', DAY];
  const commands = [
    ['status'],
    ['runs'],
    ['runs', '1'],
    ['runs', '2'],
    ['config'],
    ['schedules'],
    ['operations'],
    ...operations.map(({ name }) => ['operations', name]),
    ['state'],
    ['gaps', 'GetBhavCopyCM', ...range, '--all'],
    ['gaps', 'fill', 'GetBhavCopyCM', ...range, '--dry-run'],
    ['backfill', '--all', ...range, '--dry-run'],
    ['nightly', '--dry-run'],
    ['findings', '--resolved'],
    ['withdrawals'],
    ['issues'],
    ['rejects'],
    ['rejects', '1'],
    ['prune', '--dry-run'],
  ];
  const cwd = temporaryFolder();
  const wide: Record<string, string[]> = {};
  for (const args of commands) {
    const { code, stdout, stderr } = await runCli(args, { cwd, env });
    expect(stdout, stderr).not.toBe('');
    expect(code, stderr).toBe(args[0] === 'gaps' && args[1] !== 'fill' ? 1 : 0);
    const lines = wideLines(stdout);
    if (lines.length > 0) wide[args.join(' ')] = lines;
  }
  expect(wide).toEqual({});
});

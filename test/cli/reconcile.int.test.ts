import { expect } from 'vitest';
import { runCli, runJson } from '../support/cli.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const cwd = temporaryFolder();

test('eod reconcile looks for findings, and fails if --fail-on says so; eod findings lists them', async ({
  url,
}) => {
  const options = { cwd, env: { DATABASE_URL: url } };
  const range = ['--from', '2025-09-01', '--to', '2025-09-12'];

  const clean = await runJson<{
    from: string;
    checks: { check: string; open: number }[];
  }>(['reconcile', ...range], options);
  expect(clean.code).toBe(0);
  expect(clean.json.from).toBe('2025-09-01');
  expect(clean.json.checks.every(({ open }) => open === 0)).toBe(true);
  expect((await runCli(['findings'], options)).stdout).toBe('no findings: no prices are loaded\n');

  await query(
    url,
    `insert into market.financial_ratios (exchange, symbol, nature_of_report, variant, as_of_date, period, dividend_yield, first_loaded_at, last_changed_at, revision, run_id, load_id)
     values ('BSE', 'TCS', 'Standalone', 'eod', '2025-09-11', '', 119296.98, now(), now(), 1, 1, 1)`,
  );
  expect((await runCli(['reconcile', ...range], options)).code).toBe(0);
  expect((await runCli(['reconcile', ...range, '--fail-on', 'error'], options)).code).toBe(0);
  const failed = await runCli(['reconcile', ...range, '--fail-on', 'info'], options);
  expect(failed.code).toBe(1);
  expect(failed.stdout).toMatch(/^ratio_bounds +warning +1 +0 +0$/m);

  const listed = await runJson<{ check: string; instrument: string; found: string }[]>(['findings'], options);
  expect(listed.json).toMatchObject([
    {
      check: 'ratio_bounds',
      instrument: 'TCS Standalone eod',
      found: 'dividend yield 119296.98',
    },
  ]);
  expect((await runJson<unknown[]>(['findings', '--severity', 'error'], options)).json).toEqual([]);
  expect((await runCli(['findings', '--check', 'ratio_bounds'], options)).stdout).toContain('119296.98');
});

test('days that were not checked since they were loaded are named', async ({ url }) => {
  const options = { cwd, env: { DATABASE_URL: url } };
  const findings = async () => (await runCli(['findings'], options)).stdout;
  const reconcile = async (day: string) =>
    (await runCli(['reconcile', '--from', day, '--to', day], options)).stdout.replaceAll(/\s+/g, ' ');
  const load = (day: string) =>
    query(
      url,
      `insert into etl.coverage (operation, exchange, day, last_position, last_said) values ('GetBhavCopyCM', 'NSE', '${day}', now(), 'loaded')
         on conflict (operation, exchange, day, instrument, variant) do update set checked_at = clock_timestamp()`,
    );
  await load('2025-09-10');
  await load('2025-09-11');
  expect(await findings()).toContain(
    'no findings, but 2 loaded days were not checked:\neod reconcile --from 2025-09-10 --to 2025-09-11\n',
  );
  expect(await reconcile('2025-09-10')).toContain('1 day with prices: nothing found');
  expect(await findings()).toContain(
    'but 1 loaded day was not checked:\neod reconcile --from 2025-09-11 --to 2025-09-11\n',
  );
  expect(await reconcile('2025-09-12')).toContain('no prices of these days are loaded');
  await reconcile('2025-09-11');
  expect(await findings()).toBe('no findings\n');
  await load('2025-09-10');
  expect(await findings()).toContain('2025-09-10');
});

test.each([
  [['reconcile', '--fail-on', 'warn'], {}, /did you mean warning\?/],
  [['reconcile', '--from', '2025-09-12', '--to', '2025-09-01'], {}, /reversed/],
  [['reconcile', '--to', 'soon'], {}, /"soon" is not a day/],
  [['reconcile'], { EOD_FINDING_SEVERITY: 'row_counts=off' }, /did you mean row_count\?/],
  [['reconcile'], { EOD_FINDING_SEVERITY: 'row_count=fatal' }, /is not check=info, warning, error or off/],
  [['findings', '--check', 'price_odor'], {}, /did you mean price_order\?/],
  [['findings', '--from', '2025-09-02', '--to', '2025-09-01'], {}, /the range is reversed/],
])('%j is refused with what would be right', async (args, env, message) => {
  const { code, stderr } = await runCli(args, { cwd, env });
  expect(stderr).toMatch(message);
  expect(code).toBe(2);
});

import { expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import type { Check } from '../../src/cli/doctor/check.ts';
import { systemClock, today } from '../../src/core/clock.ts';
import { addDays } from '../../src/core/days.ts';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import { catalogue } from '../support/catalogue.ts';
import { runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { openPipeline } from '../support/pipeline.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { serve } from '../support/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DETAILS = ['GetFinancialResults', 'GetSHP', 'GetSHPAdvanced'];

test('a night with every operation of the catalogue loads all of them, and the next requests no detail again', async () => {
  const cwd = temporaryFolder();
  const { url } = await testDatabase();
  const sandbox = await openSandbox({ instrumentsPerExchange: 30 });
  const env = {
    DATABASE_URL: url,
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: 'kiwi',
    EOD_INSTRUMENTS: 'TCS,RELIANCE,ABB',
    EOD_CALLS_PER_HOUR: '100000',
  };
  // Spans of a week reach back no further.
  const before = addDays(today(systemClock, 'Asia/Kolkata'), -6);
  const night = loadCalendar().lastSessions('NSE', before, 1)[0] ?? before;
  const names = catalogue.map(({ name }) => name);
  await runJson(['operations', 'enable', ...names], { cwd, env });
  const { json: first } = await runJson<RunReport>(['nightly', '--date', night], { cwd, env });
  expect(first).toMatchObject({ state: 'completed', rejected: 0 });
  const requested = await query<{ operation: string; loaded: number }>(
    url,
    `select operation, count(*) filter (where state = 'loaded')::int as loaded from etl.windows group by 1`,
  );
  expect(requested.map(({ operation }) => operation)).toEqual(expect.arrayContaining(names));
  const loaded = requested.filter((one) => one.loaded > 0).map(({ operation }) => operation);
  expect(loaded).toEqual(expect.arrayContaining(DETAILS));
  const [deliveries] = await query<{ bse: number; nse: number }>(
    url,
    `select count(*) filter (where exchange = 'BSE')::int as bse, count(*) filter (where exchange = 'NSE')::int as nse
       from market.deliveries`,
  );
  expect(Math.min(deliveries?.bse ?? 0, deliveries?.nse ?? 0)).toBeGreaterThan(0);

  const { json: second } = await runJson<RunReport>(['nightly', '--date', night], { cwd, env });
  expect(second).toMatchObject({ state: 'completed', rejected: 0 });
  const [again] = await query<{ details: number }>(
    url,
    `select coalesce(sum(requests), 0)::int as details from etl.windows
      where run_id = ${second.runId} and operation in (${DETAILS.map((name) => `'${name}'`).join(', ')})`,
  );
  expect(again).toEqual({ details: 0 });
  // What the first night requested has no new rows. The second one goes back from days that are loaded by now, further.
  const repeated = await query<{ operation: string; inserted: number }>(
    url,
    `select operation, inserted::int from etl.windows as w where run_id = ${second.runId} and requests > 0 and exists (
       select from etl.windows as f where f.run_id = ${first.runId}
          and (f.operation, f.exchange, f.variant, f.from_date, f.to_date, f.instruments, f.params) =
              (w.operation, w.exchange, w.variant, w.from_date, w.to_date, w.instruments, w.params))`,
  );
  expect(repeated.length).toBeGreaterThan(names.length / 2);
  expect(repeated.filter(({ inserted }) => inserted > 0)).toEqual([]);
  // A field without a column would be one that a declaration should read.
  const unread = "select operation, warnings from etl.windows where warnings::text like '%no column reads%'";
  expect(await query(url, unread)).toEqual([]);

  // What shows, checks and reveals what is stored knows all of it.
  const { json: doctor } = await runJson<{ readonly checks: readonly Check[] }>(['doctor'], { cwd, env });
  expect(doctor.checks.filter((check) => check.name === 'operations')).toMatchObject([{ state: 'ok' }]);
  const [deals] = await query<{ rows: number }>(url, 'select count(*)::int as rows from market.bulk_deals');
  const { json: file } = await runJson(['export', 'bulk_deals', '--out', 'deals.csv'], { cwd, env });
  expect(deals?.rows).toBeGreaterThan(0);
  expect(file).toMatchObject({ table: 'market.bulk_deals', rows: deals?.rows });
  const prune = await runJson(['prune', '--days', '0', '--dry-run'], { cwd, env });
  expect(prune.json).toMatchObject({ isDryRun: true, responses: expect.any(Number) });
  const { json: replayed } = await runJson<RunReport>(['replay', 'GetBulkDeals'], { cwd, env });
  expect(replayed).toMatchObject({ state: 'completed', inserted: 0, updated: 0, withdrawn: 0 });
  expect(replayed.unchanged).toBeGreaterThan(0);
  const verified = await runJson(['verify'], { cwd, env });
  expect(verified.json).toMatchObject({ isIntact: true, isAsNoted: true });

  const context = await openPipeline({ databaseUrl: url, sourceUrl: sandbox.url });
  const { url: pages } = await serve(context, ['web', 'scheduler']);
  const textOf = async (path: string) => {
    const response = await fetch(`${pages}${path}`);
    expect({ path, status: response.status }).toEqual({ path, status: 200 });
    return response.text();
  };
  for (const path of ['/', '/metrics']) expect(await textOf(path)).toContain('GetBulkDeals');
  expect(await textOf('/issues')).toContain('Nothing needs a person.');
});

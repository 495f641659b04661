import { expect, test } from 'vitest';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import { catalogue } from '../support/catalogue.ts';
import { runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DETAILS = ['GetFinancialResults', 'GetSHP', 'GetSHPAdvanced'];

test('a night with every operation of the catalogue loads all of them, and the next asks no detail again', async () => {
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
  const names = catalogue.map(({ name }) => name);
  await runJson(['operations', 'enable', ...names], { cwd, env });
  const { json: first } = await runJson<RunReport>(['nightly', '--date', '2026-11-19'], { cwd, env });
  expect(first).toMatchObject({ state: 'completed', rejected: 0 });
  const asked = await query<{ operation: string; loaded: number }>(
    url,
    `select operation, count(*) filter (where state = 'loaded')::int as loaded from etl.windows group by 1`,
  );
  expect(asked.map(({ operation }) => operation)).toEqual(expect.arrayContaining(names));
  const loaded = asked.filter((one) => one.loaded > 0).map(({ operation }) => operation);
  expect(loaded).toEqual(expect.arrayContaining(DETAILS));
  const [deliveries] = await query<{ bse: number; nse: number }>(
    url,
    `select count(*) filter (where exchange = 'BSE')::int as bse, count(*) filter (where exchange = 'NSE')::int as nse
       from market.deliveries`,
  );
  expect(Math.min(deliveries?.bse ?? 0, deliveries?.nse ?? 0)).toBeGreaterThan(0);

  const { json: second } = await runJson<RunReport>(['nightly', '--date', '2026-11-19'], { cwd, env });
  expect(second).toMatchObject({ state: 'completed', rejected: 0 });
  const [again] = await query<{ details: number }>(
    url,
    `select coalesce(sum(requests), 0)::int as details from etl.windows
      where run_id = ${second.runId} and operation in (${DETAILS.map((name) => `'${name}'`).join(', ')})`,
  );
  expect(again).toEqual({ details: 0 });
  expect(await query(url, "select message from etl.alerts where kind = 'schema_changed'")).toEqual([]);
  // A field without a column would be one that a declaration should read.
  const unread = 'select operation, field from etl.source_fields where mapped_column is null order by 1, 2';
  expect(await query(url, unread)).toEqual([]);
});

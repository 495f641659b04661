import { beforeAll, expect, test } from 'vitest';
import type { Forecast } from '../../src/jobs/runs/forecast.ts';
import { operations } from '../../src/operations/registry.ts';
import { runCli, runJson, unwrapped } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// Every operation is requested by the settings; no call is made.

const cwd = temporaryFolder();
let DATABASE_URL: string;
const optionsFor = (limit: number, more: Readonly<Record<string, string>> = {}) => ({
  cwd,
  env: {
    DATABASE_URL,
    EOD_ACCESS_KEY: 'kiwi',
    EOD_OPERATIONS: 'default,GetBhavCopyFO,GetIndexDetail',
    EOD_INSTRUMENT_LIMIT: String(limit),
    ...more,
  },
});
const plan = async (limit: number, more?: Readonly<Record<string, string>>) => {
  const { code, json } = await runJson<Forecast>(['nightly', '--dry-run'], optionsFor(limit, more));
  expect(code).toBe(0);
  return json;
};
const names = (of: Forecast['operations']) => of.map(({ operation }) => operation);

beforeAll(async () => {
  DATABASE_URL = (await testDatabase()).url;
  await runJson(['migrate'], optionsFor(500));
});

test('the plan of a night counts every operation, its calls, and the hours that these take', async () => {
  const nightPlan = await plan(5_000, { EOD_CALLS_PER_HOUR: '450' });
  for (const { name } of operations) expect(names(nightPlan.operations)).toContain(name);
  expect(nightPlan.requests).toBe(nightPlan.operations.reduce((sum, { requests }) => sum + requests, 0));
  expect(nightPlan.hours).toBe(Math.ceil(nightPlan.requests / 450));
  const { stdout } = await runCli(['nightly', '--dry-run'], optionsFor(5_000, { EOD_CALLS_PER_HOUR: '450' }));
  expect(unwrapped(stdout)).toContain(`done in ${nightPlan.hours} clock hours, by `);
});

test('the doctor says the same of an ordinary night', async () => {
  const { json } = await runJson<{ checks: { name: string; state: string; found: string }[] }>(
    ['doctor'],
    optionsFor(5_000, { EOD_CALLS_PER_HOUR: '450' }),
  );
  const night = json.checks.find(({ name }) => name === 'night');
  expect(night?.state).toBe('failed');
  expect(night?.found).toMatch(/the next one begins before it has ended$/);
});

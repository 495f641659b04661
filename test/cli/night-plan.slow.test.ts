import { beforeAll, expect, test } from 'vitest';
import type { Forecast } from '../../src/jobs/runs/forecast.ts';
import { operations } from '../../src/operations/registry.ts';
import { runCli, runJson } from '../support/cli.ts';
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

/** Nights that begin a minute ago, so that a whole day is left until the next one, whenever the test runs. */
function justBegun(): Readonly<Record<string, string>> {
  const ago = new Date(Date.now() - 60_000);
  return {
    EOD_NIGHT_TIMES: ago.toLocaleTimeString('en-GB', { timeZone: 'Asia/Kolkata', timeStyle: 'short' }),
  };
}

test('a night with every operation fits, for 500 instruments', async () => {
  const begun = justBegun();
  const found = await plan(500, begun);
  expect(found).toMatchObject({ isDoneInTime: true, leftOver: 0, nextNightAt: expect.any(String) });
  for (const { name } of operations) expect(names(found.operations)).toContain(name);
  const { stdout } = await runCli(['nightly', '--dry-run'], optionsFor(500, begun));
  expect(stdout).not.toContain('do not fit');
});

test('what does not fit is named, and is never a price or a list', async () => {
  const found = await plan(5_000, { EOD_CALLS_PER_HOUR: '450' });
  const late = found.operations.filter((one) => !one.isDoneInTime);
  expect(found.isDoneInTime).toBe(false);
  expect(found.leftOver).toBe(late.reduce((sum, { leftOver }) => sum + leftOver, 0));
  expect(names(late)).toContain('GetFinancialRatios');
  expect(names(late).every((name) => /^Get(FinRatio|FinancialRatios)/.test(name))).toBe(true);
  for (const { finishAt, leftOver, requests } of late) {
    expect(leftOver).toBeLessThanOrEqual(requests);
    expect(finishAt).not.toBeNull();
    expect(String(finishAt) > String(found.nextNightAt)).toBe(true);
  }
  const { code } = await runCli(['nightly', '--dry-run'], optionsFor(5_000));
  expect(code).toBe(0);
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

import pg from 'pg';
import { beforeAll, expect, test } from 'vitest';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { runCli, runJson } from '../support/cli.ts';
import { closeAfterFile } from '../support/closing.ts';
import { testDatabase } from '../support/database.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const cwd = temporaryFolder();
const DAY = '2025-02-27';
let env: Record<string, string>;

/** What listeners received, in the order in which it came. */
const notifications: { readonly state: number; readonly tables: readonly unknown[] }[] = [];

beforeAll(async () => {
  const { url } = await testDatabase();
  const sandbox = await openSandbox();
  env = { DATABASE_URL: url, EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: 'kiwi', EOD_CONCURRENCY: '1' };
  const listener = new pg.Client({ connectionString: url });
  await listener.connect();
  closeAfterFile(() => listener.end());
  listener.on('notification', ({ payload = '' }) => notifications.push(JSON.parse(payload)));
  await listener.query('listen eod');
});

const load = async (...flags: string[]) => {
  const range = ['--from', DAY, '--to', DAY, '--exchange', 'NSE'];
  return (await runJson<RunReport>(['backfill', 'GetCircuitBreakers', ...range, ...flags], { cwd, env }))
    .json;
};

test('each commit of a load is reported, with its state, tables and days', async () => {
  const { runId } = await load();
  await waitFor(() => notifications.length === 1);
  expect(notifications[0]).toEqual({
    state: 1,
    run: runId,
    operation: 'GetCircuitBreakers',
    exchange: 'NSE',
    tables: [{ table: 'circuit_breakers', from: DAY, to: DAY }],
  });
  // The same response again is a load, and a state, that changes nothing.
  await load('--force');
  await waitFor(() => notifications.length === 2);
  expect(notifications[1]).toMatchObject({ state: 2, tables: [] });
});

test('wait --night names what is missing, and ends with 0 once it is there', async () => {
  const nseOnly = { ...env, EOD_EXCHANGES: 'NSE', EOD_OPERATION_EXCHANGES: '' };
  await runJson(['migrate'], { cwd, env: nseOnly });
  const late = await runCli(['wait', '--night', DAY, '--timeout', '0'], { cwd, env: nseOnly });
  expect(late.code).toBe(1);
  expect(late.stdout).toContain(`the night of ${DAY} is not complete`);
  expect(late.stdout).toContain(`Prices, bhavcopy_cm NSE ${DAY}: not requested yet`);
  const waiting = runCli(['wait', '--night', DAY, '--timeout', '60s'], { cwd, env: nseOnly });
  await runJson(['backfill', '--all', '--from', DAY, '--to', DAY], { cwd, env: nseOnly });
  expect(await waiting).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^the night of 2025-02-27 is complete; the tables have state \d+\n$/),
  });
  const { json } = await runJson(['wait', '--night', DAY], { cwd, env: nseOnly });
  expect(json).toEqual({
    isThere: true,
    state: expect.any(Number),
    dueSessions: expect.any(Number),
    missing: [],
  });
});

test('wait --night of a holiday is over at once, because nothing becomes due', async () => {
  const nseOnly = { ...env, EOD_EXCHANGES: 'NSE', EOD_OPERATION_EXCHANGES: '' };
  await runJson(['migrate'], { cwd, env: nseOnly });
  const holiday = await runCli(['wait', '--night', '2025-02-26'], { cwd, env: nseOnly });
  expect(holiday).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^nothing was due on 2025-02-26; the tables have state \d+\n$/),
  });
});

test.each([
  [[], 'give the day of the night: --night 2025-02-27, today or yesterday'],
  [['--night', DAY, '--timeout', '2 days'], '--timeout: "2 days" is not a time such as 90s, 30m or 2h'],
  [['--night', DAY, '--timeout', '1.5h'], '--timeout: "1.5h" is not a time such as 90s, 30m or 2h'],
  [['--night', '2025-13-01'], '--night'],
  [['--night', '2099-01-02'], '--night: 2099-01-02 is in the future'],
])('eod wait %j is a mistake', async (flags, message) => {
  const { code, stderr } = await runCli(['wait', ...flags], { cwd, env });
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
});

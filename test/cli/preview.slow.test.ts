import { expect } from 'vitest';
import { exampleDays } from '../../src/core/clock.ts';
import type { Status } from '../../src/jobs/runs/read-status.ts';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { runCli, runJson, unwrapped } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { openSandbox } from '../support/sandbox.ts';
import { bhavFolder, FOLDER_DAY } from './bhav-folder.ts';
import { ARGS, contents, cwd, settings } from './preview-support.ts';
import { test } from './support.ts';

test('an older answer than the stored one is stale', async ({ url }) => {
  const market = { instrumentsPerExchange: 30 };
  const range = ['--from', '2025-09-01', '--to', FOLDER_DAY];
  const args = ['backfill', 'GetBhavCopyCM', ...range, '--exchange', 'NSE'];
  const newer = await runJson<RunReport>(args, settings(url, await openSandbox({ ...market, revision: 2 })));
  const before = await contents(url);
  const older = await openSandbox(market);
  const { json } = await runJson<RunReport>([...args, '--force', '--preview'], settings(url, older));
  expect(json.stale).toBeGreaterThan(0);
  expect(json).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0, preview: [] });
  expect(json.stale + json.unchanged).toBe(newer.json.inserted);
  expect(await contents(url)).toEqual(before);
});

test('an answer that lacks too many rows is suspicious: told, but not held against the operation', async () => {
  const { url } = await testDatabase();
  const load = await runJson<RunReport>(ARGS, settings(url, await openSandbox({ dataDir: bhavFolder() })));
  expect(load.json.inserted).toBe(200);
  const before = await contents(url);
  const short = settings(url, await openSandbox({ dataDir: bhavFolder({ lessAtEnd: 11 }) }));
  const reason = expect.stringMatching(/^11 of 100 rows of market\.bhavcopy_cm were not listed any more/);
  const { code, json } = await runJson<RunReport>([...ARGS, '--force', '--preview'], short);
  expect(code).toBe(0);
  expect(json).toMatchObject({ withdrawn: 0, unchanged: 178 });
  expect(json.suspicious).toMatchObject([
    { operation: 'GetBhavCopyCM', exchange: 'BSE', from: FOLDER_DAY, to: FOLDER_DAY, reason },
    { operation: 'GetBhavCopyCM', exchange: 'NSE', from: FOLDER_DAY, to: FOLDER_DAY, reason },
  ]);
  const human = await runCli(['run', '2'], short);
  expect(unwrapped(human.stdout)).toMatch(
    /^suspicious: GetBhavCopyCM NSE 2025-09-09: 11 of 100 rows .*WITHDRAW_SHARE/m,
  );
  const runs = await runCli(['runs'], short);
  expect(runs.stdout).toMatch(/^ *2 +preview .* 2 of \d+ suspicious$/m);
  const status = await runJson<Status>(['status'], short);
  expect(status.json.operations.map(({ suspiciousWindows }) => suspiciousWindows)).toEqual(
    status.json.operations.map(() => 0),
  );
  expect(await contents(url)).toEqual(before);
});

test('a preview that fails, or is refused for good, leaves the coverage as it is', async ({ url }) => {
  const market = { instrumentsPerExchange: 30 };
  // Among so few companies no series changes: the days are complete without a record.
  const args = ['backfill', 'GetSeriesChange', '--from', '2025-08-25', '--to', FOLDER_DAY];
  const load = await runJson<RunReport>(args, settings(url, await openSandbox(market)));
  expect(load.json).toMatchObject({ state: 'completed', fetched: 0 });
  const before = await contents(url);
  for (const fault of [
    { kind: 'status', value: '404' },
    { kind: 'diagnostic', value: 'Function not enabled.' },
  ] as const) {
    const broken = await openSandbox({ ...market, behaviour: { faults: [fault] } });
    const { code, json } = await runJson<RunReport>([...args, '--force', '--preview'], settings(url, broken));
    expect([code, json.state]).toEqual([1, 'failed']);
    expect(await contents(url)).toEqual(before);
  }
});

test('every operation can be previewed, before and after it is loaded', async ({ url }) => {
  const few = (source: Sandbox) => {
    const { env } = settings(url, source);
    return { cwd, env: { ...env, EOD_INSTRUMENT_LIMIT: '1', EOD_CONCURRENCY: '4' } };
  };
  const { from, to } = exampleDays();
  const args = ['backfill', '--all', '--from', from, '--to', to];
  const first = few(await openSandbox({ instrumentsPerExchange: 20 }));
  await runCli(['gaps', '--from', from, '--to', to], first);
  const empty = await contents(url);
  const before = await runJson<RunReport>([...args, '--preview'], first);
  expect(before.json).toMatchObject({ state: 'completed', failures: [] });
  expect(await contents(url)).toEqual(empty);
  expect((await runJson<RunReport>(args, first)).json).toMatchObject({ state: 'completed' });
  const loaded = await contents(url);
  const grown = few(await openSandbox({ instrumentsPerExchange: 22 }));
  const after = await runJson<RunReport>([...args, '--preview', '--force'], grown);
  expect(after.json).toMatchObject({ state: 'completed', failures: [] });
  expect(after.json.inserted).toBeGreaterThan(0);
  expect(await contents(url)).toEqual(loaded);
});

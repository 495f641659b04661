import { expect, test } from 'vitest';
import type { Behaviour } from '../../src/sandbox/index.ts';
import { startCuttingProxy } from '../support/chaos/cutting-proxy.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { isSlowLayer } from '../support/layer.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const DAYS = ['--from', '2025-09-08', '--to', '2025-09-10', '--exchange', 'NSE'];
const cwd = temporaryFolder();

async function openSource(behaviour: Partial<Behaviour> = {}) {
  const clock = { now: () => Date.parse('2025-09-12T22:00:00+05:30') };
  const source = await openSandbox({ clock, instrumentsPerExchange: 20, behaviour });
  const settings = {
    EOD_BASE_URL: source.url,
    EOD_ACCESS_KEY: 'key',
    EOD_NOT_READY_WAIT_MS: '10',
    EOD_BACKOFF_MS: '1',
    DATABASE_URL: (await testDatabase()).url,
  };
  return { source, settings };
}

/** The log among what a command printed to stderr. */
const logLines = (stderr: string) =>
  stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test('a window that fails is one line that names it; one that is not ready yet is none', async () => {
  const faults = [{ kind: 'status', operation: 'GetCircuitBreakers' }] as const;
  const { settings } = await openSource({ notReady: 3, faults });
  const { code, stderr } = await runCli(['backfill', 'GetBhavCopyCM', 'GetCircuitBreakers', ...DAYS], {
    cwd,
    env: { ...settings, EOD_ATTEMPTS: '1' },
  });
  expect(code).toBe(1);
  const [alert, ...lines] = logLines(stderr).reverse();
  expect(alert).toMatchObject({ alert: 'run_failed' });
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    expect(line).toMatchObject({
      level: 'error',
      msg: 'window did not load',
      operation: 'GetCircuitBreakers',
      exchange: 'NSE',
      from: expect.stringMatching(/^2025-09-/),
      to: expect.stringMatching(/^2025-09-/),
      err: { kind: 'http_status' },
    });
  }
});

test('at the level info each window is one line with its counts and times', async () => {
  const { settings } = await openSource();
  const env = { ...settings, EOD_LOG_LEVEL: 'info' };
  const { code, stderr } = await runCli(['backfill', 'GetBhavCopyCM', ...DAYS], { cwd, env });
  expect(code).toBe(0);
  const windows = logLines(stderr).filter((line) => 'windowId' in line);
  expect(windows.map(({ from }) => from).toSorted()).toEqual(['2025-09-08', '2025-09-09', '2025-09-10']);
  for (const line of windows) {
    expect(line).toMatchObject({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      msg: 'window loaded',
      runId: 1,
      operation: 'GetBhavCopyCM',
      exchange: 'NSE',
      attempt: 1,
      state: 'loaded',
      counts: { fetched: expect.any(Number), inserted: expect.any(Number), rejected: 0 },
      bytes: expect.any(Number),
      ms: Object.fromEntries(['claim', 'fetch', 'read', 'load'].map((step) => [step, expect.any(Number)])),
    });
  }
});

test.runIf(isSlowLayer)('a Postgres that becomes unreachable is a line or two, and no SQL', async () => {
  const { source, settings } = await openSource({ delayMs: 100 });
  const proxy = await startCuttingProxy(settings.DATABASE_URL);
  const env = { ...settings, EOD_CONCURRENCY: '8' };
  await runJson(['backfill', '--all', ...DAYS, '--detach'], { cwd, env });
  const { stderr, signal, ended } = startCli(['up', '--roles', 'worker'], {
    cwd,
    env: { ...env, DATABASE_URL: proxy.url, EOD_HTTP_PORT: '0' },
  });
  await waitFor(() => source.stats().requests > 5, { timeoutMs: 20_000 });
  proxy.setAway(true);
  await waitFor(() => logLines(stderr()).length > 0, { timeoutMs: 20_000 });
  // Workers, the queue and timers meet it again and again.
  await waitFor(() => proxy.refused() > 20, { timeoutMs: 30_000 });
  proxy.setAway(false);
  const before = source.stats().requests;
  await waitFor(() => source.stats().requests > before, { timeoutMs: 30_000 });
  signal('SIGTERM');
  await ended;
  await proxy.close();
  expect(logLines(stderr()).length).toBeLessThanOrEqual(3);
  expect(stderr()).not.toMatch(/select |update |insert |\bat file:|"stack"/);
});

import { renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readStatus } from '../../src/jobs/runs/read-status.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { reportRun } from '../../src/state/runs/reports.ts';
import { runCli } from '../support/cli.ts';
import { ended } from '../support/pipeline.ts';
import { serve } from '../support/serve.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebhook } from '../support/webhook.ts';
import { openSetup, type Setup, start, windowsOf } from './support.ts';

const REQUESTED = { from: '2025-08-01', to: '2025-09-10', operations: ['GetBhavCopyCM'], exchanges: ['NSE'] };
const cwd = temporaryFolder();

/**
 * Fills the disk for a table: the file of its empty partition becomes /dev/full, where each write fails with ENOSPC, as
 * on a full file system. That needs no right to mount one.
 *
 * @returns frees the disk again.
 */
async function fillDisk({ db }: Setup, table: string): Promise<() => void> {
  await db.pool.query('select etl.ensure_year_partition($1, 2025)', [table]);
  const { rows } = await db.pool.query<{ folder: string; file: string }>(
    "select current_setting('data_directory') as folder, pg_relation_filepath($1) as file",
    [`market_partitions.${table}_2025`],
  );
  const [partition] = rows;
  if (partition === undefined) throw new Error(`${table} has no partition`);
  const file = join(partition.folder, partition.file);
  // Everything about the partition is written before its file is removed.
  await db.pool.query('checkpoint');
  renameSync(file, `${file}.empty`);
  symlinkSync('/dev/full', file);
  return () => renameSync(`${file}.empty`, file);
}

/** The response of a process to GET /readyz, and its number of waiting responses in GET /metrics. */
async function health(url: string) {
  const ready = await fetch(`${url}/readyz`);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const waiting = /^eod_responses_waiting (\d+)$/m.exec(metrics)?.[1];
  return { status: ready.status, facts: (await ready.json()) as object, waiting: Number(waiting) };
}

test('while the disk is full no call is made beyond those in flight; alert, status and /readyz say why; no call is made twice', async () => {
  const webhook = await startWebhook();
  const setup = await openSetup({
    settings: {
      EOD_ALERT_WEBHOOK: webhook.url,
      EOD_CONCURRENCY: '3',
    },
  });
  const server = await serve(setup, ['worker']);
  const free = await fillDisk(setup, 'bhavcopy_cm');
  const runId = await start(setup, REQUESTED);
  await setup.work();
  await waitFor(() => webhook.alerts.length > 0, { what: 'the alert' });
  expect(webhook.alerts).toMatchObject([
    { kind: 'cannot_store', message: expect.stringMatching(/^Postgres cannot store responses .*53100/) },
  ]);

  const { requests } = setup.sandbox.stats();
  expect(requests).toBeGreaterThan(0);
  expect(requests).toBeLessThanOrEqual(3);
  const problem = expect.stringMatching(
    /^Postgres: could not extend file .*No space left on device \(53100\)$/,
  );
  const { workers } = await readStatus(setup);
  expect(workers).toMatchObject({ cannotStore: problem, cannotStoreSince: expect.stringMatching(/Z$/) });
  const windows = await windowsOf(setup, runId);
  expect(windows.filter(({ error }) => error !== null)).toHaveLength(requests);
  expect(await health(server.url)).toMatchObject({
    status: 503,
    facts: { isReady: false, database: 'ok', storage: 'refuses', waitingResponses: requests },
    waiting: requests,
  });
  const env = { DATABASE_URL: setup.db.url, EOD_QUEUE_PREFIX: setup.config.EOD_QUEUE_PREFIX };
  const cannot = /responses cannot be stored, and no call is made until they can: .*53100/;
  const { stdout } = await runCli(['status'], { cwd, env });
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(cannot);

  free();
  const report = await ended(setup, runId);
  expect(report).toMatchObject({
    state: 'completed',
    failures: [],
    windows: { loaded: report.windows.total },
  });
  expect(report.requests).toBe(report.windows.total);
  expect(setup.sandbox.stats().requests).toBe(report.windows.total);
  expect((await windowsOf(setup, runId)).filter(({ error }) => error !== null)).toEqual([]);
  await waitFor(async () => (await readStatus(setup)).workers.cannotStore === null, {
    what: 'the end of it',
  });
  expect(await health(server.url)).toMatchObject({ status: 200, facts: { storage: 'ok' }, waiting: 0 });
});

test('a response that is kept is given up when its worker stops, and its window is requested again', async () => {
  const setup = await openSetup({ settings: { EOD_CONCURRENCY: '1' } });
  const free = await fillDisk(setup, 'bhavcopy_cm');
  const runId = await start(setup, { ...REQUESTED, from: REQUESTED.to });
  const worker = await startWorker(setup);
  await waitFor(async () => (await readStatus(setup)).workers.cannotStore !== null, { what: 'a refusal' });
  await worker.stop(100);
  expect(await windowsOf(setup, runId)).toMatchObject([{ state: 'pending', requests: 1 }]);
  free();
  await setup.work();
  expect(await ended(setup, runId)).toMatchObject({ state: 'completed', windows: { loaded: 1 } });
});

test('a server that is read-only after a failover is waited for, and the response in hand is stored then', async () => {
  const setup = await openSetup({
    backend: 'redis',
    settings: { EOD_CONCURRENCY: '2' },
    behaviour: { delayMs: 500 },
  });
  const name = new URL(setup.db.url).pathname.slice(1);
  const setReadOnly = (on: boolean) =>
    execute(
      setup.db.url,
      `set transaction_read_only = off; alter database ${name} set default_transaction_read_only = ${on};
       select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
    );
  const status = () => runCli(['status'], { cwd, env: { DATABASE_URL: setup.db.url } });
  // The first command stores the calendar.
  expect((await status()).stdout).not.toContain('responses cannot be stored');
  const runId = await start(setup, { ...REQUESTED, from: '2025-09-04' });
  await setup.work();
  await waitFor(() => setup.sandbox.stats().requests > 0, { what: 'a call' });
  await setReadOnly(true);
  expect((await status()).stdout).toMatch(/^responses cannot be stored, .*: Postgres:/m);
  const { requests } = setup.sandbox.stats();
  const report = await reportRun(setup, runId);
  expect(report.windows.failed).toBe(0);
  await setReadOnly(false);
  expect(await ended(setup, runId)).toMatchObject({
    state: 'completed',
    windows: { loaded: report.windows.total, failed: 0 },
  });
  expect(requests).toBeLessThanOrEqual(2);
  expect(setup.sandbox.stats().requests).toBe(report.windows.total);
});

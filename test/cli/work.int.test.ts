import { beforeAll, describe, expect } from 'vitest';
import type { Forecast } from '../../src/jobs/runs/forecast.ts';
import type { Status } from '../../src/jobs/runs/read-status.ts';
import { EXAMPLE_KEY, type Sandbox } from '../../src/sandbox/index.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { typeOnTerminal } from '../support/eod.ts';
import { startServer } from '../support/http-server.ts';
import { isSlowLayer } from '../support/layer.ts';
import { query, withClient } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { test } from './support.ts';

const cwd = temporaryFolder();
const RANGE = ['--from', '2025-02-20', '--to', '2025-02-27'];
/** What is in the table, revision counters included. */
const CONTENT = `select count(*)::int as rows, sum(revision)::int as revisions, sum(turnover)::text as turnover,
  sum(traded_quantity)::text as quantity from market.bhavcopy_cm`;

let sandbox: Sandbox;
let slow: Sandbox;
beforeAll(async () => {
  sandbox = await openSandbox({ instrumentsPerExchange: 60 });
  slow = await openSandbox({ instrumentsPerExchange: 60, behaviour: { delayMs: 60 } });
});

const environment = (databaseUrl: string, source = sandbox) => ({
  DATABASE_URL: databaseUrl,
  EOD_BASE_URL: source.url,
  EOD_ACCESS_KEY: 'kiwi-4711',
  EOD_HTTP_PORT: '0',
  EOD_INSTRUMENT_LIMIT: '2',
});

function sumOf(report: RunReport): number {
  const { inserted, updated, unchanged, stale, duplicate, rejected } = report;
  return inserted + updated + unchanged + stale + duplicate + rejected;
}

describe('backfill', () => {
  test.runIf(isSlowLayer)(
    'names empty trading days that should have data, and not those that may be empty',
    async () => {
      const nothing = await startServer((_, response) =>
        response.setHeader('content-type', 'application/json').end('[]'),
      );
      const { url } = await testDatabase();
      const options = { cwd, env: { ...environment(url), EOD_BASE_URL: nothing } };
      const ask = (operation: string) =>
        runCli(
          ['backfill', operation, '--exchange', operation.endsWith('CM') ? 'NSE' : 'BSE', ...RANGE],
          options,
        );
      const bhavCopy = await ask('GetBhavCopyCM');
      expect(bhavCopy.code).toBe(1);
      expect(bhavCopy.stdout.replaceAll(/\s+/g, ' ')).toContain(
        'Prices, bhavcopy_cm NSE: empty on 5 trading days that should have data (2025-02-20 to 2025-02-27)',
      );
      expect(bhavCopy.stderr).toContain('empty on 5 trading days that should have data');
      const pledge = await ask('GetConsolidatedPledge');
      expect(pledge.code).toBe(0);
      expect(pledge.stdout).not.toContain('should have data');
      // It may be empty, but that nothing came is worth saying.
      expect(pledge.stdout.replaceAll(/\s+/g, ' ')).toMatch(
        /^run 2 \(.*\): completed without records after .* no records: Promoter pledges, consolidated_pledge BSE, in \d+ windows?/,
      );
      expect((await runCli(['runs'], options)).stdout).toMatch(/^ +2 +backfill +no records /m);
      const { json } = await runJson<RunReport>(['runs', '1'], options);
      expect(json.withoutRecords).toEqual([
        { operation: 'GetBhavCopyCM', exchange: 'NSE', windows: expect.any(Number) },
      ]);
      expect(json.emptySessions).toEqual([
        {
          operation: 'GetBhavCopyCM',
          exchange: 'NSE',
          from: '2025-02-20',
          to: '2025-02-27',
          sessions: 5,
          notPublished: 0,
        },
      ]);

      // Once the source has these days, the later run has them, and the earlier one lacks nothing any more.
      const filled = await runJson<RunReport>(['backfill', 'GetBhavCopyCM', '--exchange', 'NSE', ...RANGE], {
        cwd,
        env: environment(url),
      });
      expect(filled).toMatchObject({ code: 0, json: { emptySessions: [], withoutRecords: [] } });
      expect((await runJson<RunReport>(['runs', '1'], options)).json.emptySessions).toEqual([]);
    },
  );

  test.runIf(isSlowLayer)(
    'plans, loads, skips what is loaded, and requests again with --force',
    async ({ url }) => {
      const options = { cwd, env: environment(url) };
      const args = ['backfill', 'getbhavcopycm', 'GetTotalTradeHighlights', 'GetFinRatioEOD', ...RANGE];

      const plan = await runJson<Forecast>([...args, '--dry-run'], options);
      // 2025-02-26 was a holiday: five trading days of BSE and NSE, two ranges, 2 instruments x 2 natures x 5 days.
      expect(plan.json).toMatchObject({ requests: 31, windows: 31, skipped: 0, isEstimated: true });
      expect(await query(url, 'select from etl.runs')).toEqual([]);

      const first = await runJson<RunReport>(args, options);
      expect(first.code).toBe(0);
      expect(first.json).toMatchObject({
        kind: 'backfill',
        state: 'completed',
        from: '2025-02-20',
        to: '2025-02-27',
      });
      expect(first.json.inserted).toBeGreaterThan(500);
      expect(first.json.fetched).toBe(sumOf(first.json));
      expect(first.json.operations.map(({ operation, exchange }) => `${operation} ${exchange}`)).toEqual([
        'GetBhavCopyCM BSE',
        'GetBhavCopyCM NSE',
        'GetTotalTradeHighlights BSE',
        'GetFinRatioEOD BSE',
      ]);

      const second = await runJson<RunReport>(args, options);
      const { total, skipped } = second.json.windows;
      expect(second.json).toMatchObject({ state: 'completed', requests: 0, fetched: 0 });
      expect(skipped).toBe(total);
      expect(second.json.skips).toEqual([{ reason: 'loaded already', windows: total }]);
      expect(second.code).toBe(0);

      const forced = await runJson<RunReport>([...args, '--force'], options);
      expect(forced.json).toMatchObject({ inserted: 0, updated: 0, unchanged: first.json.fetched });
      expect(forced.code).toBe(0);

      const runs = await runJson<RunReport[]>(['runs'], options);
      expect(runs.json.map(({ runId }) => runId)).toEqual([3, 2, 1]);
      const run = await runJson<RunReport>(['runs', '1'], options);
      expect(run.json).toEqual(first.json);
      const status = await runJson<Status>(['status'], options);
      expect(status.json).toMatchObject({ queue: 'postgres', openRuns: [] });
      expect(status.json.operations.find(({ operation }) => operation === 'GetBhavCopyCM')).toMatchObject({
        lastLoaded: '2025-02-27',
        openRejects: 0,
        lastRun: 3,
      });
    },
  );

  test('prints tables on stdout, the rest on stderr, and colours neither', async ({ url }) => {
    const { stdout, stderr } = await runCli(['backfill', 'GetSeriesChange', ...RANGE], {
      cwd,
      env: environment(url),
    });
    expect(stdout).toMatch(/^run 1 \(backfill, 2025-02-20 to 2025-02-27\): completed/);
    expect(stdout).toMatch(/^data set +exchange +windows/m);
    expect(stdout + stderr).not.toContain('\u001b');
  });

  const nobody = {
    EOD_BASE_URL: 'http://127.0.0.1:1',
    EOD_OUTAGE_PATIENCE_MS: '1000',
    EOD_BACKOFF_MS: '10',
  };

  test('windows that fail end with exit code 1 and are named', async ({ url }) => {
    const env = { ...environment(url), ...nobody };
    const { code, stderr } = await runCli(['backfill', 'GetSeriesChange', ...RANGE], { cwd, env });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /failed: Series changes, series_changes NSE 2025-02-20 to 2025-02-27: .*cannot be reached/,
    );
    expect(stderr).not.toContain('kiwi');
  });

  test.runIf(isSlowLayer)(
    'a failed run that is resumed during the outage fails again, after half a minute',
    async ({ url }) => {
      const env = { ...environment(url), ...nobody };
      await runCli(['backfill', 'GetSeriesChange', ...RANGE], { cwd, env });
      const { code, json, stderr } = await runJson<RunReport>(['runs', 'resume', '1'], { cwd, env });
      expect(code).toBe(1);
      expect(json).toMatchObject({ state: 'failed', windows: { failed: 1 } });
      expect(json.failures).toHaveLength(1);
      expect(stderr).not.toContain('kiwi');
    },
  );

  test('of days that are too old for the source nothing is requested again: only an import can fill them', async ({
    url,
  }) => {
    const young = await openSandbox({ instrumentsPerExchange: 10, behaviour: { historyDays: 30 } });
    const { code, stderr } = await runCli(['backfill', 'GetSeriesChange', ...RANGE], {
      cwd,
      env: environment(url, young),
    });
    expect(code).toBe(1);
    expect(stderr).toContain('days that are too old for the source can only be imported ("eod import")');
    expect(stderr).not.toContain('runs resume');
    const web = startCli(['web'], { cwd, env: environment(url, young) });
    const [, at = ''] = await web.output(/(http:\/\/127\.0\.0\.1:\d+)/);
    const page = await (await fetch(`${at}/runs/1`)).text();
    expect(page).toContain('allowed range');
    expect(page).not.toContain('runs resume');
    web.signal('SIGTERM');
    await web.ended;
  });

  test('a refused key is one line with what to do, however many windows it stopped', async ({ url }) => {
    const guarded = await openSandbox({ accessKey: 'another-key', instrumentsPerExchange: 10 });
    const env = { ...environment(url), EOD_BASE_URL: guarded.url, EOD_LOG_LEVEL: 'silent' };
    const { code, stderr } = await runCli(['backfill', '--all', ...RANGE], { cwd, env });
    expect(code).toBe(1);
    expect(stderr.split('\n').filter((line) => line.includes('refused'))).toHaveLength(1);
    expect(stderr).toMatch(
      /^\d+ windows did not load: blocked: the access key was refused: Access Denied\..*\nset another EOD_ACCESS_KEY; then "eod runs resume 1" requests them again$/m,
    );
  });
});

describe('a run that is stopped', () => {
  test.each([
    ['0', 'the calls of this hour are used up'],
    ['50%', "the backfills' share of this hour is used up"],
  ])('a command that waits for the next clock hour says so: reserve %s', async (reserve, usedUp) => {
    const { url } = await testDatabase();
    const env = { ...environment(url), EOD_CALLS_PER_HOUR: '2', EOD_NIGHTLY_RESERVE: reserve };
    const backfill = startCli(['backfill', 'GetBhavCopyCM', ...RANGE], { cwd, env });
    await backfill.output(new RegExp(` · ${usedUp}, waiting until \\d\\d:00 IST\\n`));
    backfill.signal('SIGINT');
    expect(await backfill.ended).toMatchObject({ code: 130 });
  });

  test('Ctrl-C pauses, resume completes, and the data is that of an undisturbed run', async () => {
    const [disturbed, undisturbed] = await Promise.all([testDatabase(), testDatabase()]);
    const args = ['backfill', 'GetBhavCopyCM', '--from', '2025-02-10', '--to', '2025-02-27'];
    const whole = runJson<RunReport>(args, { cwd, env: environment(undisturbed.url) });
    const env = environment(disturbed.url, slow);

    const backfill = startCli([...args, '--json'], { cwd, env });
    const some = "select from etl.windows where state = 'loaded' limit 1";
    await waitFor(async () => (await query(disturbed.url, some)).length > 0);
    backfill.signal('SIGINT');
    const stopped = await backfill.ended;
    expect(stopped.code).toBe(130);
    expect(stopped.stderr).toContain('eod runs resume 1');
    const paused = JSON.parse(stopped.stdout) as RunReport;
    expect(paused).toMatchObject({ state: 'paused', error: 'a signal (Ctrl-C or SIGTERM)' });
    expect((await runCli(['status'], { cwd, env })).stdout).toContain(
      'run 1: paused by a signal (Ctrl-C or SIGTERM); "eod runs resume 1" continues it\n',
    );
    expect(paused.windows.open).toBeGreaterThan(0);
    const left = await query<{ state: string }>(
      disturbed.url,
      'select distinct state from etl.windows order by 1',
    );
    expect(left.map(({ state }) => state)).toEqual(['loaded', 'pending']);

    const resumed = await runJson<RunReport>(['runs', 'resume', '1'], { cwd, env });
    expect(resumed.code).toBe(0);
    const { json } = await whole;
    for (const count of ['fetched', 'inserted', 'updated', 'unchanged', 'rejected'] as const) {
      expect([count, resumed.json[count]]).toEqual([count, json[count]]);
    }
    expect(await query(disturbed.url, CONTENT)).toEqual(await query(undisturbed.url, CONTENT));

    const again = await runCli(['runs', 'resume', '1'], { cwd, env });
    expect(again).toMatchObject({ code: 2, stdout: '' });
    expect(again.stderr).toMatch(/complete/);
  });

  test('cancel calls off what a detached run has left', async ({ url }) => {
    const options = { cwd, env: environment(url) };
    const detached = await runCli(['backfill', 'GetBhavCopyCM', ...RANGE, '--detach'], options);
    expect(detached).toMatchObject({ code: 0, stdout: 'run 1 enqueued: 10 windows\n' });
    for (const typed of ['', 'n', 'no', 'yesterday']) {
      expect(await runCli(['runs', 'cancel', '1'], { ...options, typed })).toEqual({
        code: 1,
        stdout: '',
        stderr: `Run 1 is cancelled for good: 10 windows will not be loaded by it.\nGo on? [y/N] ${typed}\neod: nothing was changed\n`,
      });
    }
    const cancelled = await runJson<RunReport>(['runs', 'cancel', '1'], { ...options, typed: ' Yes ' });
    expect(cancelled.json).toMatchObject({ state: 'cancelled', windows: { cancelled: 10, open: 0 } });
    expect(cancelled.json.failures).toHaveLength(10);
    expect(await runCli(['runs', 'resume', '1'], options)).toMatchObject({ code: 2 });
    // Nobody is asked to confirm what cannot be done.
    const again = await runCli(['runs', 'cancel', '1'], { ...options, typed: 'n' });
    expect(again).toMatchObject({ code: 2, stderr: expect.not.stringContaining('Go on?') });
  });

  test.runIf(isSlowLayer)(
    'cancel asks on a real terminal, where neither Ctrl-D nor Ctrl-C means yes',
    async ({ url }) => {
      const options = { cwd, env: environment(url) };
      await runCli(['backfill', 'GetBhavCopyCM', ...RANGE, '--detach'], options);
      const stateOf = async () => (await runJson<RunReport>(['runs', '1'], options)).json.state;
      expect(await typeOnTerminal(['runs', 'cancel', '1'], '\u0004', options)).toMatch(
        /Go on.*nothing was changed/s,
      );
      await typeOnTerminal(['runs', 'cancel', '1'], '\u0003', options);
      expect(await stateOf()).toBe('running');
      await typeOnTerminal(['runs', 'cancel', '1', '--yes'], '', options);
      expect(await stateOf()).toBe('cancelled');
    },
  );
});

describe('eod up', () => {
  test('works on detached runs, responds to health checks, and stops on SIGTERM', async ({ url }) => {
    const env = environment(url);
    const up = startCli(['up'], { cwd, env });
    const [, health] = await up.output(/health: (http:\S+)\/healthz/);
    const alive = await fetch(`${health}/healthz`);
    expect([alive.status, await alive.json()]).toMatchObject([
      200,
      { roles: ['scheduler', 'worker', 'web'] },
    ]);
    const ready = await fetch(`${health}/readyz`);
    expect([ready.status, await ready.json()]).toMatchObject([
      200,
      { isReady: true, database: 'ok', queue: 'ok' },
    ]);

    const taken = await runCli(['up'], { cwd, env: { ...env, EOD_HTTP_PORT: new URL(`${health}`).port } });
    expect(taken.code).toBe(2);
    expect(taken.stderr).toMatch(/another process uses this port \(see EOD_HTTP_HOST, EOD_HTTP_PORT\)/);
    // With the key that the sandbox suggests, nothing of the message is redacted.
    const suggested = { cwd, env: { ...env, EOD_ACCESS_KEY: EXAMPLE_KEY } };
    const sandbox = await runCli(['sandbox', '--port', new URL(`${health}`).port], suggested);
    expect(sandbox).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^eod: the sandbox cannot .*another process uses this port/),
    });

    const args = ['backfill', 'GetBhavCopyCM', ...RANGE, '--detach'];
    const { json } = await runJson<RunReport>(args, { cwd, env });
    expect(json).toMatchObject({ runId: 1, windows: { total: 10 } });
    await waitFor(
      async () => (await query(url, "select from etl.runs where state = 'completed'")).length === 1,
    );

    const signalledAt = Date.now();
    up.signal('SIGTERM');
    expect(await up.ended).toMatchObject({ code: 0 });
    expect(Date.now() - signalledAt).toBeLessThan(10_000);
  });

  test('a scheduler alone needs no source', async ({ url }) => {
    const up = startCli(['up', '--roles', 'scheduler'], {
      cwd,
      env: { DATABASE_URL: url, EOD_HTTP_PORT: '0' },
    });
    await up.output(/eod is up \(scheduler\)/);
    up.signal('SIGINT');
    expect(await up.ended).toMatchObject({ code: 0, stdout: '' });
  });
});

test('the tables are created by commands that load, where there are none; old ones are left to eod migrate', async () => {
  const { url } = await testDatabase();
  const options = { cwd, env: environment(url) };
  await query(url, 'drop schema market, etl cascade; drop schema if exists market_history cascade');
  const looked = await runCli(['runs'], options);
  expect(looked.code).toBe(2);
  expect(looked.stderr).toContain('eod migrate');
  const loading = await runCli(['backfill', 'GetBhavCopyCM', ...RANGE, '--detach'], options);
  expect(loading.code).toBe(0);
  expect(await runCli(['migrate'], options)).toMatchObject({
    code: 0,
    stdout: 'the tables were up to date already\n',
  });
  await query(url, 'update etl.migrations set created_at = 1');
  const behind = await runCli(['runs'], options);
  expect(behind.code).toBe(2);
  expect(behind.stderr).toMatch(/run "eod migrate" first/);
});

test('a command ends when the checks and alerts that follow its run are done, no matter who makes them', async ({
  url,
}) => {
  const options = { cwd, env: environment(url) };
  await withClient(url, async (holder) => {
    // Another process works on them.
    const lock = "hashtextextended('eod:follow-up:1', 0)";
    await holder.query(`select pg_advisory_lock(${lock})`);
    const running = startCli(['backfill', 'GetTotalTradeHighlights', ...RANGE], options);
    const waiting = `select from pg_locks, etl.runs where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())
      and id = 1 and state = 'completed' and follow_up = 'due'`;
    await waitFor(async () => (await query(url, waiting)).length === 1, { what: 'that the command waits' });
    await holder.query(`select pg_advisory_unlock(${lock})`);
    expect(await running.ended).toMatchObject({ code: 0 });
  });
  expect(await query(url, 'select follow_up from etl.runs where id = 1')).toEqual([{ follow_up: 'done' }]);
});

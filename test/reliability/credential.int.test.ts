import { describe, expect, test } from 'vitest';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { runCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { ended, mostly } from '../support/pipeline.ts';
import { freePrefix } from '../support/redis.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { EIGHT, LINES, paused } from './credential-support.ts';
import { accountsOf, coverageRows, openSetup, start, tally, windowsOf } from './support.ts';

describe.each(mostly('postgres'))('a refused key (queue on %s)', (backend) => {
  test('costs one call, ends the run, pauses both queues; only a person makes it be tried again', async () => {
    const [line = ''] = LINES;
    const setup = await openSetup({
      backend,
      behaviour: { faults: [{ kind: 'diagnostic', value: line, first: 1 }] },
    });
    await setup.db.pool.query(`
      create table written ();
      create function note() returns trigger language plpgsql as 'begin insert into written default values; return null; end';
      create trigger note after insert on etl.coverage for each statement execute function note()`);
    const report = await setup.run(EIGHT);
    expect(setup.sandbox.stats().requests).toBe(1);
    // One statement for each of the two exchanges, however many windows end.
    expect((await setup.db.pool.query('select from written')).rowCount).toBe(2);
    expect(report).toMatchObject({ state: 'failed', windows: { total: 8, blocked: 8 } });
    expect(report.error).toContain(line);
    expect(await paused(setup)).toEqual([true, true]);
    const windows = await windowsOf(setup, report.runId);
    expect(new Set(windows.map((window) => window.diagnostic))).toEqual(new Set([line]));
    expect(windows.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(1);
    const coverage = await coverageRows(setup);
    expect(tally(coverage.map(({ state }) => state))).toEqual({ blocked: 8 });
    expect(coverage[0]?.diagnostic).toBe(line);
    await accountsOf(setup, report);

    // The schedule goes on planning nights; none of them makes a call.
    const night = await start(setup, { ...EIGHT, tick: 'next night' });
    // A worker that was not there when the queues were paused, as after a restart of the machine.
    await setup.work();
    await setup.queues.windows.nightly.resume();
    const nightReport = await ended(setup, night);
    expect(setup.sandbox.stats().requests).toBe(1);
    expect(nightReport).toMatchObject({ state: 'failed', windows: { blocked: 8 }, requests: 0 });

    // A person requests again, and the source has changed its mind.
    await resumeRun(setup, report.runId);
    expect(await paused(setup)).toEqual([false, false]);
    expect(await ended(setup, report.runId)).toMatchObject({ state: 'completed', windows: { loaded: 8 } });
    expect(setup.sandbox.stats().requests).toBe(9);
    expect(tally((await coverageRows(setup)).map(({ state }) => state))).toEqual({ loaded: 8 });
  });
});

test('the alert is given once, and the command says what is wrong and ends with 1', async () => {
  const source = await openSandbox({ accessKey: 'another', instrumentsPerExchange: 40 });
  const env = {
    EOD_BASE_URL: source.url,
    EOD_ACCESS_KEY: 'refused',
    EOD_LOG_LEVEL: 'error',
    DATABASE_URL: (await testDatabase()).url,
    EOD_QUEUE_PREFIX: freePrefix(),
  };
  const requested = ['GetBhavCopyCM', '--from', EIGHT.from, '--to', EIGHT.to];
  const said = await runCli(['backfill', ...requested], { env, cwd: temporaryFolder() });
  expect(said.code).toBe(1);
  expect(said.stderr.match(/"alert":"access_key"/g)).toHaveLength(1);
  expect(said.stdout + said.stderr).toContain('Access Denied. Key not found.');
  expect(source.stats().requests).toBe(1);
});

import { describe, expect, test } from 'vitest';
import { concludeRun } from '../../src/cli/work-on-run.ts';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { reportRun } from '../../src/state/runs/reports.ts';
import { captureCli, runCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { ended, mostly } from '../support/pipeline.ts';
import { freePrefix } from '../support/redis.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { EIGHT, LINES } from './credential-support.ts';
import { accountsOf, coverageRows, openSetup, start, windowsOf } from './support.ts';

describe.each(mostly('postgres'))('a refused key (queue on %s)', (backend) => {
  test('costs one call, ends the run and pauses the others; each run that begins makes one call first', async () => {
    const [line = ''] = LINES;
    const setup = await openSetup({
      backend,
      settings: { EOD_CONCURRENCY: '1' },
      behaviour: { faults: [{ kind: 'diagnostic', value: line, first: 2 }] },
    });
    const runs = [
      await start(setup, EIGHT),
      await start(setup, { ...EIGHT, operations: ['GetTop5GainersLosers'] }),
    ];
    const statesOf = async () =>
      (
        await setup.db.pool.query<{ id: number; state: string; error: string | null }>(
          'select id::int, state, error from etl.runs where id = any ($1) order by state',
          [runs],
        )
      ).rows;
    await setup.work();
    await waitFor(async () => (await statesOf())[0]?.state === 'failed');
    const [failed, paused] = await statesOf();
    expect(paused?.state).toBe('paused');
    expect(setup.sandbox.stats().requests).toBe(1);
    for (const run of [failed, paused]) expect(run?.error).toContain(line);
    // A command that works on the paused one ends, and says how to go on.
    const { cli, stderr } = captureCli();
    const stopped = { report: await reportRun(setup, paused?.id ?? 0), isInterrupted: false };
    expect(concludeRun(cli, stopped)).toBe(1);
    expect(stderr()).toContain(`go on with: eod runs resume ${paused?.id}`);
    const report = await ended(setup, failed?.id ?? 0);
    expect(report).toMatchObject({ windows: { blocked: report.windows.total }, requests: 1 });
    expect(new Set((await windowsOf(setup, report.runId)).map(({ diagnostic }) => diagnostic))).toEqual(
      new Set([line]),
    );
    const coverage = await coverageRows(setup);
    expect(new Set(coverage.map(({ state }) => state))).toEqual(new Set(['blocked']));
    expect(coverage[0]?.diagnostic).toBe(line);
    await accountsOf(setup, report);

    // So does a scheduled night; the next one finds that the key is accepted.
    const night = await ended(setup, await start(setup, { ...EIGHT, tick: 'night' }));
    expect(night).toMatchObject({ state: 'failed', windows: { blocked: 8 }, requests: 1 });
    expect(setup.sandbox.stats().requests).toBe(2);
    const next = await ended(setup, await start(setup, { ...EIGHT, tick: 'next night' }));
    expect(next).toMatchObject({ state: 'completed', windows: { loaded: 8 } });
    expect(setup.sandbox.stats().requests).toBe(10);
    // What is paused is resumed by a person.
    expect((await statesOf()).map(({ state }) => state)).toEqual(['failed', 'paused']);
    for (const run of runs) await resumeRun(setup, run);
    for (const run of runs) expect((await ended(setup, run)).state).toBe('completed');
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
  const args = ['GetBhavCopyCM', '--from', EIGHT.from, '--to', EIGHT.to];
  const result = await runCli(['backfill', ...args], { env, cwd: temporaryFolder() });
  expect(result.code).toBe(1);
  expect(result.stderr.match(/"alert":"access_key"/g)).toHaveLength(1);
  expect(result.stdout + result.stderr).toContain('Access Denied. Key not found.');
  expect(source.stats().requests).toBe(1);
});

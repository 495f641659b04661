import { beforeAll, describe, expect, test } from 'vitest';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import { readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { readStatus } from '../../../src/jobs/runs/read-status.ts';
import { tables } from '../../../src/operations/registry.ts';
import { runCli } from '../../support/cli.ts';
import { backfill, marketContents, openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { replay } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { clock, openTrial, TRIAL_DAY, trialAddress } from './trial-address-support.ts';

describe('with EOD_TRIAL_DAY', () => {
  let pipeline: Pipeline;
  beforeAll(async () => {
    pipeline = await openTrial(await trialAddress());
    await runToEnd(pipeline, await nightlyRequest(pipeline, { date: TRIAL_DAY }));
  });

  test('status and gaps look at that day, whatever the day of the machine', async () => {
    const { gaps } = await readGaps(pipeline, {});
    expect(gaps.map(({ operation, from, to, reason }) => [operation, from, to, reason])).toEqual([
      ['GetTop5GainersLosers', TRIAL_DAY, TRIAL_DAY, 'failed'],
    ]);
    const { operations } = await readStatus(pipeline);
    const bhav = operations.filter(({ operation }) => operation === 'GetBhavCopyCM');
    expect(bhav.map(({ lastLoaded }) => lastLoaded)).toEqual([TRIAL_DAY, TRIAL_DAY]);
  });

  test('a backfill of more days requests once, and one without that day requests nothing', async () => {
    const options = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'], force: true };
    const week = await runToEnd(pipeline, backfill({ ...options, from: '2025-02-20', to: TRIAL_DAY }));
    expect(week).toMatchObject({ state: 'completed', requests: 1, inserted: 0, withdrawn: 0, rejected: 0 });
    expect(week.unchanged).toBeGreaterThan(0);
    const before = await runToEnd(pipeline, backfill({ ...options, from: '2025-02-10', to: '2025-02-14' }));
    expect(before).toMatchObject({ state: 'completed', requests: 0 });
    expect(before.skips).toEqual([
      { reason: `only ${TRIAL_DAY} can be requested (EOD_TRIAL_DAY)`, windows: 1 },
    ]);
  });
});

test('a replay, on another day and without the setting, also into emptied tables, has the same rows and coverage', async () => {
  const pipeline = await openTrial(await trialAddress());
  await runToEnd(pipeline, await nightlyRequest(pipeline, { date: TRIAL_DAY }));
  const known = async () => ({
    market: await marketContents(pipeline),
    coverage: (
      await pipeline.db.pool.query(
        `select operation, exchange, day::text, instrument, variant, state, records::int from etl.coverage
          where state <> 'holiday' order by 1, 2, 3, 4, 5`,
      )
    ).rows,
  });
  const before = await known();
  const later = await openPipeline({
    databaseUrl: pipeline.environment.DATABASE_URL as string,
    clock: { now: () => clock.now() + 30 * 86_400_000 },
  });
  expect(await replay(later, {})).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0 });
  expect(await known()).toEqual(before);
  const emptied = tables.flatMap(({ name }) => [`market.${name}`, `market_history.${name}`]);
  await pipeline.db.pool.query(`truncate ${emptied.join(', ')}`);
  await replay(later, {});
  expect(await known()).toEqual(before);
});

describe('without it', () => {
  const hint = `all are of ${TRIAL_DAY}: if the address serves no other day, set EOD_TRIAL_DAY=${TRIAL_DAY}`;

  test('the reject and the report name the day, the coverage says what to set', async () => {
    const { url } = await trialAddress();
    const pipeline = await openPipeline({ sourceUrl: url, clock });
    const report = await runToEnd(
      pipeline,
      backfill({ from: '2026-03-09', to: '2026-03-09', operations: ['GetBhavCopyCM'], exchanges: ['NSE'] }),
    );
    expect(report).toMatchObject({ state: 'failed', inserted: 0 });
    expect(report.failures[0]?.error).toContain(`is ${TRIAL_DAY}, a day that was not requested`);
    const rejects = await pipeline.db.pool.query('select distinct problems from etl.rejects');
    expect(rejects.rows).toEqual([
      {
        problems: [{ path: 'tradDt', message: expect.stringContaining(TRIAL_DAY) }],
      },
    ]);
    const { gaps } = await readGaps(pipeline, { from: '2026-03-09', to: '2026-03-09' });
    expect(gaps.find(({ exchange }) => exchange === 'NSE')?.detail).toContain(hint);
  });

  test('eod doctor says it, and with the setting that all is well', async () => {
    const { url } = await trialAddress();
    const env = { EOD_BASE_URL: url, EOD_ACCESS_KEY: 'a key for tests' };
    const cwd = temporaryFolder();
    const checkAddress = async (settings: Record<string, string>) => {
      const { stdout } = await runCli(['doctor', '--json'], { cwd, env: { ...env, ...settings } });
      return JSON.parse(stdout).checks.find(({ name }: { name: string }) => name === 'source');
    };
    expect(await checkAddress({})).toMatchObject({ state: 'warning', remedy: expect.stringContaining(hint) });
    expect(await checkAddress({ EOD_TRIAL_DAY: TRIAL_DAY })).toMatchObject({ state: 'ok' });
  });
});

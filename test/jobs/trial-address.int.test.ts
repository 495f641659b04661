import { beforeAll, describe, expect, test } from 'vitest';
import { nightlyRequest } from '../../src/jobs/runs/nightly-request.ts';
import { tables } from '../../src/operations/registry.ts';
import { type Pipeline, runToEnd } from '../support/pipeline.ts';
import { MOVERS_DAY, openTrial, TRIAL_DAY, trialAddress } from './trial-address-support.ts';

/** The days in each table that has rows, by its date column or, for ratios, the day they are of. */
async function storedDays({ db }: Pipeline): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const { name, dateColumn, key } of tables) {
    const column = dateColumn ?? key.find((one) => one === 'as_of_date');
    if (column === undefined) continue;
    const { rows } = await db.pool.query(
      `select distinct ${column}::text as day from market.${name} order by 1`,
    );
    if (rows.length > 0) found[name] = rows.map(({ day }) => day);
  }
  return found;
}

describe('with EOD_TRIAL_DAY', () => {
  let pipeline: Pipeline;
  beforeAll(async () => {
    pipeline = await openTrial(await trialAddress());
  });

  test('a night loads every operation, each record under its own day', async () => {
    const report = await runToEnd(pipeline, await nightlyRequest(pipeline, { date: TRIAL_DAY }));
    expect(report).toMatchObject({ state: 'completed', failures: [], rejected: 0, suspicious: [] });
    const days = await storedDays(pipeline);
    const { top_gainers_losers: movers, sectoral_classification: _, ...others } = days;
    expect(movers).toEqual([MOVERS_DAY]);
    expect(Object.keys(others).length).toBeGreaterThan(4);
    // The quarter that ended before the trial day is requested by its name.
    expect(others.financial_ratios).toEqual(['2024-12-31', TRIAL_DAY]);
    for (const [table, found] of Object.entries(others)) {
      if (table !== 'financial_ratios') expect([table, found]).toEqual([table, [TRIAL_DAY]]);
    }
    expect(report.warnings).toEqual([
      {
        operation: 'GetTop5GainersLosers',
        warning: `this trial address serves GetTop5GainersLosers for ${MOVERS_DAY}, not for ${TRIAL_DAY}`,
        windows: 1,
      },
    ]);
    const variants = await pipeline.db.pool.query(
      `select variant, array_agg(distinct as_of_date::text) as days from market.financial_ratios group by 1 order by 1`,
    );
    expect(variants.rows).toEqual([
      { variant: 'eod', days: [TRIAL_DAY] },
      { variant: 'quarter', days: ['2024-12-31'] },
      { variant: 'realtime', days: [TRIAL_DAY] },
      { variant: 'snapshot', days: [TRIAL_DAY] },
    ]);
  });
});

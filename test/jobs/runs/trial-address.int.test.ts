import { beforeAll, describe, expect, test } from 'vitest';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import { tables } from '../../../src/operations/registry.ts';
import { type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { MOVERS_DAY, openTrial, TRIAL_DAY, trialAddress } from './trial-address-support.ts';

/** The days in each table that has rows, by its date column or, for ratios, the day they are of. */
async function storedDays({ db }: Pipeline): Promise<Record<string, string[]>> {
  const days: Record<string, string[]> = {};
  for (const { name, dateColumn, key } of tables) {
    const column = dateColumn ?? key.find((column) => column === 'as_of_date');
    if (column === undefined) continue;
    const { rows } = await db.pool.query(
      `select distinct ${column}::text as day from market.${name} order by 1`,
    );
    if (rows.length > 0) days[name] = rows.map(({ day }) => day);
  }
  return days;
}

describe('with EOD_TRIAL_DAY', () => {
  let pipeline: Pipeline;
  beforeAll(async () => {
    pipeline = await openTrial(await trialAddress());
  });

  test('a night loads every operation of that day, and a response about another day fails with its name', async () => {
    const report = await runToEnd(pipeline, await nightlyRequest(pipeline, { date: TRIAL_DAY }));
    expect(report).toMatchObject({ state: 'failed', warnings: [] });
    expect(new Set(report.failures.map(({ operation }) => operation))).toEqual(
      new Set(['GetTop5GainersLosers']),
    );
    expect(report.failures[0]?.error).toContain(`is ${MOVERS_DAY}, a day that was not requested`);
    const movers = await pipeline.db.pool.query(
      `select distinct day::text, state, diagnostic from etl.coverage where operation = 'GetTop5GainersLosers' and state <> 'holiday'`,
    );
    expect(movers.rows).toEqual([
      { day: TRIAL_DAY, state: 'failed', diagnostic: expect.stringContaining(`all are of ${MOVERS_DAY}`) },
    ]);
    const days = await storedDays(pipeline);
    expect(days).not.toHaveProperty('top_gainers_losers');
    const { sectoral_classification: _, ...others } = days;
    expect(Object.keys(others).length).toBeGreaterThan(4);
    // The quarter that ended before the trial day is requested by its name.
    expect(others.financial_ratios).toEqual(['2024-12-31', TRIAL_DAY]);
    for (const [table, days] of Object.entries(others)) {
      if (table !== 'financial_ratios') expect([table, days]).toEqual([table, [TRIAL_DAY]]);
    }
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

  test('calls are counted, and their times noted, by the real clock', async () => {
    const { rows } = await pipeline.db.pool.query(
      `select array(select distinct (hour at time zone 'Asia/Kolkata')::date::text from etl.call_budget) as budget,
              array_agg(distinct (fetched_at at time zone 'Asia/Kolkata')::date::text) as calls,
              array_agg(distinct called_on::text) as "tradingDays" from etl.responses where operation <> 'corporate_events'`,
    );
    expect(rows).toEqual([{ budget: ['2026-03-10'], calls: ['2026-03-10'], tradingDays: [TRIAL_DAY] }]);
  });
});

import { beforeAll, describe, expect, test } from 'vitest';
import { nightlyRequest } from '../../src/jobs/runs/nightly-request.ts';
import { tables } from '../../src/operations/registry.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';

const TRIAL_DAY = '2025-02-27';

/** The source may have another day for some operations. */
const MOVERS_DAY = '2025-02-25';

/** A year later, in the morning: nothing of today is published. */
const clock = { now: () => Date.parse('2026-03-10T09:30:00+05:30') };

const INSTRUMENTS = 3;

async function trialAddress(): Promise<Sandbox> {
  const behaviour = { trialDay: TRIAL_DAY, trialDays: { GetTop5GainersLosers: MOVERS_DAY } };
  return openSandbox({ clock, instrumentsPerExchange: 60, behaviour });
}

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
  let sandbox: Sandbox;
  let pipeline: Pipeline;
  beforeAll(async () => {
    sandbox = await trialAddress();
    pipeline = await openPipeline({
      sourceUrl: sandbox.url,
      clock,
      settings: { EOD_TRIAL_DAY: TRIAL_DAY, EOD_INSTRUMENT_LIMIT: String(INSTRUMENTS) },
    });
  });

  test('a night loads every operation, each record under its own day', async () => {
    const report = await runToEnd(pipeline, await nightlyRequest(pipeline, { date: TRIAL_DAY }));
    expect(report).toMatchObject({ state: 'completed', failures: [], rejected: 0, suspicious: [] });
    const days = await storedDays(pipeline);
    const { top_gainers_losers: movers, sectoral_classification: _, ...others } = days;
    expect(movers).toEqual([MOVERS_DAY]);
    expect(Object.keys(others).length).toBeGreaterThan(4);
    // The quarter that ended before the trial day is asked for by its name.
    expect(others.financial_ratios).toEqual(['2024-12-31', TRIAL_DAY]);
    for (const [table, found] of Object.entries(others)) {
      if (table !== 'financial_ratios') expect([table, found]).toEqual([table, [TRIAL_DAY]]);
    }
    expect(report.warnings).toEqual([
      {
        operation: 'GetTop5GainersLosers',
        warning: `this trial address answers GetTop5GainersLosers for ${MOVERS_DAY}, not for ${TRIAL_DAY}`,
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

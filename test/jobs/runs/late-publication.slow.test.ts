import { expect, test } from 'vitest';
import { forecastRun } from '../../../src/jobs/runs/forecast.ts';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import { readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { startWorker } from '../../../src/jobs/worker/worker.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { manualClock } from '../../sandbox/support.ts';
import { closeAfterTest } from '../../support/closing.ts';
import { backfill, ended, openPipeline, start } from '../../support/pipeline.ts';

const night = (day: string) => Date.parse(`${day}T22:40:00+05:30`);
const INSTRUMENTS = ['TCS', 'INFY', 'RELIANCE'];

/** Nights of one operation, whose source may be days behind with its data. */
async function openNights(name: string, first: string) {
  const clock = manualClock(night(first));
  const sourceClock = manualClock(night(first));
  const pipeline = await openPipeline({
    sandbox: { clock: sourceClock, instrumentsPerExchange: 60 },
    clock,
    settings: { EOD_INSTRUMENTS: INSTRUMENTS.join(','), EOD_LOOKBACK_SESSIONS: '2' },
  });
  const worker = await startWorker(pipeline);
  closeAfterTest(() => worker.stop());
  const operation = operationNamed(name);
  const gaps = async () => {
    const { gaps, pending } = await readGaps(pipeline, { operations: [operation] });
    const days = (list: typeof gaps) => list.map(({ from, to, reason }) => `${from} ${to} ${reason}`);
    return { missing: days(gaps), pending: days(pending) };
  };
  return {
    pipeline,
    gaps,
    /** The night of a day, at which the source has the data of the days up to `out`; gives the days requested. */
    async night(date: string, out = date): Promise<Record<string, number>> {
      clock.moveTo(night(date));
      sourceClock.moveTo(night(out));
      const runId = await start(pipeline, await nightlyRequest(pipeline, { date, operation }));
      expect(await ended(pipeline, runId)).toMatchObject({ state: 'completed' });
      const { rows } = await pipeline.db.pool.query<{ day: string; calls: number }>(
        `select to_char(to_date, 'YYYY-MM-DD') as day, count(*)::int as calls from etl.windows
          where run_id = $1 and requests > 0 and variant not like 'realtime/%' group by 1 order by 1`,
        [runId],
      );
      return Object.fromEntries(rows.map(({ day, calls }) => [day, calls]));
    },
    async states(): Promise<Record<string, string>> {
      const { rows } = await pipeline.db.pool.query<{ day: string; states: string }>(
        `select to_char(day, 'YYYY-MM-DD') as day, string_agg(distinct state, ',' order by state) as states
           from etl.coverage where variant not like 'realtime/%' and state <> 'holiday' group by day order by day`,
      );
      return Object.fromEntries(rows.map(({ day, states }) => [day, states]));
    },
  };
}

test('ratios that are out a night late are requested again the next night, and loaded', async () => {
  const nights = await openNights('GetFinRatioEOD', '2025-09-09');
  expect(await nights.night('2025-09-09')).toEqual({ '2025-09-09': 6 });
  expect(await nights.night('2025-09-10', '2025-09-09')).toEqual({ '2025-09-10': 6 });
  expect(await nights.states()).toEqual({ '2025-09-09': 'loaded', '2025-09-10': 'not_published' });
  expect(await nights.gaps()).toEqual({ missing: [], pending: ['2025-09-10 2025-09-10 not_published'] });
  expect(await nights.night('2025-09-11')).toEqual({ '2025-09-10': 6, '2025-09-11': 6 });
  expect(new Set(Object.values(await nights.states()))).toEqual(new Set(['loaded']));
  expect(await nights.gaps()).toEqual({ missing: [], pending: [] });
});

test('nothing at all is believed after the nights that look back, and not requested again', async () => {
  const nights = await openNights('GetFinRatioEOD', '2025-09-09');
  await nights.night('2025-09-09');
  for (const day of ['2025-09-10', '2025-09-11', '2025-09-12']) await nights.night(day, '2025-09-09');
  expect(await nights.states()).toEqual({
    '2025-09-09': 'loaded',
    '2025-09-10': 'empty',
    '2025-09-11': 'not_published',
    '2025-09-12': 'not_published',
  });
  expect(Object.keys(await nights.night('2025-09-15', '2025-09-09'))).toEqual([
    '2025-09-11',
    '2025-09-12',
    '2025-09-15',
  ]);
});

test('pledges of a day in the middle of a week that were late come with the next week', async () => {
  const nights = await openNights('GetConsolidatedPledge', '2025-09-06');
  await nights.night('2025-09-06');
  // On Saturday the thirteenth the source has Thursday's, on the twentieth all.
  expect(await nights.night('2025-09-13', '2025-09-11')).toEqual({ '2025-09-13': 1 });
  expect((await nights.states())['2025-09-12']).toBe('not_published');
  await nights.night('2025-09-20');
  expect((await nights.states())['2025-09-12']).toBe('loaded');
});

test('a quarter is requested from its end on, until its figures come', async () => {
  const nights = await openNights('GetFinancialRatios', '2025-02-26');
  // The one that is running is not requested; the one before it is out.
  expect(await nights.night('2025-02-26')).toEqual({ '2024-12-31': 6 });
  expect(await nights.states()).toEqual({ '2024-12-31': 'loaded' });
  expect(await nights.night('2025-03-28')).toEqual({});
  expect(await nights.night('2025-04-01')).toEqual({ '2025-03-31': 6 });
  expect((await nights.states())['2025-03-31']).toBe('not_published');
  expect(await nights.gaps()).toEqual({ missing: [], pending: ['2025-03-31 2025-03-31 not_published'] });
  expect(await nights.night('2025-04-02')).toEqual({ '2025-03-31': 6 });
  // Results take 45 days.
  expect(await nights.night('2025-05-16')).toEqual({ '2025-03-31': 6 });
  expect((await nights.states())['2025-03-31']).toBe('loaded');
  expect(await nights.night('2025-06-21')).toEqual({});
  expect(await nights.gaps()).toEqual({ missing: [], pending: [] });
});

test('the watermark does not follow a day of the future: the trading days of a downtime are requested', async () => {
  const nights = await openNights('GetFinRatioEOD', '2025-02-10');
  await nights.night('2025-02-10');
  await writeCoverage(nights.pipeline.db.drizzle, {
    operation: 'GetFinRatioEOD',
    exchange: 'BSE',
    runId: 1,
    windowId: null,
    position: await takePosition(nights.pipeline.db.drizzle),
    coverage: [
      { day: '2025-03-31', instrument: 'TCS', variant: 'eod/Standalone', state: 'loaded', records: 1 },
      { day: '2025-02-13', instrument: 'TCS', variant: 'quarter/Standalone', state: 'loaded', records: 1 },
    ],
  });
  expect(Object.keys(await nights.night('2025-02-14'))).toEqual([
    '2025-02-11',
    '2025-02-12',
    '2025-02-13',
    '2025-02-14',
  ]);
});

test('nothing is requested twice: end-of-day ratios come from GetFinRatioEOD unless their type is requested', async () => {
  const nights = await openNights('GetFinancialRatios', '2025-09-10');
  const range = { from: '2025-09-01', to: '2025-09-10', exchanges: ['BSE'] };
  const calls = async (operations: readonly string[], options: Record<string, string> = {}) => {
    const request = backfill({ ...range, operations, options });
    const forecast = await forecastRun(nights.pipeline, request);
    return forecast.operations.map(({ requests }) => requests);
  };
  const both = ['GetFinRatioEOD', 'GetFinancialRatios'];
  const tradingDays = 8;
  const requests = INSTRUMENTS.length * 2 * tradingDays;
  expect(await calls(both)).toEqual([requests, 0]);
  expect(await calls(['GetFinancialRatios'], { type: 'EOD' })).toEqual([requests]);
  expect(await calls(both, { type: 'EOD' })).toEqual([requests, 0]);
  const run = await start(
    nights.pipeline,
    backfill({ ...range, operations: both, options: { type: 'EOD' } }),
  );
  const report = await ended(nights.pipeline, run);
  expect(report).toMatchObject({ requests, windows: { skipped: requests } });
  expect(report.skips).toMatchObject([{ reason: "the same request as GetFinRatioEOD's" }]);
});

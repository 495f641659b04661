import { beforeAll, beforeEach, expect, test } from 'vitest';
import { catchUp } from '../../../src/jobs/runs/catch-up.ts';
import { startScheduler } from '../../../src/jobs/worker/scheduler.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { manualClock } from '../../sandbox/support.ts';
import { openPipeline, type Pipeline } from '../../support/pipeline.ts';

const NSE = 'NSE';
const PRICES = 'GetBhavCopyCM';
/** A Friday evening: its prices are due. */
const EVENING = Date.parse('2025-09-12T23:45:00+05:30');
const MISSED = ['2025-09-11', '2025-09-12'];

let pipeline: Pipeline;
const clock = manualClock(EVENING);

beforeAll(async () => {
  pipeline = await openPipeline({ clock, settings: { EOD_EXCHANGES: NSE, EOD_LOOKBACK_SESSIONS: '2' } });
});

beforeEach(async () => {
  clock.moveTo(EVENING);
  await pipeline.db.pool.query('truncate etl.coverage, etl.runs, etl.windows, etl.source_state');
});

async function load(operation: string, ...days: readonly string[]) {
  await writeCoverage(pipeline.db.drizzle, {
    operation,
    exchange: NSE,
    runId: 1,
    windowId: null,
    position: await takePosition(pipeline.db.drizzle),
    coverage: days.map((day) => ({ day, instrument: '', variant: '', state: 'loaded', records: 100 })),
  });
}

/** What a run requests, day by day. */
async function requestedBy(runId: number | null) {
  const { rows } = await pipeline.db.pool.query<{ requested: string }>(
    `select concat_ws(' ', operation, from_date, to_date) as requested from etl.windows where run_id = $1 order by from_date`,
    [runId],
  );
  return rows.map(({ requested }) => requested);
}

const countRuns = async () => (await pipeline.db.pool.query('select from etl.runs')).rowCount;

test('a scheduler that starts requests what is due and missing of the last trading days', async () => {
  // After a standstill of weeks: the nights before are requested by the next one.
  await load(PRICES, '2025-08-01');
  const scheduler = await startScheduler(pipeline);
  await scheduler.stop();
  const { rows } = await pipeline.db.pool.query('select id::int, kind, requested_by, tick from etl.runs');
  expect(rows).toMatchObject([{ kind: 'gap_fill', requested_by: 'schedule' }]);
  expect(await requestedBy(rows[0].id)).toEqual(MISSED.map((day) => `${PRICES} ${day} ${day}`));
});

test('what is loaded is not requested, nor what is not due, nor anything of a database that was never filled', async () => {
  expect(await catchUp(pipeline)).toBeNull();
  await load(PRICES, '2025-09-10', '2025-09-11');
  clock.moveTo(Date.parse('2025-09-12T16:00:00+05:30'));
  expect(await catchUp(pipeline)).toBeNull();
  clock.moveTo(EVENING);
  expect(await requestedBy(await catchUp(pipeline))).toEqual([`${PRICES} 2025-09-12 2025-09-12`]);
});

test('processes that start together start one run, and none while another has windows of it left', async () => {
  await load(PRICES, '2025-08-01');
  const started = await Promise.all([1, 2, 3, 4].map(() => catchUp(pipeline)));
  expect(started.filter((runId) => runId !== null)).toHaveLength(1);
  // In the next hour, while the run is under way …
  clock.moveTo(EVENING + 3_600_000);
  expect(await catchUp(pipeline)).toBeNull();
  // … and after it has ended without a response.
  await pipeline.db.pool.query(
    "update etl.windows set state = 'failed'; update etl.runs set state = 'failed'",
  );
  expect(await requestedBy(await catchUp(pipeline))).toHaveLength(2);
  // One an hour, however often processes start.
  await pipeline.db.pool.query(
    "update etl.windows set state = 'failed'; update etl.runs set state = 'failed'",
  );
  expect(await catchUp(pipeline)).toBeNull();
  expect(await countRuns()).toBe(2);
});

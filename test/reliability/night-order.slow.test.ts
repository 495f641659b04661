import { expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import { nightlyRequest } from '../../src/jobs/runs/nightly-request.ts';
import { startRun } from '../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { manualClock } from '../sandbox/support.ts';
import { mostly } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { openSetup, type Setup } from './support.ts';

const LISTS = ['GetBhavCopyCM', 'GetTotalTradeHighlights', 'GetCircuitBreakers'];
const DETAILS = ['GetFinRatioEOD'];
/** A night may make so many calls, of which the lists take fewer than half. */
const CALLS = 40;
/** Each takes two calls a night. */
const INSTRUMENTS = 30;
const evening = (day: string) => Date.parse(`${day}T22:05:00+05:30`);

/** Plans a night as one run, the details named first. */
async function planNight(setup: Setup, date: string): Promise<void> {
  const requests: Awaited<ReturnType<typeof nightlyRequest>>[] = [];
  for (const name of [...DETAILS, ...LISTS]) {
    requests.push(await nightlyRequest(setup, { date, operation: operationNamed(name) }));
  }
  const [first] = requests;
  if (first !== undefined)
    await startRun(setup, { ...first, targets: requests.flatMap(({ targets }) => targets) });
}

const callsOfNight = async ({ db }: Setup, day: string) =>
  (
    await db.pool.query<{ calls: number }>('select calls from etl.call_budget where hour >= $1', [
      new Date(evening(day) - 3_600_000),
    ])
  ).rows[0]?.calls ?? 0;

/** The clock of Postgres cannot be set: after a night, all that it has noted is made a day older. */
async function passADay({ db }: Setup): Promise<void> {
  await db.pool.query(
    "update etl.coverage set checked_at = checked_at - interval '1 day' where isfinite(checked_at)",
  );
  await db.pool.query("update etl.runs set started_at = started_at - interval '1 day'");
}

/** The instruments of which ratios of a day are known, or known to be missing. */
async function instrumentsOn({ db }: Setup, day: string): Promise<string[]> {
  const { rows } = await db.pool.query<{ instrument: string }>(
    `select distinct instrument from etl.coverage where operation = 'GetFinRatioEOD' and day = $1 and state in ('loaded', 'empty') order by 1`,
    [day],
  );
  return rows.map(({ instrument }) => instrument);
}

test.each(mostly('postgres'))(
  'three nights that have too many calls: every list is complete each night, and details get their turn (queue on %s)',
  async (backend) => {
    const first = '2025-09-02';
    const clock = manualClock(evening(first));
    const settings = {
      EOD_CALLS_PER_HOUR: String(CALLS),
      EOD_INSTRUMENT_LIMIT: String(INSTRUMENTS),
      EOD_LOOKBACK_SESSIONS: '1',
      EOD_CONCURRENCY: '2',
    };
    // In a smaller market no share meets its price bands on some days.
    const setup = await openSetup({ backend, clock, settings, instruments: 150 });
    const requested: string[][] = [];
    for (const night of [0, 1, 2]) {
      const date = addDays(first, night);
      clock.moveTo(evening(date));
      await planNight(setup, date);
      const worker = await startWorker(setup);
      await waitFor(async () => (await callsOfNight(setup, date)) === CALLS, {
        what: 'the end of the budget',
      });
      await worker.stop();
      const { rows } = await setup.db.pool.query<{ operation: string }>(
        "select distinct operation from etl.coverage where day = $1 and instrument = '' and state in ('loaded', 'empty') order by 1",
        [date],
      );
      expect(
        rows.map(({ operation }) => operation),
        `lists of ${date}`,
      ).toEqual([...LISTS].sort());
      requested.push(await instrumentsOn(setup, date));
      await passADay(setup);
    }
    // Those that were not requested yet come first, then those that were requested longest ago.
    const [once = [], twice = []] = requested;
    expect(once.length).toBeGreaterThan(5);
    expect(once.length).toBeLessThan(INSTRUMENTS);
    expect(twice.filter((one) => once.includes(one))).toEqual([]);
    // What the first nights left was requested as well, be it of an earlier day.
    const { rows } = await setup.db.pool.query<{ requested: number }>(
      "select count(distinct instrument)::int as requested from etl.coverage where operation = 'GetFinRatioEOD'",
    );
    // The busiest instruments are others each day.
    expect(rows[0]?.requested).toBeGreaterThanOrEqual(INSTRUMENTS);
  },
);

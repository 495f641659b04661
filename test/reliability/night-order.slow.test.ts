import { expect, test } from 'vitest';
import { nightlyRequest } from '../../src/jobs/runs/nightly-request.ts';
import { startRun } from '../../src/jobs/runs/run-control.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { manualClock } from '../sandbox/support.ts';
import { mostly } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { openSetup } from './support.ts';

const PRICES = 'GetBhavCopyCM';
const LISTS = ['GetTotalTradeHighlights', 'GetCircuitBreakers', 'GetTop5GainersLosers', 'GetSeriesChange'];
const DETAILS = 'GetFinRatioEOD';
const CALLS = 1_670;
const PER_HOUR = 900;

test.each(mostly('postgres'))(
  'a night of 1,670 calls at a source that allows 900 an hour has all prices and lists in the first hour (queue on %s)',
  async (backend) => {
    const date = '2025-09-12';
    const clock = manualClock(Date.parse(`${date}T22:40:00+05:30`));
    const instruments = Array.from({ length: 1_000 }, (_, each) => `I${each}`);
    const setup = await openSetup({
      backend,
      clock,
      settings: {
        EOD_CALLS_PER_HOUR: String(PER_HOUR),
        EOD_LOOKBACK_SESSIONS: '3',
        EOD_INSTRUMENTS: instruments.join(','),
      },
      behaviour: { callsPerHour: PER_HOUR },
    });
    // Planned the other way round: details, lists, prices.
    const requests: Awaited<ReturnType<typeof nightlyRequest>>[] = [];
    for (const name of [DETAILS, ...LISTS, PRICES])
      requests.push(await nightlyRequest(setup, { date, operation: operationNamed(name) }));
    const [first] = requests;
    if (first === undefined) throw new Error('there is no night');
    const { pool } = setup.db;
    const runId = await startRun(setup, { ...first, targets: requests.flatMap(({ targets }) => targets) });
    const counted = async (condition: string) =>
      (
        await pool.query<{ windows: number }>(
          `select count(*)::int as windows from etl.windows where run_id = $1 and ${condition}`,
          [runId],
        )
      ).rows[0]?.windows;
    // As many details as make it a usual night.
    const more = (await counted("state = 'pending'")) ?? 0;
    await pool.query(
      `delete from etl.windows where id in (
         select id from etl.windows where run_id = $1 and operation = $2 order by id desc limit $3)`,
      [runId, DETAILS, more - CALLS],
    );
    expect(await counted("state = 'pending'")).toBe(CALLS);
    const coming = await counted(`state = 'pending' and operation <> '${DETAILS}'`);
    expect(coming).toBeGreaterThan(10);
    await setup.work();
    await waitFor(() => setup.sandbox.stats().requests === PER_HOUR, {
      what: 'the end of the hour',
      timeoutMs: 150_000,
    });
    await waitFor(async () => (await counted("state = 'running'")) === 0);
    expect(await counted(`state in ('loaded', 'empty') and operation = '${PRICES}'`)).toBe(8);
    expect(await counted(`state = 'pending' and operation <> '${DETAILS}'`)).toBe(0);
    expect(await counted(`state = 'pending' and operation = '${DETAILS}'`)).toBe(CALLS - PER_HOUR);
    // Of details, only the first call of the run was before them.
    const { rows } = await pool.query<{ details: number }>(
      `select count(*)::int as details from etl.responses a
        where a.run_id = $1 and a.operation = $2
          and a.position < (select max(p.position) from etl.responses p where p.run_id = $1 and p.operation = $3)`,
      [runId, DETAILS, PRICES],
    );
    expect(rows[0]?.details).toBeLessThanOrEqual(1 + setup.config.EOD_CONCURRENCY);
  },
);

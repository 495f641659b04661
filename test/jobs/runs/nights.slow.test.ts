import { beforeAll, describe, expect, test } from 'vitest';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import type { SandboxOptions } from '../../../src/sandbox/index.ts';
import { testDatabase } from '../../support/database.ts';
import { mostly, openPipeline, runToEnd } from '../../support/pipeline.ts';

const evening = (day: string) => ({ now: () => Date.parse(`${day}T22:05:00+05:30`) });

describe.each(mostly('redis'))('night after night, the queue in %s', (backend) => {
  let databaseUrl: string;
  beforeAll(async () => {
    databaseUrl = (await testDatabase()).url;
  });

  /** The nightly run of a day, and what the tables know afterwards. */
  async function night(date: string, source: SandboxOptions = {}) {
    const clock = evening(date);
    const sandbox = { instrumentsPerExchange: 150, ...source };
    const settings = { EOD_INSTRUMENT_LIMIT: '1', EOD_LOOKBACK_SESSIONS: '2' };
    const pipeline = await openPipeline({ databaseUrl, sandbox, backend, clock, settings });
    const report = await runToEnd(pipeline, await nightlyRequest(pipeline, { date }));
    expect(report).toMatchObject({ state: 'completed', failures: [], kind: 'nightly' });
    const result = await pipeline.db.pool.query<{ day: string }>(
      `select to_char(day, 'YYYY-MM-DD') as day from etl.coverage
        where operation = 'GetBhavCopyCM' and exchange = 'BSE' and state = 'loaded' order by day`,
    );
    const { rows: changed } = await pipeline.db.pool.query<{ day: string }>(
      `select distinct to_char(trade_date, 'YYYY-MM-DD') as day from market.bhavcopy_cm
        where revision > 1 order by day`,
    );
    const { rows: live } = await pipeline.db.pool.query(
      "select from etl.windows where run_id = $1 and variant like 'realtime/%'",
      [report.runId],
    );
    expect(report.warnings.filter(({ warning }) => /no column reads/.test(warning))).toEqual([]);
    await pipeline.close();
    const bhavcopies = report.operations.filter((operation) => operation.operation === 'GetBhavCopyCM');
    return {
      report,
      bhavcopies,
      realtime: live.length,
      days: result.rows.map((row) => row.day),
      changed: changed.map((row) => row.day),
    };
  }

  test('the first loads tonight and the lookback, real-time figures included', async () => {
    const first = await night('2025-09-02');
    expect(first.days).toEqual(['2025-08-29', '2025-09-01', '2025-09-02']);
    expect(first.realtime).toBe(2);
  });

  test('after a week of downtime the next night loads every trading day since', async () => {
    const { days, bhavcopies } = await night('2025-09-09');
    expect(days.slice(-5)).toEqual(['2025-09-03', '2025-09-04', '2025-09-05', '2025-09-08', '2025-09-09']);
    // New trading days, and the two before the watermark with it, once more.
    expect(bhavcopies.map((bhavcopy) => bhavcopy.windows.loaded)).toEqual([8, 8]);
  });

  test('late corrections of the lookback are picked up, and only real changes written', async () => {
    const { report, changed, bhavcopies } = await night('2025-09-10', { revision: 1 });
    expect(report.updated).toBeGreaterThan(0);
    expect(report.unchanged).toBeGreaterThan(0);
    expect(bhavcopies[0]?.updated).toBeLessThan(bhavcopies[0]?.unchanged ?? 0);
    expect(changed).toEqual(['2025-09-05', '2025-09-08', '2025-09-09']);
  });
});

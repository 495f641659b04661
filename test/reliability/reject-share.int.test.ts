import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { windowEnded } from '../../src/core/events.ts';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { serve } from '../extract/support.ts';
import { ended, queueEmpty } from '../support/pipeline.ts';
import { sampleOf } from './hostile-records.ts';
import { coverageRows, openSetup, type Setup, windowsOf } from './support.ts';

const DAY = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'], from: '2025-08-29', to: '2025-08-29' };
const BHAV = sampleOf(operationNamed('GetBhavCopyCM'));

/** Ten records, of which so many cannot be stored. */
function respond(response: ServerResponse, bad: number): void {
  const records = Array.from({ length: 10 }, (_, at) => ({
    ...BHAV,
    Symbol: `SHARE${at}`,
    ...(at < bad ? { ClosePrice: 'n/a' } : {}),
  }));
  response.end(JSON.stringify({ Value: records }));
}

async function count({ db }: Setup, table: string): Promise<number> {
  const result = await db.pool.query<{ rows: number }>(`select count(*)::int as rows from ${table}`);
  return result.rows[0]?.rows ?? -1;
}

test.each([
  [2, '20%'],
  [9, '100%'],
])('%i of 10 rejected, %s allowed: the others load, the rejected ones are kept', async (bad, share) => {
  const { baseUrl } = await serve((_, response) => respond(response, bad));
  const setup = await openSetup({ sourceUrl: baseUrl, settings: { EOD_MAX_REJECT_SHARE: share } });
  const report = await setup.run(DAY);
  expect(report).toMatchObject({ state: 'completed', fetched: 10, inserted: 10 - bad, rejected: bad });
  expect([await count(setup, 'market.bhavcopy_cm'), await count(setup, 'etl.rejects')]).toEqual([
    10 - bad,
    bad,
  ]);
  expect(await coverageRows(setup)).toMatchObject([{ state: 'loaded', records: 10 - bad }]);
});

test.each([
  [3, '20%'],
  [10, '100%'],
])(
  '%i of 10 rejected, %s allowed: the window fails and leaves nothing but the rejects',
  async (bad, share) => {
    let now = bad;
    const { baseUrl, requests } = await serve((_, response) => respond(response, now));
    const setup = await openSetup({ sourceUrl: baseUrl, settings: { EOD_MAX_REJECT_SHARE: share } });
    const ends: string[] = [];
    const stop = windowEnded.subscribe(({ state }) => void ends.push(state));
    const report = await setup.run(DAY);
    stop();
    // As metrics count it.
    expect(ends).toEqual(['failed']);
    expect(report).toMatchObject({ state: 'failed', fetched: bad, inserted: 0, rejected: bad });
    expect([await count(setup, 'market.bhavcopy_cm'), await count(setup, 'etl.rejects')]).toEqual([0, bad]);
    const [window] = await windowsOf(setup, report.runId);
    expect(window).toMatchObject({ state: 'failed', attempts: 1, fetched: bad, rejected: bad });
    expect(window?.error).toContain(`${bad} of 10 records were rejected`);
    expect(await coverageRows(setup)).toMatchObject([{ state: 'failed', records: 0 }]);
    const kept = await setup.db.pool.query(
      `select position, record ->> 'Symbol' as symbol, problems from etl.rejects order by position`,
    );
    expect(kept.rows[0]).toEqual({
      position: 0,
      symbol: 'SHARE0',
      problems: [{ path: 'ClosePrice', message: '"n/a" is not a number' }],
    });

    // Once the source has mended it, going on with the run loads the whole day.
    now = 0;
    await queueEmpty(setup);
    await resumeRun(setup, report.runId);
    expect(await ended(setup, report.runId)).toMatchObject({
      state: 'completed',
      fetched: 10,
      inserted: 10,
      rejected: 0,
    });
    expect(await coverageRows(setup)).toMatchObject([{ state: 'loaded', records: 10 }]);
    expect(requests).toHaveLength(2);
  },
);

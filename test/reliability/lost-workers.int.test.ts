import { expect } from 'vitest';
import { ended } from '../support/pipeline.ts';
import { coverageRows, start, test, windowsOf } from './support.ts';

const REQUESTED = {
  from: '2025-09-08',
  to: '2025-09-09',
  operations: ['GetSeriesChange'],
  exchanges: ['NSE'],
};

test('a window that has lost its worker too often fails without another call', async ({ setup }) => {
  const runId = await start(setup, REQUESTED);
  // As it is left when a sixth worker is killed while it works on it, as five were before.
  await setup.db.pool.query("update etl.windows set state = 'running', attempts = 6, lost_workers = 5");
  await setup.work();
  const report = await ended(setup, runId);
  expect(report).toMatchObject({ state: 'failed', requests: 0, windows: { total: 1, failed: 1 } });
  expect(await windowsOf(setup, runId)).toMatchObject([
    { state: 'failed', error: '6 workers ended while they worked on this window' },
  ]);
  expect(new Set((await coverageRows(setup)).map(({ state }) => state))).toEqual(new Set(['failed']));
  expect(setup.sandbox.stats().requests).toBe(0);
});

test('a window that has lost fewer workers is worked on as usual', async ({ setup }) => {
  const runId = await start(setup, REQUESTED);
  await setup.db.pool.query("update etl.windows set state = 'running', attempts = 5, lost_workers = 4");
  await setup.work();
  expect(await ended(setup, runId)).toMatchObject({ state: 'completed', requests: 1 });
});

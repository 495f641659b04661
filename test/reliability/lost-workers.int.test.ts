import { expect, test } from 'vitest';
import { ended } from '../support/pipeline.ts';
import { coverageRows, openStage, start, windowsOf } from './support.ts';

const ASKED = {
  from: '2025-09-08',
  to: '2025-09-09',
  operations: ['GetSeriesChange'],
  exchanges: ['NSE'],
};

test('a window that has lost its worker too often fails without another call', async () => {
  const stage = await openStage();
  const runId = await start(stage, ASKED);
  // As five workers leave it that were killed while they worked on it, and a sixth.
  await stage.db.pool.query("update etl.windows set state = 'running', attempts = 6, lost_workers = 5");
  await stage.work();
  const report = await ended(stage, runId);
  expect(report).toMatchObject({ state: 'failed', requests: 0, windows: { total: 1, failed: 1 } });
  expect(await windowsOf(stage, runId)).toMatchObject([
    { state: 'failed', error: '6 workers ended while they worked on this window' },
  ]);
  expect(new Set((await coverageRows(stage)).map(({ state }) => state))).toEqual(new Set(['failed']));
  expect(stage.sandbox.stats().requests).toBe(0);
});

test('a window that has lost fewer workers is worked on as usual', async () => {
  const stage = await openStage();
  const runId = await start(stage, ASKED);
  await stage.db.pool.query("update etl.windows set state = 'running', attempts = 5, lost_workers = 4");
  await stage.work();
  expect(await ended(stage, runId)).toMatchObject({ state: 'completed', requests: 1 });
});

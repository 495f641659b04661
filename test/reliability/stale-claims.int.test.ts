import { expect, test } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import type { FailureAction } from '../../src/jobs/policy/failure-policy.ts';
import { computeCallLimit, createSourceClock } from '../../src/jobs/policy/quota.ts';
import { cancelRun } from '../../src/jobs/runs/run-control.ts';
import { applyFailure } from '../../src/jobs/worker/apply-failure.ts';
import { claimWindow } from '../../src/state/windows/claim.ts';
import { coverageRows, openSetup, type Setup, start, windowsOf } from './support.ts';

const REQUESTED = {
  from: '2025-09-08',
  to: '2025-09-09',
  operations: ['GetSeriesChange'],
  exchanges: ['NSE'],
};

/** Claims a window as a worker does. */
async function claim(setup: Setup, windowId: number) {
  const callLimit = computeCallLimit(setup.config, setup.clock, createSourceClock(setup));
  const claimed = await claimWindow(setup.db.drizzle, windowId, callLimit);
  if (claimed.outcome !== 'claimed') throw new Error(`the claim was responded with ${claimed.outcome}`);
  return { window: claimed.window, callLimit };
}

const ACTIONS: readonly FailureAction[] = [
  { act: 'end', state: 'failed', scope: 'window' },
  { act: 'retry', delayMs: 1 },
  { act: 'postpone', delayMs: 1 },
  { act: 'split', days: 1 },
];

test('a worker that seemed lost and comes back with a failure leaves its window to the one that has it now', async () => {
  const setup = await openSetup();
  const runId = await start(setup, REQUESTED);
  const [planned] = await windowsOf(setup, runId);
  const job = { runId, windowId: planned?.id ?? 0 };
  const lost = await claim(setup, job.windowId);
  const holder = await claim(setup, job.windowId);
  const error = new PipelineError('the source is unreachable', { kind: 'network' });
  for (const action of ACTIONS) {
    await applyFailure(setup, { job, ...lost, error, action });
    expect(await windowsOf(setup, runId)).toMatchObject([{ state: 'running', attempts: 2, error: null }]);
  }
  expect(await coverageRows(setup)).toEqual([]);
  await applyFailure(setup, { job, ...holder, error, action: { act: 'retry', delayMs: 1 } });
  expect(await windowsOf(setup, runId)).toMatchObject([
    { state: 'pending', error: 'the source is unreachable' },
  ]);
});

test('a run that is cancelled while a call of it is refused as too old gets no further window', async () => {
  const setup = await openSetup();
  const runId = await start(setup, { ...REQUESTED, operations: ['GetBhavCopyCM'], to: '2025-09-08' });
  const [planned] = await windowsOf(setup, runId);
  const job = { runId, windowId: planned?.id ?? 0 };
  const claimed = await claim(setup, job.windowId);
  await cancelRun(setup, runId);
  const line = 'Date is out of allowed range.';
  const error = new PipelineError(line, { kind: 'range_refused', diagnostic: line });
  await applyFailure(setup, {
    job,
    ...claimed,
    error,
    action: { act: 'end', state: 'blocked', scope: 'window' },
  });
  expect(await windowsOf(setup, runId)).toMatchObject([{ id: job.windowId, state: 'cancelled' }]);
});

import { expect, test } from 'vitest';
import { manualClock } from '../sandbox/support.ts';
import { ended } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { at, closedHours, LIMITED, QUARTER, whenLimited } from './hours-support.ts';
import { openSetup, start } from './support.ts';

test('an hour that the source closed is tried by one call a minute, and is open again when it responds', async () => {
  const clock = manualClock(at('22:10:00'));
  const faults = [{ kind: 'diagnostic' as const, value: LIMITED, first: 2 }];
  const setup = await openSetup({ clock, settings: { EOD_CONCURRENCY: '1' }, behaviour: { faults } });
  const runId = await start(setup, QUARTER);
  await setup.work();
  await waitFor(async () => (await closedHours(setup)) === 1);
  await whenLimited(setup);
  // Nothing is requested before the minute is over, however many workers start.
  clock.moveTo(at('22:10:59'));
  await setup.work(2);
  await whenLimited(setup);
  expect(setup.sandbox.stats().requests).toBe(1);
  clock.moveTo(at('22:11:00'));
  await setup.work();
  await waitFor(() => setup.sandbox.stats().requests === 2);
  await whenLimited(setup);
  expect(await closedHours(setup)).toBe(1);
  clock.moveTo(at('22:12:00'));
  await setup.work();
  const report = await ended(setup, runId);
  expect(report).toMatchObject({ state: 'completed', requests: 64, windows: { loaded: 62 } });
  expect(await closedHours(setup)).toBe(0);
});

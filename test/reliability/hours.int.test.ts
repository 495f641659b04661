import { expect, test } from 'vitest';
import { manualClock } from '../sandbox/support.ts';
import { ended } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { at, closedHours, LIMITED, QUARTER, whenLimited } from './hours-support.ts';
import { openSetup, start } from './support.ts';

test('no call is made any more in an hour that the source closed, and the run goes on in the next one', async () => {
  const clock = manualClock(at('22:10:00'));
  const faults = [{ kind: 'diagnostic' as const, value: LIMITED, first: 1 }];
  const setup = await openSetup({ clock, settings: { EOD_CONCURRENCY: '1' }, behaviour: { faults } });
  const runId = await start(setup, QUARTER);
  await setup.work();
  await waitFor(async () => (await closedHours(setup)) === 1);
  await whenLimited(setup);
  // However many workers start.
  clock.moveTo(at('22:59:00'));
  await setup.work(2);
  await whenLimited(setup);
  expect(setup.sandbox.stats().requests).toBe(1);
  clock.moveTo(at('23:00:10'));
  await setup.work();
  expect(await ended(setup, runId)).toMatchObject({
    state: 'completed',
    requests: 63,
    windows: { loaded: 62 },
  });
});

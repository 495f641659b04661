import { describe, expect, test } from 'vitest';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { manualClock } from '../sandbox/support.ts';
import { ended, mostly } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';
import { EIGHT, LINES, paused } from './credential-support.ts';
import { accountsOf, coverageRows, openSetup, start, tally } from './support.ts';

describe.each(mostly('postgres'))('a refused key (queue on %s)', (backend) => {
  test('that dies in the middle of a run: nothing follows, what is open is blocked', async () => {
    const setup = await openSetup({ backend, behaviour: { keyDiesAfter: 5 } });
    const report = await setup.run({ ...EIGHT, from: '2025-08-18', to: '2025-09-05' });
    const { requests, byDiagnostic } = setup.sandbox.stats();
    expect(byDiagnostic['Key Expired.']).toBe(requests - 5);
    // Four workers at most had a call under way when the first of them was refused.
    expect(requests).toBeLessThanOrEqual(5 + 4);
    // The refusal ends windows in flight as well: up to three good responses may come too late to be stored.
    const { loaded, blocked, total } = report.windows;
    expect(report.state).toBe('failed');
    expect(loaded).toBeGreaterThanOrEqual(5 - 3);
    expect(loaded).toBeLessThanOrEqual(5);
    expect(blocked).toBe(total - loaded);
    expect(await paused(setup)).toEqual([true, true]);
    expect(tally((await coverageRows(setup)).map(({ state }) => state))).toMatchObject({ loaded });
    await accountsOf(setup, report);
  });
});

test.each(LINES)('every credential line stops everything after one call: %s', async (line) => {
  const setup = await openSetup({ behaviour: { faults: [{ kind: 'diagnostic', value: line }] } });
  const report = await setup.run({
    operations: ['GetBhavCopyCM', 'GetSeriesChange'],
    from: '2025-09-08',
    to: '2025-09-11',
  });
  expect(setup.sandbox.stats().requests).toBe(1);
  expect(report.windows.blocked).toBe(report.windows.total);
});

test('a resume with a key that is still refused costs one more call, and no more', async () => {
  const setup = await openSetup({ behaviour: { keyDiesAfter: 0 } });
  const report = await setup.run(EIGHT);
  await resumeRun(setup, report.runId);
  expect(await ended(setup, report.runId)).toMatchObject({ state: 'failed', windows: { blocked: 8 } });
  expect(setup.sandbox.stats().requests).toBe(2);
  // The queues pause after the windows have ended.
  await waitFor(async () => (await paused(setup)).every(Boolean));
});

test.each(['Calls limitation is reached.', 'Bandwidth limitation is reached.'])(
  'the monthly quota: what is left is blocked, with one alert and no further call: %s',
  async (line) => {
    const setup = await openSetup({
      settings: { EOD_CONCURRENCY: '1' },
      behaviour: { faults: [{ kind: 'diagnostic', value: line, every: 4 }] },
    });
    const report = await setup.run(EIGHT);
    expect(setup.sandbox.stats().requests).toBe(4);
    expect(report).toMatchObject({ state: 'failed', windows: { loaded: 3, blocked: 5 } });
    expect(report.error).toContain(line);
    await waitFor(async () => (await paused(setup)).every(Boolean));
    expect(tally((await coverageRows(setup)).map(({ state }) => state))).toEqual({ loaded: 3, blocked: 5 });
    await accountsOf(setup, report);
  },
);

/** Ten nights that each request its session and the three before, as nights do. */
const NIGHTS = Array.from({ length: 10 }, (_, night) => {
  const sessions = ['08-22', '08-25', '08-26', '08-28', '08-29', '09-01', '09-02', '09-03', '09-04', '09-05']
    .concat('09-08', '09-09', '09-10')
    .map((day) => `2025-${day}`);
  return { from: sessions[night] as string, to: sessions[night + 3] as string, tick: `night ${night}` };
});

const REQUESTED_NIGHTLY = {
  operations: ['GetBhavCopyCM', 'GetSeriesChange', 'GetCorporateActionsCategories'],
  exchanges: ['NSE'],
};

test('nights that piled up make each request once', async () => {
  const setup = await openSetup({ settings: { EOD_CONCURRENCY: '1' } });
  const runs: number[] = [];
  for (const night of NIGHTS) runs.push(await start(setup, { ...REQUESTED_NIGHTLY, ...night }));
  await setup.work();
  const reports = await Promise.all(runs.map((run) => ended(setup, run)));
  expect(new Set(reports.map(({ state }) => state))).toEqual(new Set(['completed']));
  const { byOperation } = setup.sandbox.stats();
  // Thirteen sessions; ranges of four sessions that cover them; one list that has no days.
  expect(byOperation).toMatchObject({ GetBhavCopyCM: 13, GetCorporateActionsCategories: 1 });
  expect(byOperation.GetSeriesChange).toBeLessThanOrEqual(5);
  const known = await coverageRows(setup);
  const days = (operation: string) =>
    known.filter((row) => row.operation === operation && row.state !== 'holiday').length;
  expect([days('GetBhavCopyCM'), days('GetSeriesChange')]).toEqual([13, 13]);
});

test('a refused key is tried once in half a day, however many nights were planned meanwhile', async () => {
  const clock = manualClock(Date.parse('2025-09-12T22:02:00+05:30'));
  const setup = await openSetup({
    clock,
    behaviour: { faults: [{ kind: 'diagnostic', value: 'Key Expired.', first: 3 }] },
  });
  const plan = (tick: string) => start(setup, { ...EIGHT, tick });
  const requests = () => setup.sandbox.stats().requests;
  const later = async (hours: number, minutes = 0) => {
    clock.moveTo(clock.now() + hours * 3_600_000 + minutes * 60_000);
    await setup.work();
  };
  const first = await plan('first');
  await setup.work();
  expect(await ended(setup, first)).toMatchObject({ windows: { blocked: 8 } });
  const second = await plan('second');
  const third = await plan('third');
  await later(11, 59);
  expect(requests()).toBe(1);
  await later(0, 1);
  expect(await ended(setup, third)).toMatchObject({ state: 'failed' });
  // What the later night requests as well was left to that.
  const { windows } = await ended(setup, second);
  expect(windows.skipped + windows.blocked).toBe(8);
  expect(requests()).toBe(2);
  expect(await paused(setup)).toEqual([true, true]);
  // It rests from the second refusal on, even where somebody lets the queues go on.
  const fourth = await plan('fourth');
  await later(11, 59);
  await setup.queues.windows.nightly.resume();
  expect(await ended(setup, fourth)).toMatchObject({ windows: { blocked: 8 }, requests: 0 });
  expect(requests()).toBe(2);
  await setup.queues.pause();
  const fifth = await plan('fifth');
  await later(0, 1);
  expect(await ended(setup, fifth)).toMatchObject({ state: 'failed' });
  expect(requests()).toBe(3);
  // Meanwhile the vendor has put the key right.
  const sixth = await plan('sixth');
  await later(12);
  expect(await ended(setup, sixth)).toMatchObject({ state: 'completed', windows: { loaded: 8 } });
  expect(requests()).toBe(11);
});

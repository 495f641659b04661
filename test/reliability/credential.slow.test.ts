import { describe, expect, test } from 'vitest';
import { resumeRun } from '../../src/jobs/runs/run-control.ts';
import { ended, mostly } from '../support/pipeline.ts';
import { EIGHT, LINES } from './credential-support.ts';
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
    expect(tally((await coverageRows(setup)).map(({ state }) => state))).toEqual({ loaded: 3, blocked: 5 });
    await accountsOf(setup, report);
  },
);

/** Ten nights, each of which requests four trading days, its own the last. */
const NIGHTS = Array.from({ length: 10 }, (_, night) => {
  const tradingDays = [
    '08-22',
    '08-25',
    '08-26',
    '08-28',
    '08-29',
    '09-01',
    '09-02',
    '09-03',
    '09-04',
    '09-05',
  ]
    .concat('09-08', '09-09', '09-10')
    .map((day) => `2025-${day}`);
  return { from: tradingDays[night] as string, to: tradingDays[night + 3] as string, tick: `night ${night}` };
});

const REQUESTED_NIGHTLY = {
  operations: ['GetBhavCopyCM', 'GetSeriesChange', 'GetCorporateActionsCategories'],
  exchanges: ['NSE'],
};

test('nights that piled up request each trading day and each list once, and at most one range for each night', async () => {
  const setup = await openSetup({ settings: { EOD_CONCURRENCY: '1' } });
  const runs: number[] = [];
  for (const night of NIGHTS) runs.push(await start(setup, { ...REQUESTED_NIGHTLY, ...night }));
  await setup.work();
  const reports = await Promise.all(runs.map((run) => ended(setup, run)));
  expect(new Set(reports.map(({ state }) => state))).toEqual(new Set(['completed']));
  const { byOperation } = setup.sandbox.stats();
  // Thirteen trading days; a range of four trading days for each night, the newest first; one list that has no days.
  expect(byOperation).toMatchObject({ GetBhavCopyCM: 13, GetCorporateActionsCategories: 1 });
  expect(byOperation.GetSeriesChange).toBeLessThanOrEqual(NIGHTS.length);
  const known = await coverageRows(setup);
  const days = (operation: string) =>
    known.filter((row) => row.operation === operation && row.state !== 'holiday').length;
  expect([days('GetBhavCopyCM'), days('GetSeriesChange')]).toEqual([13, 13]);
});

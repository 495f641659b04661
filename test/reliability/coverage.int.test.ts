import { expect } from 'vitest';
import { runExitCode, runText } from '../../src/cli/run-output.ts';
import { reportRun } from '../../src/state/runs/reports.ts';
import { manualClock } from '../sandbox/support.ts';
import { ended } from '../support/pipeline.ts';
import { accountsOf, coverageRows, openSetup, start, tally, test, windowsOf } from './support.ts';

const states = async (setup: Parameters<typeof coverageRows>[0]) =>
  Object.fromEntries((await coverageRows(setup)).map(({ day, state }) => [day, state]));

/** Among so few companies no series ever changes. */
const FEW = 13;

test('a holiday, an open day without records and one with records are distinguished', async () => {
  const setup = await openSetup({ instruments: FEW });
  const report = await setup.run({
    operations: ['GetBhavCopyCM', 'GetSeriesChange'],
    exchanges: ['NSE'],
    from: '2025-08-25',
    to: '2025-09-05',
  });
  expect(report.state).toBe('completed');
  const known = await coverageRows(setup);
  // Wednesday 27 August was a holiday.
  expect(tally(known.map(({ operation, state }) => `${operation} ${state}`))).toEqual({
    'GetBhavCopyCM loaded': 9,
    'GetBhavCopyCM holiday': 1,
    'GetSeriesChange empty': 9,
    'GetSeriesChange holiday': 1,
  });
  const holidays = known.filter(({ state }) => state === 'holiday').map(({ day }) => day);
  expect(holidays).toEqual(['2025-08-27', '2025-08-27']);
  // Weekends are no trading days: nothing is said of them.
  expect(known.map(({ day }) => day)).not.toContain('2025-08-30');
  await accountsOf(setup, report);
});

test('a range that is all holiday costs no call', async ({ setup }) => {
  const report = await setup.run({ operations: ['GetBhavCopyCM'], from: '2025-08-27', to: '2025-08-27' });
  expect(report).toMatchObject({ state: 'completed', requests: 0, windows: { skipped: 2 } });
  expect(await states(setup)).toEqual({ '2025-08-27': 'holiday' });
  expect(setup.sandbox.stats().requests).toBe(0);
});

test('what is due and not published is named by the backfill that requested it, and by no night', async () => {
  // The source is a day late.
  const sourceClock = manualClock(Date.parse('2025-09-11T18:15:00+05:30'));
  const setup = await openSetup({ sourceClock, instruments: FEW });
  const request = {
    operations: ['GetBhavCopyCM'],
    exchanges: ['NSE'],
    from: '2025-09-10',
    to: '2025-09-12',
  };
  const report = await setup.run(request);
  const [pair, days] = [
    { operation: 'GetBhavCopyCM', exchange: 'NSE' },
    { from: '2025-09-11', to: '2025-09-12' },
  ];
  expect(report).toMatchObject({
    state: 'completed',
    emptySessions: [{ ...pair, ...days, sessions: 2, notPublished: 2 }],
  });
  expect(runExitCode(report)).toBe(1);
  expect(runText(report, setup.config.EOD_TIMEZONE)).toContain(
    'Prices, bhavcopy_cm NSE: 2 trading days are not published yet (2025-09-11 to 2025-09-12)',
  );
  const night = await setup.run({ ...request, tick: 'night' });
  expect(night).toMatchObject({ state: 'completed', emptySessions: [] });
  expect(runExitCode(night)).toBe(0);

  sourceClock.moveTo(Date.parse('2025-09-12T21:20:00+05:30'));
  await setup.run(request);
  expect((await reportRun(setup, report.runId)).emptySessions).toEqual([]);
});

test('requested before the data is out, a day is not published, and is requested again afterwards', async () => {
  const clock = manualClock(Date.parse('2025-09-11T18:15:00+05:30'));
  const setup = await openSetup({ clock, instruments: FEW });
  const request = {
    operations: ['GetBhavCopyCM', 'GetSeriesChange'],
    exchanges: ['NSE'],
    from: '2025-09-10',
    to: '2025-09-11',
  };
  const early = await setup.run(request);
  expect(early).toMatchObject({ state: 'completed', emptySessions: [] });
  expect(runExitCode(early)).toBe(0);
  const before = (await coverageRows(setup)).filter(({ day }) => day === '2025-09-11');
  expect(before.map(({ operation, state }) => [operation, state])).toEqual([
    ['GetBhavCopyCM', 'not_published'],
    ['GetSeriesChange', 'not_published'],
  ]);

  clock.moveTo(Date.parse('2025-09-11T21:20:00+05:30'));
  const late = await start(setup, request);
  const report = await ended(setup, late);
  expect(report.state).toBe('completed');
  // What was loaded before is not requested again.
  const again = (await windowsOf(setup, late)).filter(({ state }) => state !== 'skipped');
  expect(again.every(({ to }) => to === '2025-09-11')).toBe(true);
  const after = (await coverageRows(setup)).filter(({ day }) => day === '2025-09-11');
  expect(after.map(({ operation, state }) => [operation, state])).toEqual([
    ['GetBhavCopyCM', 'loaded'],
    // Changes may still be published: that there are none is believed only after the nights that look back.
    ['GetSeriesChange', 'not_published'],
  ]);
});

test('a day that must hold records and came empty is requested again by the next run', async () => {
  const setup = await openSetup({
    behaviour: { faults: [] },
    clock: manualClock(Date.parse('2025-09-12T20:05:00+05:30')),
  });
  const request = {
    operations: ['GetBhavCopyCM'],
    exchanges: ['NSE'],
    from: '2025-09-12',
    to: '2025-09-12',
  };
  expect((await setup.run(request)).windows).toMatchObject({ empty: 1 });
  const again = await start(setup, request);
  expect((await ended(setup, again)).windows).toMatchObject({ empty: 1, skipped: 0 });
});

test('what was loaded stays loaded, whatever a later call meets', async () => {
  const setup = await openSetup({
    behaviour: { faults: [{ kind: 'diagnostic', value: 'Function not enabled.', every: 2 }] },
  });
  const request = {
    operations: ['GetBhavCopyCM'],
    exchanges: ['NSE'],
    from: '2025-09-11',
    to: '2025-09-11',
  };
  await setup.run(request);
  const again = await start(setup, { ...request, force: true });
  expect((await ended(setup, again)).windows).toMatchObject({ skipped: 1 });
  expect(await coverageRows(setup)).toMatchObject([
    { state: 'loaded', diagnostic: 'the key may not use this operation: Function not enabled.' },
  ]);
});

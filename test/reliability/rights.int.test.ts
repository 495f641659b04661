import { expect, test } from 'vitest';
import { notEnabled } from '../support/sandbox.ts';
import { accountsOf, coverageRows, openSetup, tally, windowsOf } from './support.ts';

const WEEK = { from: '2025-09-08', to: '2025-09-11' };

test('an operation the key has no right to is requested once; the others finish', async () => {
  const setup = await openSetup({
    settings: { EOD_CONCURRENCY: '1' },
    behaviour: { faults: notEnabled('GetBhavCopyCM') },
  });
  const report = await setup.run({
    ...WEEK,
    operations: ['GetBhavCopyCM', 'GetCircuitBreakers', 'GetSeriesChange'],
  });
  expect(report.state).toBe('failed');
  expect(setup.sandbox.stats().byOperation.GetBhavCopyCM).toBe(1);
  for (const one of report.operations) {
    const { total, blocked, failed } = one.windows;
    expect([one.operation, blocked, failed]).toEqual([
      one.operation,
      one.operation === 'GetBhavCopyCM' ? total : 0,
      0,
    ]);
  }
  const blocked = (await coverageRows(setup)).filter(({ operation }) => operation === 'GetBhavCopyCM');
  expect(tally(blocked.map(({ state, diagnostic }) => `${state}: ${diagnostic}`))).toEqual({
    'blocked: Function not enabled.': 8,
  });
  expect(await setup.queues.windows.backfill.isPaused()).toBe(false);
  await accountsOf(setup, report);
});

test('an instrument a trial key may not request is blocked alone', async () => {
  const value = 'Instrument is not allowed for Demo key.';
  const fault = { kind: 'diagnostic', value, params: { instrumentIdentifier: 'INFY' } } as const;
  const setup = await openSetup({ behaviour: { faults: [fault] } });
  const report = await setup.run({
    from: '2025-09-11',
    to: '2025-09-11',
    operations: ['GetFinRatioEOD'],
    exchanges: ['NSE'],
    instruments: ['TCS', 'INFY', 'M&M'],
  });
  expect(report.state).toBe('failed');
  const ends = (await windowsOf(setup, report.runId)).map(
    ({ instruments, state }) => `${instruments} ${state}`,
  );
  expect(tally(ends)).toEqual(
    Object.fromEntries(
      ['TCS loaded', 'INFY blocked', 'M&M loaded'].map((end) => [end, report.windows.total / 3]),
    ),
  );
  const infy = (await coverageRows(setup)).find(({ instrument }) => instrument === 'INFY');
  expect(infy).toMatchObject({ state: 'blocked', diagnostic: value });
  await accountsOf(setup, report);
});

test('a request without a filter is never sent', async () => {
  // The source requests a filter of this operation alone, and its dates always are one.
  const setup = await openSetup();
  const report = await setup.run({ ...WEEK, operations: ['GetSectoralClassification'] });
  expect(report.state).toBe('completed');
  expect(setup.sandbox.stats().byDiagnostic).toEqual({});
});

import { expect, test } from 'vitest';
import { accountsOf, coverageRows, openSetup, tally } from './support.ts';

const WEEK = { from: '2025-09-08', to: '2025-09-11' };

test('an exchange the key has no right to is requested once; the other finishes', async () => {
  const value = 'Data for requested exchange is disabled.';
  const setup = await openSetup({
    backend: 'redis',
    settings: { EOD_CONCURRENCY: '1' },
    behaviour: { faults: [{ kind: 'diagnostic', value, params: { exchange: 'BSE' } }] },
  });
  const report = await setup.run({ ...WEEK, operations: ['GetBhavCopyCM', 'GetTotalTradeHighlights'] });
  expect(report).toMatchObject({ state: 'completed', windows: { loaded: 4, skipped: 5 } });
  expect(setup.sandbox.stats().byDiagnostic).toEqual({ [value]: 1 });
  const states = (await coverageRows(setup)).map(({ exchange, state }) => `${exchange} ${state}`);
  expect(tally(states)).toEqual({ 'BSE blocked': 8, 'NSE loaded': 4 });
  await accountsOf(setup, report);
});

test('a single day out of range is blocked, and stops nothing else', async () => {
  // Three days back from Friday 12th: the 8th is beyond it.
  const setup = await openSetup({ behaviour: { historyDays: 3 } });
  const report = await setup.run({ ...WEEK, operations: ['GetBhavCopyCM'], exchanges: ['NSE'] });
  expect(report).toMatchObject({ state: 'failed', windows: { loaded: 3, blocked: 1 }, requests: 4 });
  const coverage = await coverageRows(setup);
  expect(coverage.map(({ day, state, diagnostic }) => [day, state, diagnostic])).toEqual([
    ['2025-09-08', 'blocked', 'Date is out of allowed range.'],
    ['2025-09-09', 'loaded', null],
    ['2025-09-10', 'loaded', null],
    ['2025-09-11', 'loaded', null],
  ]);
  await accountsOf(setup, report);
});

import { describe, expect } from 'vitest';
import { openSetup, tally, test, windowsOf } from './support.ts';

const FORTNIGHT = {
  operations: ['GetBhavCopyCM'],
  exchanges: ['NSE'],
  from: '2025-08-28',
  to: '2025-09-11',
};

describe('a source that is down', () => {
  test('as far as one operation goes fails no window of another', async () => {
    const setup = await openSetup({
      // A backfill has a sixtieth: on a slow machine, five failures in a row may take longer than a second.
      settings: { EOD_OUTAGE_PATIENCE_MS: '7200000', EOD_ATTEMPTS: '2' },
      behaviour: { faults: [{ kind: 'status', value: '503', operation: 'GetCircuitBreakers' }] },
    });
    const operations = ['GetCircuitBreakers', 'GetBhavCopyCM'];
    const report = await setup.run({ ...FORTNIGHT, from: '2025-07-28', operations });
    const ends = (await windowsOf(setup, report.runId)).map(
      ({ operation, state }) => `${operation} ${state}`,
    );
    expect(tally(ends)).toEqual({ 'GetCircuitBreakers failed': 32, 'GetBhavCopyCM loaded': 32 });
    // Responses of the other operation between them show that the source is up: each window has its two attempts.
    expect(setup.sandbox.stats().byOperation.GetCircuitBreakers).toBeLessThan(2 * 32 + 20);
  });

  test('that hangs is found out at a single day, before every long window was split', async () => {
    const setup = await openSetup({
      settings: { EOD_TIMEOUT_MS: '150', EOD_OUTAGE_PATIENCE_MS: '1000', EOD_CONCURRENCY: '1' },
      behaviour: { faults: [{ kind: 'hang' }] },
    });
    // Thirteen windows of 30 days: 390 days, each of which would time out.
    const report = await setup.run({
      operations: ['GetTotalTradeHighlights'],
      from: '2024-08-19',
      to: '2025-09-11',
    });
    expect(report.state).toBe('failed');
    expect(setup.sandbox.stats().requests).toBeLessThan(40);
  });
});

import { describe, expect, test } from 'vitest';
import { mostly } from '../support/pipeline.ts';
import { accountsOf, coverageRows, openSetup, tally, windowsOf } from './support.ts';

const WEEK = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'], from: '2025-09-08', to: '2025-09-11' };

const NOT_READY = 'Authentication request received. Try request data in next moment.';

describe.each(mostly('redis'))('data that is not ready yet (queue on %s)', (backend) => {
  test('is requested again, more often than a failure would be', async () => {
    const setup = await openSetup({ backend, settings: { EOD_ATTEMPTS: '2' }, behaviour: { notReady: 5 } });
    const report = await setup.run(WEEK);
    expect(report).toMatchObject({ state: 'completed', requests: 24, windows: { loaded: 4 } });
    expect(setup.sandbox.stats().byDiagnostic).toEqual({ [NOT_READY]: 20 });
    for (const window of await windowsOf(setup, report.runId)) {
      expect(window).toMatchObject({ state: 'loaded', attempts: 6, diagnostic: null, error: null });
    }
    await accountsOf(setup, report);
  });
});

describe('text nobody knows', () => {
  const text = `Scheduled maintenance ${'until the morning '.repeat(60)}`;

  test('is retried, then fails that window alone, with its first 500 characters', async () => {
    const setup = await openSetup({
      settings: { EOD_ATTEMPTS: '7', EOD_CONCURRENCY: '1' },
      behaviour: { faults: [{ kind: 'diagnostic', value: text, operation: 'GetCircuitBreakers' }] },
    });
    const report = await setup.run({
      from: '2025-09-11',
      to: '2025-09-11',
      exchanges: ['NSE'],
      operations: ['GetCircuitBreakers', 'GetBhavCopyCM'],
    });
    expect(report).toMatchObject({ state: 'failed', windows: { failed: 1, loaded: 1 } });
    const [window] = await windowsOf(setup, report.runId);
    expect(window).toMatchObject({ state: 'failed', attempts: 3, diagnostic: text.slice(0, 500) });
    expect(window?.error).toContain('text that is not data');
    expect(setup.sandbox.stats().byOperation).toEqual({ GetCircuitBreakers: 3, GetBhavCopyCM: 1 });
    expect(tally((await coverageRows(setup)).map(({ operation, state }) => `${operation} ${state}`))).toEqual(
      { 'GetBhavCopyCM loaded': 1, 'GetCircuitBreakers failed': 1 },
    );
    await accountsOf(setup, report);
  });
});

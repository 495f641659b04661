import { expect } from 'vitest';
import type { Fault } from '../../src/sandbox/index.ts';
import { accountsOf, coverageRows, openSetup, windowsOf } from './support.ts';

export const DAY = {
  operations: ['GetBhavCopyCM'],
  exchanges: ['NSE'],
  from: '2025-09-11',
  to: '2025-09-11',
};

/** Fault, what the window says when it strikes every time, and the settings it needs. */
type StrikingFault = [name: string, fault: Fault, sentence: RegExp, settings: Record<string, string>];

export const FAULTS: StrikingFault[] = [
  ['status 429', { kind: 'status', value: '429' }, /HTTP status 429/, {}],
  ['status 500', { kind: 'status', value: '500' }, /HTTP status 500/, {}],
  ['status 503', { kind: 'status', value: '503' }, /HTTP status 503/, {}],
  [
    'a reset connection',
    { kind: 'reset' },
    /the source cannot be reached/,
    // Five in a row count as an outage, which a backfill waits out for a sixtieth of this.
    { EOD_OUTAGE_PATIENCE_MS: '1000' },
  ],
  ['a body that breaks off', { kind: 'truncate' }, /in the middle of the response/, {}],
  [
    'a slow body',
    { kind: 'slow', value: '5000' },
    /no complete response within 300 ms/,
    { EOD_TIMEOUT_MS: '300' },
  ],
  ['no response', { kind: 'hang' }, /no complete response within 300 ms/, { EOD_TIMEOUT_MS: '300' }],
  ['an HTML page', { kind: 'html' }, /HTML page/, {}],
  ['half a JSON', { kind: 'half-json' }, /broken JSON/, {}],
  ['200 with nothing', { kind: 'empty-body' }, /it is empty/, {}],
];

/** A fault that strikes once does no harm; one that strikes every time fails its window. */
export async function expectRetried(...fault: StrikingFault): Promise<void> {
  const [, { kind, value }, sentence, settings] = fault;
  const struck = value === undefined ? { kind } : { kind, value };
  const setup = await openSetup({
    settings: { EOD_CONCURRENCY: '1', EOD_ATTEMPTS: '3', ...settings },
    behaviour: {
      faults: [
        { ...struck, operation: 'GetBhavCopyCM', first: 1 },
        { ...struck, operation: 'GetCircuitBreakers' },
      ],
    },
  });
  const report = await setup.run({ ...DAY, operations: ['GetBhavCopyCM', 'GetCircuitBreakers'] });
  const attempts = kind === 'reset' ? 5 : 3;
  const requests = 2 + attempts;
  expect(report).toMatchObject({ state: 'failed', requests, windows: { loaded: 1, failed: 1 } });
  const [passing, lasting] = await windowsOf(setup, report.runId);
  expect(passing).toMatchObject({ state: 'loaded', attempts: 2, error: null });
  expect(lasting).toMatchObject({ state: 'failed', attempts, diagnostic: null });
  expect(lasting?.error).toMatch(sentence);
  expect((await coverageRows(setup)).map(({ state }) => state)).toEqual(['loaded', 'failed']);
  await accountsOf(setup, report);
}

/** Those that `npm test` tries; the slow layer tries the others. */
export const USUAL_FAULTS = ['status 503', 'a body that breaks off', 'half a JSON'];

import { afterEach, expect, test, vi } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import { createRetry } from '../../src/load/database/retry.ts';

afterEach(() => vi.useRealTimers());

/** A step whose tries last so many seconds each and end without Postgres; the one after them succeeds. */
function step(seconds: readonly number[]) {
  vi.useFakeTimers({ toFake: ['Date'] });
  const left = [...seconds];
  return async () => {
    const lasts = left.shift();
    if (lasts === undefined) return 'done';
    vi.setSystemTime(Date.now() + lasts * 1_000);
    throw new PipelineError('gone', { kind: 'database_away' });
  };
}

const retry = createRetry({ forMs: 30_000, onRetry: () => undefined });

test('a long step that meets several short outages waits for each of them', async () => {
  expect(await retry(step([0, 25, 25, 25]))).toBe('done');
});

test('a Postgres that stays away is given up, however long each try lasts to notice', async () => {
  await expect(retry(step([0, 15, 15, 15]))).rejects.toThrow('gone');
});

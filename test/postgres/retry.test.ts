import { afterEach, expect, test, vi } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { createRetry } from '../../src/postgres/retry.ts';

afterEach(() => vi.useRealTimers());

/** A step whose tries each last so many seconds and find Postgres unreachable; the try after them succeeds. */
function step(seconds: readonly number[]) {
  vi.useFakeTimers({ toFake: ['Date'] });
  const left = [...seconds];
  return async () => {
    const lasts = left.shift();
    if (lasts === undefined) return 'done';
    vi.setSystemTime(Date.now() + lasts * 1_000);
    throw new PipelineError('gone', { kind: 'database_unreachable' });
  };
}

const retry = createRetry({ forMs: 30_000, onRetry: () => undefined });

test('a long step that meets several short outages waits for each of them', async () => {
  expect(await retry(step([0, 25, 25, 25]))).toBe('done');
});

test('a Postgres that stays unreachable is given up, however long each try takes to notice', async () => {
  await expect(retry(step([0, 15, 15, 15]))).rejects.toThrow('gone');
});

test('also without a retry, a broken connection is an error that names Postgres', async () => {
  const { pool, drizzle, close } = openDatabase({ url: 'postgres://eod@127.0.0.1:1/eod' });
  const away = { kind: 'database_unreachable', message: expect.stringMatching(/^Postgres: /) };
  await expect(pool.query('select 1')).rejects.toMatchObject(away);
  await expect(pool.connect()).rejects.toMatchObject(away);
  await expect(drizzle.execute('select 1')).rejects.toMatchObject({ cause: away });
  await close();
});

import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { QueueContext } from '../../../src/jobs/context.ts';
import { createChores } from '../../../src/jobs/worker/requeue.ts';
import { forAllAsync } from '../../support/for-all.ts';

test('a chore is done at first, then each time its interval is over, and sooner after an error', async () => {
  const chore = fc.record({
    everyMs: fc.integer({ min: 100, max: 1_000 }),
    retryMs: fc.integer({ min: 1, max: 100 }),
    fails: fc.array(fc.boolean(), { maxLength: 10 }),
  });
  await forAllAsync([fc.array(chore, { minLength: 1, maxLength: 4 })], {}, async (chores) => {
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(JSON.parse(line).msg) });
    const done = chores.map((): number[] => []);
    let now = 0;
    const doChores = createChores(
      { log } as unknown as QueueContext,
      chores.map(({ everyMs, retryMs, fails }, at) => ({
        everyMs,
        retryMs,
        problem: `chore ${at} failed`,
        work: async () => {
          const times = done[at]?.push(now) ?? 0;
          if (fails[times - 1] === true) throw new Error('no');
        },
      })),
    );
    while (now < 5_000) now = await doChores(now);
    for (const [at, { everyMs, retryMs, fails }] of chores.entries()) {
      const times = done[at] ?? [];
      expect(times[0]).toBe(0);
      for (const [nth, time] of times.slice(1).entries())
        expect(time - (times[nth] ?? 0)).toBe(fails[nth] === true ? retryMs : everyMs);
      const failed = fails.slice(0, times.length).filter(Boolean).length;
      expect(lines.filter((line) => line === `chore ${at} failed`)).toHaveLength(failed);
    }
  });
});

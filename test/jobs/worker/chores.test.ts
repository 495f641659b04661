import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { QueueContext } from '../../../src/jobs/context.ts';
import { createChores } from '../../../src/jobs/worker/chores.ts';
import { forAllAsync } from '../../support/for-all.ts';

test('a chore is done at first, then each time its interval has passed since its end, and sooner after an error', async () => {
  const chore = fc.record({
    everyMs: fc.integer({ min: 100, max: 1_000 }),
    retryMs: fc.integer({ min: 1, max: 100 }),
    fails: fc.array(fc.boolean(), { maxLength: 10 }),
    takesMs: fc.integer({ min: 0, max: 2_000 }),
  });
  await forAllAsync([fc.array(chore, { minLength: 1, maxLength: 4 })], {}, async (chores) => {
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(JSON.parse(line).msg) });
    const done = chores.map((): { from: number; to: number }[] => []);
    let now = 0;
    const doChores = createChores(
      { log } as unknown as QueueContext,
      chores.map(({ everyMs, retryMs, fails, takesMs }, at) => ({
        everyMs,
        retryMs,
        problem: `chore ${at} failed`,
        work: async () => {
          const times = done[at]?.push({ from: now, to: now + takesMs }) ?? 0;
          now += takesMs;
          if (fails[times - 1] === true) throw new Error('no');
        },
      })),
      () => now,
    );
    while (now < 20_000) now = Math.max(now, await doChores());
    for (const [at, { everyMs, retryMs, fails, takesMs }] of chores.entries()) {
      const times = done[at] ?? [];
      // Only chores that take their time delay others.
      const others = chores.reduce((sum, { takesMs }) => sum + takesMs, 0) - takesMs;
      expect(times[0]?.from).toBeLessThanOrEqual(others);
      for (const [nth, { from }] of times.slice(1).entries()) {
        const pause = from - (times[nth]?.to ?? 0);
        expect(pause).toBeGreaterThanOrEqual(fails[nth] === true ? retryMs : everyMs);
        expect(pause).toBeLessThanOrEqual((fails[nth] === true ? retryMs : everyMs) + 2 * others);
      }
      const failed = fails.slice(0, times.length).filter(Boolean).length;
      expect(lines.filter((line) => line === `chore ${at} failed`)).toHaveLength(failed);
    }
  });
});

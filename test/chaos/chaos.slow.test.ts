import { expect, test } from 'vitest';
import { runChaos } from '../support/chaos/run.ts';
import { SHORT } from '../support/chaos/workload.ts';

/** The short form, on one of the queues; `npm run test:chaos -- --kills 200` is the long one on both, with figures. */
test('what is loaded among kills, restarts, cut connections and failing responses is what an undisturbed load brings', async () => {
  const seed = Math.floor(Math.random() * 1_000_000);
  const backend = seed % 2 === 0 ? 'redis' : 'postgres';
  console.log(
    `chaos: seed ${seed}; again by: npm run test:chaos -- --short --kills 2 --workers 2 --delay 250 --backend ${backend} --seed ${seed}`,
  );
  const figures = await runChaos({
    seed,
    kills: 2,
    backends: [backend],
    workload: SHORT,
    workers: 2,
    delayMs: 250,
    report: () => undefined,
  });
  expect(figures).toHaveLength(1);
  for (const { problems, acts, rows } of figures) {
    expect(problems, `seed ${seed}, queue on ${backend}`).toEqual([]);
    expect(acts['kill -9 a worker']).toBe(2);
    expect(rows).toBeGreaterThan(3_000);
  }
}, 300_000);

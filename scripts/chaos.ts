// Runs the long form of the chaos tests: npm run test:chaos -- --kills 200 --seed 1
import { parseArgs } from 'node:util';
import type { Backend } from '../test/support/chaos/plan.ts';
import { type ChaosFigures, runChaos } from '../test/support/chaos/run.ts';
import { LONG, SHORT } from '../test/support/chaos/workload.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    backend: { type: 'string', default: 'redis,postgres' },
    workers: { type: 'string', default: '4' },
    delay: { type: 'string', default: '150' },
    short: { type: 'boolean', default: false },
  },
});

// Exits on signals, so that the processes that the tests have started are ended too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

const started = performance.now();
const report = (line: string) => {
  console.log(`${String(Math.round((performance.now() - started) / 1000)).padStart(5)} s  ${line}`);
};

function print(figures: ChaosFigures): void {
  const { problems, ...facts } = figures;
  console.log(JSON.stringify(facts, null, 2));
  for (const problem of problems) console.log(`PROBLEM (seed ${figures.seed}): ${problem}`);
}

const results = await runChaos({
  seed: Number(values.seed),
  kills: Number(values.kills),
  backends: values.backend.split(',') as Backend[],
  workload: values.short ? SHORT : LONG,
  workers: Number(values.workers),
  delayMs: Number(values.delay),
  report,
});
for (const figures of results) print(figures);
const wrong = results.some(({ problems }) => problems.length > 0);
console.log(wrong ? `failed with seed ${values.seed}` : `passed with seed ${values.seed}`);
process.exit(wrong ? 1 : 0);

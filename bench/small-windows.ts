// Windows of one row each, as the ratio operations make them: `npm run bench:small`. The source's quota is
// hundreds to thousands of calls an hour, so what counts is that this is far from the limit: docs/performance.md.
import { parseArgs } from 'node:util';
import { machineFacts, median } from './support/figures.ts';
import { startPipeline } from './support/pipeline.ts';
import { dropDatabase, freshDatabase, measured, startBenchServer } from './support/postgres.ts';
import { startHelper } from './support/process.ts';

const DAY = '2025-10-31';

const { values: flags } = parseArgs({
  options: {
    instruments: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
  },
});
const instruments = Array.from({ length: Number(flags.instruments) }, (_, at) => `SYMBOL${at}`);
const target = { operation: 'GetFinRatioEOD', exchange: 'NSE', from: DAY, to: DAY };
const request = { kind: 'backfill', instruments, options: {}, live: false } as const;

const server = await startBenchServer();
const source = startHelper('source.ts', ['1']);
const loads: number[] = [];
const reloads: number[] = [];
let windows = 0;
try {
  const { port } = await source.next<{ port: number }>();
  for (let round = 1; round <= Number(flags.rounds); round++) {
    const name = `bench_small_${round}`;
    const url = await freshDatabase(server.url, name);
    const pipeline = await startPipeline(url, port);
    const first = await measured(url, () =>
      pipeline.run({ ...request, targets: [{ ...target, refetchFrom: null }] }),
    );
    const again = await measured(url, () =>
      pipeline.run({ ...request, targets: [{ ...target, refetchFrom: DAY }] }),
    );
    windows = first.result.windows.total;
    loads.push(windows / first.seconds);
    reloads.push(windows / again.seconds);
    await pipeline.stop();
    await dropDatabase(server.url, name);
  }
} finally {
  await source.stop();
  await server.stop();
}

const figures = { windows, windowsPerSecond: median(loads), reloadedPerSecond: median(reloads) };
if (flags.json) console.log(JSON.stringify({ machine: machineFacts(), ...figures }));
else {
  console.log(`${machineFacts()}\n${windows} windows of one row, medians of ${flags.rounds} rounds`);
  console.log(
    `first load ${figures.windowsPerSecond.toFixed(0)} windows/s, identical reload ${figures.reloadedPerSecond.toFixed(0)} windows/s`,
  );
}

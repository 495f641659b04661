// A worker with a clock of its own, in a process of its own; argument: by how many milliseconds the
// clock is ahead of the machine's.
import { processCli } from '../../../src/cli/cli.ts';
import { createLifecycle } from '../../../src/cli/lifecycle.ts';
import { openContext } from '../../../src/cli/open-context.ts';
import { startWorker } from '../../../src/jobs/worker/worker.ts';

const ahead = Number(process.argv[2]);
const life = createLifecycle();
const context = await openContext(processCli(life), { source: true, wait: 'short' });
await life.open(
  () => startWorker({ ...context, clock: { now: () => Date.now() + ahead } }),
  (worker) => worker.stop(),
);
console.log('worker is up');
await life.stopped;
await life.close();
process.exit(0);

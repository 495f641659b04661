// A worker in a process of its own, by a clock that a test sets; argument: the file that says what it shows.
// Of the build, which starts sooner than the sources and is made anew before the tests.
import { readFileSync } from 'node:fs';
import { processCli } from '../../../dist/cli/cli.js';
import { createLifecycle } from '../../../dist/cli/lifecycle.js';
import { openContext } from '../../../dist/cli/open-context.js';
import { startWorker } from '../../../dist/jobs/worker/worker.js';

const file = process.argv[2];
const clock = {
  now() {
    const { standing, offset } = JSON.parse(readFileSync(file, 'utf8'));
    return standing ?? Date.now() + offset;
  },
};
const life = createLifecycle();
const context = await openContext(processCli(life), { source: true, wait: 'short' });
await life.open(
  () => startWorker({ ...context, clock }),
  (worker) => worker.stop(),
);
await life.stopped;
await life.close();
process.exit(0);

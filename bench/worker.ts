// The worker of the benchmarks: the pipeline's own, in a process of its own so that its memory is its own.
// Takes settings by message, says when it is ready, and on the next message stops and tells its figures.
import { once } from 'node:events';
import { processCli } from '../src/cli/cli.ts';
import { createLifecycle } from '../src/cli/lifecycle.ts';
import { openContext } from '../src/cli/open-context.ts';
import { loadConfig } from '../src/core/config.ts';
import { startWorker } from '../src/jobs/worker/worker.ts';

process.on('disconnect', () => process.exit(1));
const [settings] = (await once(process, 'message')) as [Record<string, string>];
const life = createLifecycle();
const config = loadConfig(settings);
const context = await openContext(processCli(life), { config, source: true, wait: 'short' });
const worker = await startWorker(context);
const started = process.cpuUsage();
process.send?.({ ready: true });
await once(process, 'message');
const cpu = process.cpuUsage(started);
await worker.stop();
await life.close();
process.send?.({
  // Kilobytes on every platform, as Node has it.
  peakRssBytes: process.resourceUsage().maxRSS * 1024,
  cpuSeconds: (cpu.user + cpu.system) / 1e6,
});
process.removeAllListeners('disconnect');
process.disconnect();

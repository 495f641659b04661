// A part of the pipeline in a process of its own: takes its task and its settings by message, says when it is
// ready, begins with the next message, and reports what came of it and what it took.
import { once } from 'node:events';
import { processCli } from '../../src/cli/cli.ts';
import { createLifecycle } from '../../src/cli/lifecycle.ts';
import { openContext } from '../../src/cli/open-context.ts';
import { loadConfig } from '../../src/core/config.ts';
import type { WorkContext } from '../../src/jobs/context.ts';
import { importFiles } from '../../src/jobs/import/import-files.ts';
import type { WindowJob } from '../../src/jobs/queue/queue.ts';
import { planReplay } from '../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../src/jobs/replay/work-replay.ts';
import { planRun } from '../../src/jobs/runs/plan-run.ts';
import { startWorker, workerSettings } from '../../src/jobs/worker/worker.ts';
import type { RunRequest } from '../../src/state/request.ts';
import { reportRun } from '../../src/state/runs/reports.ts';
import { loadLeast } from './least-window.ts';

/** Prepares a task; the function that it returns is called at the signal to begin. */
type Task = (context: WorkContext, input: never) => Promise<() => Promise<unknown>>;

const TASKS = {
  /** A worker, from the start; the signal stops it. */
  async work(context) {
    const worker = await startWorker(context);
    return () => worker.stop();
  },

  /** `eod replay`. */
  async replay(context) {
    return async () => {
      const start = performance.now();
      const runId = await planReplay(context, {});
      if (runId === null) throw new Error('no response is kept');
      await workReplay(context, runId, new AbortController().signal);
      const seconds = (performance.now() - start) / 1000;
      return { seconds, report: await reportRun(context, runId) };
    };
  },

  /** `eod import FOLDER`. */
  async import(context, folder: string) {
    return () => importFiles(context, { paths: [folder], force: false });
  },

  /** Plans a request and writes nothing. */
  async plan(context, request: RunRequest) {
    return async () => {
      const { windows } = await planRun(context, request);
      const requests: Record<string, number> = {};
      let planned = 0;
      for (const { operation, state } of windows) {
        planned += 1;
        if (state === 'pending') requests[operation] = (requests[operation] ?? 0) + 1;
      }
      return { windows: planned, requests };
    };
  },

  /** A worker whose jobs do nothing, or as little as any pipeline does, from the start; says when it had done so many. */
  async bareJobs(context, { jobs, leastOf }: BareJobs) {
    let done = 0;
    let ended: (at: number) => void = () => undefined;
    const all = new Promise<number>((resolve) => {
      ended = resolve;
    });
    const settings = workerSettings(context, context.config.EOD_CONCURRENCY);
    const worker = context.queues.work<WindowJob>(
      'backfill',
      async ({ data }) => {
        if (leastOf !== undefined) await loadLeast(context.db.pool, leastOf, data.windowId);
        done += 1;
        if (done === jobs) ended(Date.now());
      },
      settings,
    );
    return async () => {
      const endedAt = await all;
      await worker.close();
      return { endedAt };
    };
  },
} satisfies Record<string, Task>;

/** Jobs that do nothing, or the least for a window with the response at this address. */
interface BareJobs {
  readonly jobs: number;
  readonly leastOf?: string | undefined;
}

export type ChildTask = keyof typeof TASKS;

interface Order {
  readonly task: ChildTask;
  readonly settings: Readonly<Record<string, string>>;
  readonly input: never;
}

process.on('disconnect', () => process.exit(1));
const [order] = (await once(process, 'message')) as [Order];
const life = createLifecycle();
const config = loadConfig(order.settings);
const context = await openContext(processCli(life), { config, source: true, wait: 'short' });
const finish = await TASKS[order.task](context, order.input);
const started = process.cpuUsage();
process.send?.({ ready: true });
await once(process, 'message');
// A worker has worked until now, everything else begins.
const began = performance.now();
const result = await finish();
const seconds = (performance.now() - began) / 1000;
const cpu = process.cpuUsage(started);
await life.close();
process.send?.({
  result,
  seconds,
  // Kilobytes on every platform, as Node has it.
  peakRssMb: (process.resourceUsage().maxRSS * 1024) / 1e6,
  cpuSeconds: (cpu.user + cpu.system) / 1e6,
});
process.removeAllListeners('disconnect');
process.disconnect();

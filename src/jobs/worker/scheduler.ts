import type { QueueContext } from '../context.ts';
import type { TickJob } from './queue.ts';
import { processTick, syncSchedules } from './schedules.ts';
import { type RunningWorker, workerSettings } from './worker.ts';

/** How often the schedules are compared with the queue: one that lost its memory gets them back. */
const SYNC_MS = 60_000;

/** Keeps the schedules in the queue and plans the nights they announce. Any number may run. */
export async function startScheduler(context: QueueContext): Promise<RunningWorker> {
  await syncSchedules(context);
  // A tick that met an outage is repeated by the queue.
  const once = { ...context, db: context.db.withoutRetry };
  const worker = context.queues.work<TickJob>(
    'ticks',
    (job) => processTick(once, job),
    workerSettings(context, 1),
  );
  const timer = setInterval(() => {
    syncSchedules(once).catch((error) =>
      context.log.warn({ err: error }, 'could not compare the schedules with the queue'),
    );
  }, SYNC_MS);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await worker.close();
    },
  };
}

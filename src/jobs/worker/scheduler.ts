import type { Job } from 'bullmq';
import { systemClock, tradingDay } from '../../core/clock.ts';
import { endsWithin, oneAtATime } from '../../core/waits.ts';
import { ensureNextPartitions } from '../../load/merge/merge.ts';
import { operationNamed } from '../../operations/registry.ts';
import { readServerTime } from '../../postgres/inspect.ts';
import { takeSessionLock } from '../../postgres/session-lock.ts';
import type { QueueContext } from '../context.ts';
import { decideLocalFailure } from '../policy/failure-policy.ts';
import { tickJobPrefix } from '../queue/job-ids.ts';
import { queuedIds, type TickJob } from '../queue/queue.ts';
import { unknownYears } from '../responses/sync-sessions.ts';
import { catchUp } from '../runs/catch-up.ts';
import { nextTicks, nightOfTick, type PlannedSchedule, tickName } from '../runs/night-schedules.ts';
import { nightlyRequest } from '../runs/nightly-request.ts';
import { startRun } from '../runs/run-control.ts';
import { handToQueue } from './hand-to-queue.ts';
import { type RunningWorker, workerSettings } from './worker.ts';

/**
 * Makes the job schedulers in the queue those of the requested operations. Any number of processes may do this, one
 * after the other: BullMQ refuses a scheduler that is being added twice at the same time.
 */
export async function syncSchedules(context: QueueContext): Promise<PlannedSchedule[]> {
  const { config, db } = context;
  let planned: PlannedSchedule[] = [];
  // Not in a transaction: Redis may hang, and nothing that other sessions delete could be cleaned up meanwhile.
  const lock = await takeSessionLock(db, `eod:schedules:${config.EOD_QUEUE_PREFIX}`, async () => {
    planned = await updateSchedules(context);
  });
  await lock.release();
  return planned;
}

/** How many failed ticks the queue keeps. */
const KEPT_FAILURES = 100;

/** By how much the clock of a machine may differ from that of Postgres, for BullMQ to work with its ticks. */
const MAX_CLOCK_DIFFERENCE_MS = 300_000;

async function updateSchedules({ config, db, queues, log }: QueueContext): Promise<PlannedSchedule[]> {
  const now = await readServerTime(db.pool);
  const planned = nextTicks(config, { now: () => now });
  // BullMQ makes each tick by the clock of the process that takes the one before.
  const aheadMs = systemClock.now() - now;
  if (Math.abs(aheadMs) > MAX_CLOCK_DIFFERENCE_MS) {
    log.warn(
      { aheadMs },
      'the clock of this machine differs from that of Postgres: it keeps no schedules until it is set right',
    );
    return planned;
  }
  const known = await queues.ticks.getJobSchedulers();
  const ticks = [...(await queuedIds(queues.ticks))];
  for (const scheduler of known) {
    const id = scheduler.key;
    if (planned.some((schedule) => schedule.id === id)) continue;
    await queues.ticks.removeJobScheduler(id);
    log.info({ schedule: id }, 'removed a schedule that is no longer declared');
  }
  for (const { next, ...schedule } of planned) {
    const same = known.find((scheduler) => scheduler.key === schedule.id);
    const isSame = same?.pattern === schedule.pattern && same.tz === config.EOD_TIMEZONE;
    const prefix = tickJobPrefix(schedule.id);
    const ofSchedule = ticks.filter((id) => id.startsWith(prefix));
    // A process whose clock is ahead leaves its next tick in a night that is years away.
    const tooLate = ofSchedule.filter((id) => Number(id.slice(prefix.length)) > Date.parse(next));
    if (ofSchedule.length > tooLate.length) {
      // Upserting an unchanged scheduler would discard a tick that is due now. A tick whose scheduler the queue has lost
      // is worked on as well; after it there is no tick.
      if (isSame || same === undefined) continue;
    } else {
      // BullMQ adds each tick when it takes the one before, so a schedule whose tick the queue has lost, or has too late,
      // would have no other. What is left of either would keep BullMQ from adding the tick again.
      await queues.ticks.removeJobScheduler(schedule.id);
      const left = [same?.next, Date.parse(next)].map((at) => `${prefix}${at}`);
      for (const id of new Set([...left, ...tooLate])) await queues.ticks.remove(id);
    }
    await queues.ticks.upsertJobScheduler(
      schedule.id,
      { pattern: schedule.pattern, tz: config.EOD_TIMEZONE },
      {
        name: 'tick',
        data: { operation: schedule.operation, exchange: schedule.exchange },
        opts: { removeOnComplete: true, removeOnFail: KEPT_FAILURES },
      },
    );
  }
  return planned;
}

/** Plans the nightly run of a tick, unless the tick has a run already. */
export async function processTick(context: QueueContext, job: Job<TickJob>): Promise<void> {
  const { operation, exchange } = job.data;
  // By the time of the tick, not of the clock: a tick that is handled late is still for its own night.
  const due = job.opts.prevMillis ?? job.timestamp;
  const date = tradingDay(context.clock, nightOfTick({ operation, exchange }, due, context.config));
  const request = await nightlyRequest(context, { date, operation: operationNamed(operation), exchange });
  const years = unknownYears(context.calendar, request.targets);
  if (years.length > 0)
    context.log.warn(
      { years },
      'no calendar data for these years: Monday to Friday is assumed (EOD_CALENDAR_FILE)',
    );
  const runId = await startRun(context, request, {
    tick: tickName({ operation, exchange }, new Date(due)),
    requestedBy: 'schedule',
  });
  context.log.info(
    { operation, exchange, date, runId },
    runId === null ? 'the tick has a run already' : 'nightly run planned',
  );
}

/** Handles a tick. If that fails, BullMQ is instructed what the failure policy decides. */
async function workTick(context: QueueContext, job: Job<TickJob>, token: string | undefined): Promise<void> {
  try {
    const due = job.opts.prevMillis ?? job.timestamp;
    const earlyMs = due - (await readServerTime(context.db.pool));
    if (earlyMs > MAX_CLOCK_DIFFERENCE_MS) {
      // A process with the right clock adds it again, long before it is due.
      context.log.warn(
        { tick: job.data, earlyMs },
        'the clock of this machine is ahead: no night is planned',
      );
      return;
    }
    await processTick(context, job);
  } catch (error) {
    const action = decideLocalFailure(error);
    context.log.warn({ tick: job.data, err: error, action }, 'could not plan the nightly run');
    await handToQueue(job, token, action, error);
  }
}

/** How long a tick in progress may take to finish after a stop. */
const STOP_WITHIN_MS = 6_500;

/** How often the schedules are compared with those in the queue, which may have been lost. */
const SYNC_MS = 60_000;

/** Keeps the schedules in the queue and plans the nightly runs. Any number of processes may do this. */
export async function startScheduler(context: QueueContext): Promise<RunningWorker> {
  await syncSchedules(context);
  await ensureNextPartitions(context.db.pool);
  await catchUp(context).catch((error) =>
    context.log.warn({ err: error }, 'could not request what is missing of the last nights'),
  );
  // Without retry, because the failure policy postpones a tick when Postgres cannot be reached.
  const once = { ...context, db: context.db.withoutRetry };
  const worker = context.queues.work<TickJob>(
    'ticks',
    (job, token) => workTick(once, job, token),
    // The last ticks that could not be planned stay, to be looked at.
    { ...workerSettings(context, 1), removeOnFail: { count: KEPT_FAILURES } },
  );
  // While the queue's server hangs, each call would take one more connection.
  const syncOnce = oneAtATime(() => syncSchedules(once));
  const timer = setInterval(() => {
    syncOnce().catch((error) =>
      context.log.warn({ err: error }, 'could not compare the schedules with the queue'),
    );
    ensureNextPartitions(once.db.pool).catch((error) =>
      context.log.warn({ err: error }, 'could not create the partitions of the next year'),
    );
  }, SYNC_MS);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      // A tick that is not planned by then stalls, and another scheduler takes it.
      await endsWithin(worker.close(), STOP_WITHIN_MS);
    },
  };
}

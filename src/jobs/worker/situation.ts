import { AHEAD } from '../../declaration/operation.ts';
import { readRunAge } from '../../state/runs/runs.ts';
import { readSourceOutage } from '../../state/source/source-state.ts';
import type { ClaimedWindow } from '../../state/windows/claim.ts';
import { OPENING_FAILURES, type Situation } from '../policy/failure-policy.ts';
import { computeCallLimit, hourStart } from '../policy/quota.ts';
import type { WindowJob } from '../queue/queue.ts';
import { hourLeft, splittableDays, type WorkerContext } from './claim-call.ts';

/** What the failure policy needs to know of a window and the source. */
export async function readSituation(
  context: WorkerContext,
  job: WindowJob,
  window: ClaimedWindow | null,
  storeFailures: number,
): Promise<Situation> {
  const { config, kind, sourceClock } = context;
  const now = sourceClock.now();
  return {
    attempt: (window?.failedAttempts ?? 0) + 1,
    storeFailures,
    notReadyMs: window?.notReadyMs ?? 0,
    days: window === null ? 1 : splittableDays(window),
    isAhead: window?.variant === AHEAD,
    intoHourMs: now - hourStart(now, config.EOD_TIMEZONE),
    nextHourMs: hourLeft(context),
    outageMs: await readOutageMs(context, job.runId).catch(() => null),
    queue: kind,
    chance: Math.random(),
  };
}

/** For how long a run has waited for a source that is down, in milliseconds; null while it responds. */
async function readOutageMs({ config, clock, db }: WorkerContext, runId: number): Promise<number | null> {
  const { keyHash, now } = computeCallLimit(config, clock);
  const outage = await readSourceOutage(db.drizzle, keyHash, OPENING_FAILURES);
  return outage === null
    ? null
    : Math.min(now - Date.parse(outage.since), await readRunAge(db.drizzle, runId));
}

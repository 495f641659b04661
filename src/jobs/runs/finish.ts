import type { DayRange } from '../../core/days.ts';
import { emptyTradingDaysText } from '../../core/wording.ts';
import { databaseError } from '../../postgres/database-errors.ts';
import { takeSessionLock, trySessionLock } from '../../postgres/session-lock.ts';
import { checkQuality } from '../../quality/check-quality.ts';
import { settleRejects } from '../../state/rejects.ts';
import { listEmptyTradingDays } from '../../state/runs/outcomes.ts';
import {
  beginFollowUp,
  countTicks,
  type EndedRun,
  endFollowUp,
  type FollowedRun,
  finishRun,
  listRunsToFollowUp,
  type RunEnd,
  readNightOfRun,
} from '../../state/runs/runs.ts';
import type { Alert } from '../alerts/alert.ts';
import { alertsOfRun } from '../alerts/alerts-of-run.ts';
import { alertsOfNight } from '../alerts/complete-night.ts';
import { raiseAlerts } from '../alerts/send-alerts.ts';
import type { Context } from '../context.ts';
import { updateDerived } from '../events/update-derived.ts';
import { decideLocalFailure } from '../policy/failure-policy.ts';
import { syncTradingDays } from '../responses/sync-sessions.ts';
import { ticksToCome } from './night-schedules.ts';

/**
 * Ends a run that has no open window left, after what is derived from the rows is up to date with what it has loaded. If
 * that cannot be brought up to date, the run ends as failed; resuming it tries again.
 *
 * @param end the state to end in and why; null: as its windows have ended.
 * @returns the run if this call ended it, otherwise null.
 */
export async function closeRun(
  context: Context,
  runId: number,
  end: RunEnd | null = null,
): Promise<EndedRun | null> {
  const { db, log } = context;
  const failure = await derive(context, runId);
  const ended = await finishRun(db.drizzle, runId, end ?? failure);
  if (ended === null) return null;
  log.info({ runId, state: ended.state }, 'run has ended');
  return ended;
}

/**
 * @returns how the run ends if what is derived from the rows could not be brought up to date, otherwise null.
 * @throws PipelineError if Postgres is unreachable: then it is tried again.
 */
async function derive(context: Context, runId: number): Promise<RunEnd | null> {
  try {
    // The run may have stored earlier trading days than any before.
    await syncTradingDays(context);
    await updateDerived(context);
    return null;
  } catch (error) {
    const problem = databaseError(error);
    if (decideLocalFailure(problem).act !== 'end') throw problem;
    const message = 'instruments and corporate events could not be brought up to date';
    context.log.error({ runId, err: problem }, message);
    return { state: 'failed', error: `${message}: ${problem.message}` };
  }
}

/** The checks and alerts after a run are given up when they have failed this often. */
const FOLLOW_UP_ATTEMPTS = 5;

/**
 * Makes the checks and alerts that follow the end of a run, for each run that still needs them and that no other
 * process works on. A process may end between the end of a run and this, so every worker calls it from time to time.
 *
 * @param awaited waits until this run has them, no matter who works on it.
 */
export async function followUpRuns(context: Context, awaited?: number): Promise<void> {
  const { db, log } = context;
  for (const { id: runId, ...due } of await listRunsToFollowUp(db.drizzle)) {
    if (due.followUp === 'night' && (await nightFor(context, { id: runId, ...due })).isAwaited) continue;
    // The lock ends with the process that holds it, so that another one can begin at once.
    const name = `eod:follow-up:${runId}`;
    const lock = runId === awaited ? await takeSessionLock(db, name) : await trySessionLock(db, name);
    if (lock === null) continue;
    try {
      const run = await beginFollowUp(db.drizzle, runId);
      if (run === null) continue;
      const done = await followUp(context, run);
      if (done !== null) await endFollowUp(db.drizzle, run, done);
      else if (run.attempt >= FOLLOW_UP_ATTEMPTS) {
        await endFollowUp(db.drizzle, run, 'failed');
        log.error({ runId }, 'gave up the checks and alerts that follow the end of the run');
      }
    } finally {
      await lock.release();
    }
  }
}

/**
 * The night of a nightly run. The last run that ends makes the checks and alerts that are about the whole night, once no
 * other one is running or will be started by a schedule: schedules start runs hours apart.
 */
async function nightFor(
  { db, config, clock }: Context,
  run: Pick<EndedRun, 'id' | 'to'> & { readonly tick: string | null },
) {
  const { isLast, isOpen, ...days } = await readNightOfRun(db.drizzle, run);
  const ticks = run.tick === null ? [] : ticksToCome(run.tick, config, clock);
  const isAwaited = isLast && (isOpen || (await countTicks(db.drizzle, ticks)) < ticks.length);
  return { days, isAwaited, isOver: isLast && !isAwaited };
}

/** @returns null if a part of it failed, which is logged. The state of the run stays as it is. */
async function followUp(context: Context, run: FollowedRun): Promise<'night' | 'done' | null> {
  let done = true;
  const failed = (message: string) => (error: unknown) => {
    done = false;
    context.log.warn({ runId: run.id, err: error }, message);
  };
  const night =
    run.kind === 'nightly'
      ? await nightFor(context, run).catch(failed('could not determine whether the night is over'))
      : null;
  if (night?.isOver === true) {
    await checkNight(context, { ...night.days, runId: run.id }).catch(
      failed('could not check the data after the nightly runs'),
    );
  }
  let alerts: readonly Alert[] = [];
  if (run.followUp === 'due') {
    await settleRejects(context.db.drizzle).catch(failed('could not note which rejects are resolved'));
    await warnOfEmptyTradingDays(context, run).catch(
      failed('could not look for trading days that are empty'),
    );
    alerts =
      (await alertsOfRun(context, run).catch(failed('could not determine the alerts of the run'))) ?? [];
  }
  if (run.kind !== 'nightly' || night?.isOver === true) {
    const ofNight = await alertsOfNight(context).catch(
      failed('could not determine whether the night is complete'),
    );
    alerts = alerts.concat(ofNight ?? []);
  }
  if (!(await raiseAlerts(context, alerts)) || !done) return null;
  return night?.isAwaited === true ? 'night' : 'done';
}

async function warnOfEmptyTradingDays(context: Context, { id }: EndedRun): Promise<void> {
  for (const { operation, exchange, ...empty } of await listEmptyTradingDays(context, [id])) {
    context.log.warn(
      { runId: id, operation, exchange, sessions: empty.sessions },
      emptyTradingDaysText(empty),
    );
  }
}

async function checkNight(context: Context, night: DayRange & { readonly runId: number }): Promise<void> {
  const results = await checkQuality(context, night);
  const disagreements = results.filter(({ fresh }) => fresh > 0);
  if (disagreements.length > 0)
    context.log.warn({ runId: night.runId, found: disagreements }, 'data sets disagree: see the findings');
}

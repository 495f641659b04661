import { runEnded } from '../../core/events.ts';
import { trySessionLock } from '../../load/database/session-lock.ts';
import { updateObservedAliases } from '../../load/market/observed-aliases.ts';
import { databaseId } from '../../load/state/database-identity.ts';
import {
  beginFollowUp,
  type EndedRun,
  endFollowUp,
  finishRun,
  type RunEnd,
  runsToFollowUp,
} from '../../load/state/runs.ts';
import { alertsOfRun } from '../alerts/alerts-of-run.ts';
import { alertsOfNight } from '../alerts/complete-night.ts';
import { raiseAlerts } from '../alerts/send-alerts.ts';
import type { Context } from '../context.ts';
import { updateCorporateEvents } from '../events/update-events.ts';
import { checkQuality } from '../quality/check-quality.ts';

/**
 * Ends a run that has no open window left, once the names its loads have brought are in `market.instruments`, and what
 * they say of corporate actions in `market.corporate_events`.
 *
 * @returns the run when it was this call that ended it, else null.
 */
export async function closeRun(
  context: Context,
  runId: number,
  end: RunEnd | null = null,
): Promise<EndedRun | null> {
  const { db, log } = context;
  await updateObservedAliases(db);
  await updateCorporateEvents(context);
  const ended = await finishRun(db.drizzle, runId, end);
  if (ended === null) return null;
  log.info({ runId, state: ended.state }, 'run has ended');
  if (runEnded.hasSubscribers()) {
    const { id: run, ...facts } = ended;
    runEnded.publish({ run, database: await databaseId(db.drizzle), ...facts });
  }
  return ended;
}

/** A follow-up that has failed this often is given up. */
const FOLLOW_UP_ATTEMPTS = 5;

/**
 * Does what follows the end of runs, as far as no other process is at it: checks of the data and alerts. A
 * process may end at any time between the end of a run and this, so every worker looks again from time to time.
 */
export async function followUpRuns(context: Context): Promise<void> {
  const { db, log } = context;
  for (const runId of await runsToFollowUp(db.drizzle)) {
    // It ends with the process that holds it: then the next one may begin at once.
    const lock = await trySessionLock(db, `eod:follow-up:${runId}`);
    if (lock === null) continue;
    try {
      const run = await beginFollowUp(db.drizzle, runId);
      if (run === null) continue;
      const done = await followUp(context, run);
      if (done) await endFollowUp(db.drizzle, run, 'done');
      else if (run.attempt >= FOLLOW_UP_ATTEMPTS) {
        await endFollowUp(db.drizzle, run, 'failed');
        log.error({ runId }, 'gave up what follows the end of the run: its checks or alerts are missing');
      }
    } finally {
      await lock.release();
    }
  }
}

/** @returns false when a part of it failed, which is logged; the run stays as it ended. */
async function followUp(context: Context, run: EndedRun): Promise<boolean> {
  let done = true;
  const failed = (message: string) => (error: unknown) => {
    done = false;
    context.log.warn({ runId: run.id, err: error }, message);
  };
  if (run.kind === 'nightly') {
    await checkNight(context, run).catch(failed('the data could not be checked after the night'));
  }
  const alerts = await alertsOfRun(context, run).catch(
    failed('what the run should alert of could not be found out'),
  );
  const ofNight =
    run.kind === 'preview'
      ? []
      : await alertsOfNight(context).catch(failed('whether the night is complete could not be found out'));
  return (await raiseAlerts(context, [...(alerts ?? []), ...(ofNight ?? [])])) && done;
}

async function checkNight(context: Context, { id, from, to }: EndedRun): Promise<void> {
  const results = await checkQuality(context, { from, to, runId: id });
  const found = results.filter(({ fresh }) => fresh > 0);
  if (found.length > 0) context.log.warn({ runId: id, found }, 'data sets disagree: the findings say where');
}

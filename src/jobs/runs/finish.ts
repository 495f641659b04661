import { type EndedRun, finishRun, type RunEnd } from '../../load/state/runs.ts';
import { alertsOfRun } from '../alerts/alerts-of-run.ts';
import { raiseAlerts } from '../alerts/send-alerts.ts';
import type { Context } from '../context.ts';
import { checkQuality } from '../quality/check-quality.ts';

/**
 * Ends a run that has no open window left.
 *
 * @returns the run when it was this call that ended it, else null.
 */
export async function closeRun(
  { db, log }: Pick<Context, 'db' | 'log'>,
  runId: number,
  end: RunEnd | null = null,
): Promise<EndedRun | null> {
  const ended = await finishRun(db.drizzle, runId, end);
  if (ended !== null) log.info({ runId, state: ended.state }, 'run has ended');
  return ended;
}

/**
 * What follows the end of a run. The run stays as it ended: an error here is logged and
 * nothing more.
 */
export async function afterRun(context: Context, run: EndedRun): Promise<void> {
  if (run.kind === 'nightly') {
    await checkNight(context, run).catch((error) => {
      context.log.warn({ runId: run.id, err: error }, 'the data could not be checked after the night');
    });
  }
  const alerts = await alertsOfRun(context, run).catch((error) => {
    context.log.warn({ runId: run.id, err: error }, 'what the run should alert of could not be found out');
    return [];
  });
  await raiseAlerts(context, alerts);
}

async function checkNight(context: Context, { id, from, to }: EndedRun): Promise<void> {
  const results = await checkQuality(context, { from, to, runId: id });
  const found = results.filter(({ fresh }) => fresh > 0);
  if (found.length > 0) context.log.warn({ runId: id, found }, 'data sets disagree: the findings say where');
}

import { type ErrorKind, messageOf, PipelineError } from '../../core/errors.ts';
import { sourceCallEnded } from '../../core/events.ts';
import { acceptKeyInRun } from '../../state/runs/runs.ts';
import { noteSourceFailed, noteSourceResponded } from '../../state/source/source-state.ts';
import { uncountCall } from '../../state/windows/claim.ts';
import { outageAlert } from '../alerts/alert.ts';
import { raiseAlerts } from '../alerts/send-alerts.ts';
import { assessEvidence, OPENING_FAILURES, OUTAGE_ALERT_MS } from '../policy/failure-policy.ts';
import { enqueueRun, liftRateLimits } from '../queue/enqueue.ts';
import { type ClaimedCall, splittableDays, type WorkerContext } from './claim-call.ts';

/**
 * Records what a call has shown about the source and the key. Never throws, so that no response is lost
 * because of it: what could not be recorded, the next call shows as well.
 *
 * @param error why the call failed; null: it got a response.
 */
export async function afterCall(
  context: WorkerContext,
  call: ClaimedCall,
  error: unknown,
  seconds: number,
): Promise<void> {
  const { operation, exchange } = call.window;
  const kind: ErrorKind = error instanceof PipelineError ? error.kind : 'network';
  sourceCallEnded.publish({ operation, exchange, seconds, outcome: error === null ? 'success' : kind });
  await recordEvidence(context, call, error).catch((err) =>
    context.log.warn({ err }, 'could not record what a call has shown about the source'),
  );
}

async function recordEvidence(
  context: WorkerContext,
  { window, callLimit }: ClaimedCall,
  error: unknown,
): Promise<void> {
  const { db } = context;
  const { source, key } =
    error === null ? { source: 'success', key: 'accepted' } : assessEvidence(error, splittableDays(window));
  if (error instanceof PipelineError && error.isUnsent === true)
    await uncountCall(db.drizzle, window, callLimit);
  if (source === 'failure') await recordFailure(context, callLimit, messageOf(error));
  if (source !== 'success' || key === 'refused') return;
  if (window.isInDoubt) {
    await noteSourceResponded(db.drizzle, callLimit.keyHash, key === 'accepted');
    await liftRateLimits(context);
  }
  // The other windows of the run have waited for this call.
  if (window.isFirst && (await acceptKeyInRun(db.drizzle, window.runId)))
    await enqueueRun(context, window.runId);
}

/** Records that the source did not respond, and raises an alert if it has not for a while. */
async function recordFailure(
  context: WorkerContext,
  callLimit: ClaimedCall['callLimit'],
  failure: string,
): Promise<void> {
  const { failures, since } = await noteSourceFailed(context.db.drizzle, callLimit, failure);
  if (failures < OPENING_FAILURES || callLimit.now - Date.parse(since) < OUTAGE_ALERT_MS) return;
  await raiseAlerts(context, [outageAlert({ cause: failure, since }, context.config.EOD_TIMEZONE)]);
}

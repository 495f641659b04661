import type { PipelineError } from '../../core/errors.ts';
import { responsesWaiting } from '../../core/events.ts';
import { noteStorageProblem, workerName } from '../../load/state/workers.ts';
import type { Alert } from '../alerts/alert.ts';
import { raiseAlerts } from '../alerts/send-alerts.ts';
import type { Context } from '../context.ts';

/**
 * The circuit breaker for Postgres: remembers, for all windows of a process, which responses it has refused to store.
 * While one of them waits, no call is made, because each costs a part of the quota and could not be stored either.
 */
export interface Storage {
  /** True if a response waits until Postgres can store it. */
  isRefusing(): boolean;
  /** The response of this window could not be stored, and will be tried again. Raises an alert; never throws. */
  refused(windowId: number, problem: PipelineError): Promise<void>;
  /** The response of this window is stored, or given up. Never throws. */
  settled(windowId: number): Promise<void>;
}

/** Creates a breaker whose circuit is closed: Postgres stores what it is given. */
export function createStorage(context: Pick<Context, 'clock' | 'config' | 'db' | 'log'>): Storage {
  const { db, log } = context;
  const waiting = new Set<number>();
  let alerted = false;

  async function report(problem: string | null): Promise<void> {
    responsesWaiting.publish({ responses: waiting.size });
    await noteStorageProblem(db.drizzle, workerName(), problem).catch((error) =>
      log.warn({ err: error }, 'could not store whether this worker can store responses'),
    );
  }

  return {
    isRefusing: () => waiting.size > 0,
    async refused(windowId, problem) {
      const isLasting = waiting.has(windowId) && !alerted;
      alerted ||= isLasting;
      waiting.add(windowId);
      await report(problem.message);
      if (isLasting) await raiseAlerts(context, [storageAlert(problem.message)]);
    },
    async settled(windowId) {
      if (!waiting.delete(windowId)) return;
      if (waiting.size > 0) return responsesWaiting.publish({ responses: waiting.size });
      alerted = false;
      log.info('Postgres stores responses again');
      await report(null);
    },
  };
}

function storageAlert(problem: string): Alert {
  return {
    kind: 'cannot_store',
    subject: workerName(),
    message: `Postgres cannot store responses (${problem}); no call is made until it can: see its disk and its log`,
    facts: { problem },
  };
}

import type { PipelineError } from '../../core/errors.ts';
import { answersWaiting } from '../../core/events.ts';
import { noteStorageProblem, workerName } from '../../load/state/workers.ts';
import type { Alert } from '../alerts/alert.ts';
import { raiseAlerts } from '../alerts/send-alerts.ts';
import type { Context } from '../context.ts';

/**
 * The circuit breaker for Postgres: remembers, for all windows of a process, which answers it has refused to store.
 * While one of them waits, no call is made, because each costs a part of the quota and could not be stored either.
 */
export interface Storage {
  /** Does an answer wait until Postgres can store it? */
  isRefusing(): boolean;
  /** The answer of this window could not be stored, and will be tried again. Tells people; never throws. */
  refused(windowId: number, problem: PipelineError): Promise<void>;
  /** The answer of this window is stored, or given up. Never throws. */
  settled(windowId: number): Promise<void>;
}

/** Creates a breaker whose circuit is closed: Postgres stores what it is given. */
export function createStorage(context: Pick<Context, 'clock' | 'config' | 'db' | 'log'>): Storage {
  const { db, log } = context;
  const waiting = new Set<number>();
  let alerted = false;

  async function report(problem: string | null): Promise<void> {
    answersWaiting.publish({ answers: waiting.size });
    await noteStorageProblem(db.drizzle, workerName(), problem).catch((error) =>
      log.warn({ err: error }, 'could not store whether this worker can store answers'),
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
      if (waiting.size > 0) return answersWaiting.publish({ answers: waiting.size });
      alerted = false;
      log.info('Postgres stores answers again');
      await report(null);
    },
  };
}

function storageAlert(problem: string): Alert {
  return {
    kind: 'cannot_store',
    subject: workerName(),
    message: `Postgres cannot store answers (${problem}); no call is made until it can: see its disk and its log`,
    facts: { problem },
  };
}

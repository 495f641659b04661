import type { PipelineError } from '../../core/errors.ts';
import { responsesWaiting } from '../../core/events.ts';
import { sharesSessions } from '../../postgres/pooler.ts';
import { noteStorageProblem, workerName } from '../../state/workers.ts';
import type { Alert } from '../alerts/alert.ts';
import { raiseAlerts } from '../alerts/send-alerts.ts';
import type { Context } from '../context.ts';

/**
 * The circuit breaker for Postgres: remembers, for all windows of a process, which responses it has refused to store.
 * While one of them waits, no call is made, because each costs a part of the quota and could not be stored either.
 */
export type Storage = ReturnType<typeof createStorage>;

/** How often it is looked whether a pooler still shares sessions; that takes a few connections. */
const LOOK_EVERY_MS = 2_000;

/** Creates a breaker whose circuit is closed: Postgres stores what it is given. */
export function createStorage(context: Pick<Context, 'clock' | 'config' | 'db' | 'log'>) {
  const { db, log } = context;
  const waiting = new Set<number>();
  let alerted = false;
  let isShared = false;
  let nextLook = 0;

  async function report(problem: string | null): Promise<void> {
    responsesWaiting.publish({ responses: waiting.size });
    await noteStorageProblem(db.drizzle, workerName(), problem).catch((error) =>
      log.warn({ err: error }, 'could not store whether this worker can store responses'),
    );
  }

  return {
    /** True if a response waits until Postgres can store it, or while a pooler shares sessions. */
    async isRefusing(): Promise<boolean> {
      // That a load succeeds meanwhile shows nothing: it may have met the trading day that it had before.
      if (isShared && performance.now() >= nextLook) {
        nextLook = performance.now() + LOOK_EVERY_MS;
        isShared = await sharesSessions(db.pool).catch(() => true);
        if (isShared) return true;
        log.info('each connection to Postgres has a session of its own again');
        if (waiting.size === 0) await report(null);
      }
      return isShared || waiting.size > 0;
    },
    /** A statement has met a session that is not its own. Raises an alert; never throws. */
    async sessionShared(problem: PipelineError): Promise<void> {
      const isKnown = isShared;
      isShared = true;
      if (isKnown) return;
      nextLook = performance.now() + LOOK_EVERY_MS;
      await report(problem.message);
      await raiseAlerts(context, [cannotStore(`no call is made: ${problem.message}`, problem)]);
    },
    /** The response of this window could not be stored, and will be tried again. Raises an alert; never throws. */
    async refused(windowId: number, problem: PipelineError): Promise<void> {
      const isLasting = waiting.has(windowId) && !alerted;
      alerted ||= isLasting;
      waiting.add(windowId);
      await report(problem.message);
      if (!isLasting) return;
      const message = `Postgres cannot store responses (${problem.message}); no call is made until it can: see its disk and its log`;
      await raiseAlerts(context, [cannotStore(message, problem)]);
    },
    /** The response of this window is stored, or given up. Never throws. */
    async released(windowId: number): Promise<void> {
      if (!waiting.delete(windowId)) return;
      if (waiting.size > 0) return responsesWaiting.publish({ responses: waiting.size });
      alerted = false;
      if (isShared) return responsesWaiting.publish({ responses: 0 });
      log.info('Postgres stores responses again');
      await report(null);
    },
  };
}

function cannotStore(message: string, problem: PipelineError): Alert {
  return { kind: 'cannot_store', subject: workerName(), message, facts: { problem: problem.message } };
}

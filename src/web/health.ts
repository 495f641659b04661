import type { FastifyInstance } from 'fastify';
import { answersWaiting } from '../core/events.ts';
import { oneAtATime, within } from '../core/waits.ts';
import type { QueueContext } from '../jobs/context.ts';
import { isReadOnly } from '../load/database/inspect.ts';
import { refuseForeignHosts } from './access.ts';
import { createMetrics } from './metrics.ts';

export interface HttpOptions {
  /** What this process does: scheduler, worker, web. The dashboard is served with `web`. */
  readonly roles: readonly string[];
  /** Aborted once the process begins to stop. */
  readonly stopping: AbortSignal;
}

/**
 * Serves `GET /healthz` (200 while the process lives) and `GET /readyz` (200 while it can work: database and queue
 * answer, and Postgres stores) as JSON, and `GET /metrics` for Prometheus. None of them needs a password; the metrics are refused to foreign hosts, as the pages are.
 */
export function serveHealth(
  app: FastifyInstance,
  context: QueueContext,
  { roles, stopping }: HttpOptions,
): void {
  const started = performance.now();
  let waitingAnswers = 0;
  const stopListening = answersWaiting.subscribe(({ answers }) => {
    waitingAnswers = answers;
  });
  const checkReadiness = oneAtATime(() => readiness(context, stopping, waitingAnswers));
  const metrics = createMetrics(context, roles);
  app.addHook('onClose', async () => {
    stopListening();
    metrics.close();
  });
  app.get('/healthz', async (_, reply) => {
    const seconds = Math.round((performance.now() - started) / 1000);
    return reply.header('cache-control', 'no-store').send({ status: 'alive', roles, seconds });
  });
  app.get('/readyz', async (_, reply) => {
    const facts = await checkReadiness();
    return reply
      .code(facts.isReady ? 200 : 503)
      .header('cache-control', 'no-store')
      .send(facts);
  });
  app.get('/metrics', { onRequest: refuseForeignHosts(context.config) }, async (_, reply) =>
    reply.header('content-type', metrics.contentType).send(await metrics.text()),
  );
}

/** @param waitingAnswers how many answers this process has that Postgres does not store. */
async function readiness({ db, queues, log }: QueueContext, stopping: AbortSignal, waitingAnswers: number) {
  const check = async (what: string, work: () => Promise<unknown>) => {
    try {
      await within(work());
      return 'ok';
    } catch (error) {
      // Details may contain hosts and users, so they only go to the log.
      log.warn({ err: error }, `readiness: the ${what} does not answer`);
      return 'no answer';
    }
  };
  const readState = async () => {
    readOnly = await isReadOnly(db.withoutRetry.pool);
  };
  let readOnly = false;
  const [database, queue] = await Promise.all([
    check('database', readState),
    check('queue', () => queues.ticks.getJobCounts()),
  ]);
  const storage = readOnly ? 'read-only' : waitingAnswers > 0 ? 'refuses' : 'ok';
  const works = [database, queue, storage].every((state) => state === 'ok');
  const isReady = works && !stopping.aborted;
  const facts = { database, queue, storage, waitingAnswers };
  return { isReady, ...facts, isStopping: stopping.aborted };
}

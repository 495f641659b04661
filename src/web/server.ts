import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Config } from '../core/config.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { responsesWaiting } from '../core/events.ts';
import { oneAtATime, within } from '../core/waits.ts';
import type { QueueContext } from '../jobs/context.ts';
import type { PipelineState } from '../jobs/runs/pipeline-state.ts';
import { readCurrent } from '../jobs/runs/read-status.ts';
import { readServerFacts } from '../postgres/inspect.ts';
import { refuseForeignHosts, refuseNul, refuseWrites } from './access.ts';
import { createMetrics } from './metrics.ts';

/** Limits for clients: a request that is not complete in this time is refused. */
const REQUEST_WITHIN_MS = 5_000;
const CONNECTIONS = 256;
const BODY_BYTES = 64 * 1024;

/**
 * Serves health and metrics, and with the role `web` the dashboard, on EOD_HTTP_HOST:EOD_HTTP_PORT.
 *
 * @throws PipelineError `usage` if the port is in use.
 */
export async function startHttpServer(context: QueueContext, options: HttpOptions) {
  const { EOD_HTTP_HOST: host, EOD_HTTP_PORT: port } = context.config;
  const isDashboard = options.roles.includes('web');
  const app = createApp(context.config);
  serveHealth(app, context, options);
  if (isDashboard) {
    // Loaded here, because a worker serves no pages.
    const { serveDashboard } = await import('./dashboard.tsx');
    await serveDashboard(app, context, options.isDemo === true);
  } else {
    respondToOthers(app);
  }
  app.server.maxConnections = CONNECTIONS;
  try {
    await app.listen({ port, host });
  } catch (error) {
    await app.close();
    throw usageError(
      `cannot listen on ${host}:${port}: ${messageOf(error)} (see EOD_HTTP_HOST, EOD_HTTP_PORT)`,
    );
  }
  // Only logged: a connection that cannot be accepted affects nobody else.
  app.server.on('error', (error) => context.log.warn({ err: error }, 'http server'));
  const bound = (app.server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: () => app.close(),
  };
}

function createApp({ EOD_TRUSTED_PROXIES: trusted }: Config): FastifyInstance {
  const limits = {
    requestTimeout: REQUEST_WITHIN_MS,
    headersTimeout: REQUEST_WITHIN_MS,
    connectionsCheckingInterval: 1_000,
  };
  const app = fastify({
    serverFactory: (handler) => createServer(limits, handler),
    bodyLimit: BODY_BYTES,
    trustProxy: trusted ?? false,
    // Open connections must not keep the process from exiting.
    forceCloseConnections: true,
    // An address that cannot be parsed must not end the process.
    frameworkErrors: (error, _, reply: FastifyReply) => {
      void reply.code(error.statusCode ?? 400).send({ error: error.message });
    },
  });
  app.removeAllContentTypeParsers();
  app.addHook('onRequest', refuseWrites);
  app.addHook('onRequest', refuseNul);
  return app;
}

/** Responds to all other requests where there is no dashboard. */
function respondToOthers(app: FastifyInstance): void {
  app.setNotFoundHandler((_, reply) =>
    reply.code(404).send({ error: 'there are /healthz, /readyz and /metrics' }),
  );
}

interface HttpOptions {
  /** What this process does: scheduler, worker, web. The dashboard is served with `web`. */
  readonly roles: readonly string[];
  /** Aborted once the process begins to stop. */
  readonly stopping: AbortSignal;
  /** Whether it shows the data of the demo. */
  readonly isDemo?: boolean;
}

/**
 * Serves `GET /healthz` (200 while the process lives) and `GET /readyz` (200 while it can work: database and queue
 * respond, and Postgres stores) as JSON, and `GET /metrics` for Prometheus. None of them needs a password; the metrics
 * are refused to foreign hosts, as the pages are.
 */
function serveHealth(app: FastifyInstance, context: QueueContext, { roles, stopping }: HttpOptions): void {
  const started = performance.now();
  let waitingResponses = 0;
  const stopListening = responsesWaiting.subscribe(({ responses }) => {
    waitingResponses = responses;
  });
  const once = { ...context, db: context.db.withoutRetry };
  // A database that is slow is not asked again before it has responded.
  const readPipeline = oneAtATime(() => readPipelineState(once));
  const checkReadiness = oneAtATime(async () => {
    const [facts, pipeline] = await Promise.all([
      readiness(once, stopping, waitingResponses),
      // The status is about this process, whatever the state of the pipeline.
      within(readPipeline()).catch(() => null),
    ]);
    return { ...facts, pipeline };
  });
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

async function readPipelineState(context: QueueContext): Promise<PipelineState> {
  const { state, cause, since, runId } = (await readCurrent(context)).pipeline;
  return { state, cause, since, runId };
}

/** @param waitingResponses how many responses this process has that Postgres does not store. */
async function readiness({ db, queues, log }: QueueContext, stopping: AbortSignal, waitingResponses: number) {
  const check = async (part: string, work: () => Promise<unknown>) => {
    try {
      await within(work());
      return 'ok';
    } catch (error) {
      // Details may contain hosts and users, so they only go to the log.
      log.warn({ err: error }, `readiness: the ${part} does not respond`);
      return 'no response';
    }
  };
  let readOnly = false;
  const noteReadOnly = async () => {
    ({ readOnly } = await readServerFacts(db.pool));
  };
  const [database, queue] = await Promise.all([
    check('database', noteReadOnly),
    check('queue', () => queues.ticks.getJobCounts()),
  ]);
  const storage = readOnly ? 'read-only' : waitingResponses > 0 ? 'refuses' : 'ok';
  const works = [database, queue, storage].every((state) => state === 'ok');
  const isReady = works && !stopping.aborted;
  const facts = { database, queue, storage, waitingResponses };
  return { isReady, ...facts, isStopping: stopping.aborted };
}

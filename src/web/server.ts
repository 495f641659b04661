import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Config } from '../core/config.ts';
import { contradictions } from '../core/consistent-settings.ts';
import { messageOf, usageError } from '../core/errors.ts';
import type { QueueContext } from '../jobs/context.ts';
import { refuseNul } from './access.ts';
import { type HttpOptions, serveHealth } from './health.ts';

/** Limits for clients: a request that is not complete in this time is refused. */
const REQUEST_WITHIN_MS = 5_000;
const CONNECTIONS = 256;
const BODY_BYTES = 64 * 1024;

interface HttpServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves health and metrics, and with the role `web` the dashboard, on EOD_HTTP_HOST:EOD_HTTP_PORT.
 *
 * @throws PipelineError `usage` if the port is in use, or if the dashboard must not be served with these settings.
 */
export async function startHttpServer(context: QueueContext, options: HttpOptions): Promise<HttpServer> {
  const { EOD_HTTP_HOST: host, EOD_HTTP_PORT: port } = context.config;
  const isDashboard = options.roles.includes('web');
  const problem = contradictions(context.config).find(({ state }) => state === 'failed');
  if (isDashboard && problem !== undefined) throw usageError(problem.found);
  const app = createApp(context.config);
  serveHealth(app, context, options);
  if (isDashboard) {
    // Loaded here, because a worker serves no pages.
    const { serveDashboard } = await import('./dashboard.tsx');
    await serveDashboard(app, context);
  } else {
    answerOthers(app);
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
  // Only forms are parsed, and only if there are buttons.
  app.removeAllContentTypeParsers();
  app.addHook('onRequest', refuseNul);
  return app;
}

/** Answers other requests to a process without a dashboard. */
function answerOthers(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return reply.code(405).header('allow', 'GET, HEAD').send({ error: 'GET only' });
    }
    return reply.code(404).send({ error: 'there are /healthz, /readyz and /metrics' });
  });
}

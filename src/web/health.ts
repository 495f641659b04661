import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf, usageError } from '../core/errors.ts';
import type { QueueContext } from '../jobs/context.ts';
import { longLockWaits } from '../load/database/lock-waits.ts';
import { createMetrics } from './metrics.ts';
import { oneAtATime, within } from './waits.ts';

/** Bounds on what a client can hold: a request that is not whole by then is refused. */
const REQUEST_WITHIN_MS = 5_000;
const CONNECTIONS = 256;

interface HealthServer {
  readonly url: string;
  close(): Promise<void>;
}

interface HealthOptions {
  /** What this process does: scheduler, worker. */
  readonly roles: readonly string[];
  /** Aborted once the process has begun to stop: it is alive, and no longer ready. */
  readonly stopping: AbortSignal;
}

/**
 * Answers `GET /healthz` (200 while the process lives) and `GET /readyz` (200 while it can work:
 * database and queue answer, and no session of ours is stuck at a lock) with JSON, and `GET /metrics` in the format of
 * Prometheus, on EOD_HTTP_HOST:EOD_HTTP_PORT.
 *
 * @throws PipelineError `usage` when the port is taken.
 */
export async function startHealthServer(
  context: QueueContext,
  { roles, stopping }: HealthOptions,
): Promise<HealthServer> {
  const { EOD_HTTP_HOST: host, EOD_HTTP_PORT: port } = context.config;
  const started = performance.now();
  const checkReadiness = oneAtATime(() => readiness(context, stopping));
  const metrics = createMetrics(context, roles);
  const limits = {
    requestTimeout: REQUEST_WITHIN_MS,
    headersTimeout: REQUEST_WITHIN_MS,
    connectionsCheckingInterval: 1_000,
  };
  const server = createServer(limits, (request, response) => {
    // Anybody may send anything: `GET //` is no address, and must not end the process.
    const target = request.url ?? '/';
    if (!URL.canParse(target, 'http://localhost')) return answer(response, 400, { error: 'no such address' });
    const path = new URL(target, 'http://localhost').pathname;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return answer(response, 405, { error: 'GET only' });
    }
    if (path === '/healthz') {
      const seconds = Math.round((performance.now() - started) / 1000);
      return answer(response, 200, { status: 'alive', roles, seconds });
    }
    if (path === '/metrics') {
      void metrics
        .text()
        .then((text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text));
      return;
    }
    if (path !== '/readyz') {
      return answer(response, 404, { error: 'there are /healthz, /readyz and /metrics' });
    }
    void checkReadiness().then((facts) => answer(response, facts.ready ? 200 : 503, facts));
  });
  server.maxConnections = CONNECTIONS;
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw usageError(
      `cannot listen on ${host}:${port}: ${messageOf(error)} (see EOD_HTTP_HOST, EOD_HTTP_PORT)`,
    );
  }
  // A connection that cannot be accepted is the client's loss.
  server.on('error', (error) => context.log.warn({ err: error }, 'health server'));
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      metrics.close();
    },
  };
}

async function readiness({ db, queues, log }: QueueContext, stopping: AbortSignal) {
  const check = async (what: string, work: () => Promise<unknown>) => {
    try {
      await within(work());
      return 'ok';
    } catch (error) {
      // Details may name hosts and users: they belong into the log.
      log.warn({ err: error }, `readiness: the ${what} does not answer`);
      return 'no answer';
    }
  };
  // Where the wait is over soon nobody need look; where it has lasted half of what is allowed, somebody should.
  const stuckMs = db.timeouts.lockMs / 2;
  const readWaits = async () => {
    waits = await longLockWaits(db.withoutRetry.pool, stuckMs);
  };
  let waits: Awaited<ReturnType<typeof longLockWaits>> = [];
  const [database, queue] = await Promise.all([
    check('database', readWaits),
    check('queue', () => queues.ticks.getJobCounts()),
  ]);
  for (const wait of waits) log.warn(wait, 'readiness: waits for a lock');
  const ready = database === 'ok' && queue === 'ok' && waits.length === 0 && !stopping.aborted;
  return { ready, database, queue, lockWaits: waits.length, stopping: stopping.aborted };
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(body)}\n`);
}

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, usageError } from '../core/errors.ts';
import type { QueueContext } from '../jobs/context.ts';

/** A check that takes longer counts as failed. */
const CHECK_WITHIN_MS = 2_000;

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
 * database and queue answer) with JSON on EOD_HTTP_HOST:EOD_HTTP_PORT.
 *
 * @throws PipelineError `usage` when the port is taken.
 */
export async function startHealthServer(
  context: QueueContext,
  { roles, stopping }: HealthOptions,
): Promise<HealthServer> {
  const { EOD_HTTP_HOST: host, EOD_HTTP_PORT: port } = context.config;
  const started = performance.now();
  const server = createServer((request, response) => {
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
    if (path !== '/readyz') return answer(response, 404, { error: 'there are /healthz and /readyz' });
    readiness(context, stopping).then(
      (facts) => answer(response, facts.ready ? 200 : 503, facts),
      (error) => answer(response, 503, { ready: false, error: messageOf(error) }),
    );
  });
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw usageError(
      `cannot listen on ${host}:${port}: ${messageOf(error)} (see EOD_HTTP_HOST, EOD_HTTP_PORT)`,
    );
  }
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
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
  const [database, queue] = await Promise.all([
    check('database', () => db.withoutRetry.pool.query('select 1')),
    check('queue', () => queues.ticks.getJobCounts()),
  ]);
  const ready = database === 'ok' && queue === 'ok' && !stopping.aborted;
  return { ready, database, queue, stopping: stopping.aborted };
}

async function within(work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  const late = sleep(CHECK_WITHIN_MS, undefined, { signal: done.signal, ref: false }).then(() => {
    throw new Error(`no answer within ${CHECK_WITHIN_MS} ms`);
  });
  late.catch(() => undefined);
  try {
    await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(body)}\n`);
}

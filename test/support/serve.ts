import type { QueueContext } from '../../src/jobs/context.ts';
import { startHttpServer } from '../../src/web/server.ts';
import { closeAfterTest } from './closing.ts';

/** Starts what serves HTTP in a process with these roles, until the test ends. */
export async function serve(context: QueueContext, roles: readonly string[] = [], stopping?: AbortSignal) {
  const server = await startHttpServer(context, {
    roles,
    stopping: stopping ?? new AbortController().signal,
  });
  closeAfterTest(() => server.close());
  return server;
}

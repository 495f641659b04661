import type { Config } from '../../core/config.ts';
import { messageOf } from '../../core/errors.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';

export default defineCommand({
  path: 'status',
  group: 'Look',
  summary: 'Show what is loaded, what is missing, what was rejected, and what is being worked on.',
  examples: ['eod status', 'eod status --json'],
  async run(cli, { json }) {
    const { readStatus } = await import('../../jobs/runs/read-status.ts');
    const { openContext } = await import('../open-context.ts');
    const { statusText } = await import('../status-text.ts');
    const context = await openContext(cli);
    const status = await readStatus(context);
    const queueProblem = await redisProblem(context.config);
    if (json) {
      const { isUnused: _, ...facts } = status;
      return printJson(cli, { ...facts, queueProblem });
    }
    print(cli, statusText(status, context.config, queueProblem, cli.demo === true));
  },
});

/** Why Redis cannot be used; null if it can, or if none is set. */
async function redisProblem({ REDIS_URL }: Config): Promise<string | null> {
  if (REDIS_URL === undefined) return null;
  const { checkRedis } = await import('../reachable.ts');
  return checkRedis(REDIS_URL, { forMs: 0, onRetry: () => undefined }).then(
    () => null,
    (error) => messageOf(error),
  );
}

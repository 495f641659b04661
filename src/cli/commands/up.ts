import { type Cli, type Commands, loadSettings, logStderr } from '../cli.ts';
import { examples, parseChoices } from '../options.ts';

const ROLES = ['scheduler', 'worker'] as const;

export const commands: Commands = {
  up(command, cli) {
    command
      .option('--roles <list>', 'what to do: scheduler, worker or both', ROLES.join(','))
      .addHelpText('after', examples('eod up', 'eod up --roles worker'))
      .action((flags: { readonly roles: string }) => up(cli, flags.roles));
  },
};

async function up(cli: Cli, text: string): Promise<void> {
  const { life } = cli;
  const roles = [...new Set(parseChoices('--roles', text, ROLES, 'role'))];
  const config = await loadSettings(cli);
  const { openContext } = await import('../open-context.ts');
  const { startHealthServer } = await import('../../web/health.ts');
  const { startScheduler } = await import('../../jobs/worker/scheduler.ts');
  const { startWorker } = await import('../../jobs/worker/worker.ts');
  const { startAlertWatch } = await import('../../jobs/alerts/watch.ts');
  // Only the worker talks to the source; a scheduler alone needs neither its address nor the key.
  const worker = roles.includes('worker')
    ? await openContext(cli, { config, source: true, wait: 'long' })
    : null;
  const context = worker ?? (await openContext(cli, { config, queue: true, wait: 'long' }));
  const health = await life.open(
    () => startHealthServer(context, { roles, stopping: life.signal }),
    (opened) => opened.close(),
  );
  if (roles.includes('scheduler')) {
    await life.open(
      () => startScheduler(context),
      (opened) => opened.stop(),
    );
  }
  if (worker !== null) {
    await life.open(
      () => startWorker(worker),
      (opened) => opened.stop(),
    );
  }
  await life.open(
    async () => startAlertWatch(context),
    (opened) => opened.stop(),
  );
  logStderr(cli, `eod is up (${roles.join(' and ')}); health: ${health.url}/healthz`);
  if (config.DATABASE_URL === undefined) logStderr(cli, `its private Postgres: psql '${context.db.url}'`);
  await life.stopped;
}

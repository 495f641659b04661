import { logNote } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { words } from '../options.ts';

/** What a process of `eod up` may do. */
const ROLES = ['scheduler', 'worker', 'web'] as const;

export default defineCommand({
  path: 'up',
  group: 'Load',
  summary:
    'Run as a service: start the nightly runs on schedule, work on every open run, serve the dashboard. Stops on SIGTERM or Ctrl-C.',
  options: {
    roles: {
      ...words('what this process does: scheduler, worker, web (the dashboard)', ROLES, 'role'),
      default: ROLES,
      defaultText: `"${ROLES.join(',')}"`,
    },
  },
  json: false,
  examples: ['eod up', 'eod up --roles worker'],
  async run(cli, { roles }) {
    const { startAlertWatch } = await import('../../jobs/alerts/late-data.ts');
    const { startScheduler } = await import('../../jobs/worker/scheduler.ts');
    const { startWorker } = await import('../../jobs/worker/worker.ts');
    const { openContext } = await import('../open-context.ts');
    const { logDashboard, serve } = await import('../serve-dashboard.ts');
    const { life } = cli;
    const config = await loadSettings(cli);
    // Only a worker calls the source; a scheduler needs neither its address nor the key.
    const needs = { config, schedules: roles.includes('scheduler'), wait: 'long' } as const;
    const worker = roles.includes('worker') ? await openContext(cli, { ...needs, source: true }) : null;
    const context = worker ?? (await openContext(cli, { ...needs, queue: true }));
    const url = await serve(cli, context, roles);
    // Stopped side by side, because each may have to wait for a server that does not respond.
    const running = await life.open(
      async (): Promise<{ stop(): Promise<void> }[]> => [],
      (parts) => Promise.all(parts.map((part) => part.stop())),
    );
    if (roles.includes('scheduler')) {
      await life.open(async () => running.push(await startScheduler(context)));
    }
    if (worker !== null) await life.open(async () => running.push(await startWorker(worker)));
    running.push(startAlertWatch(context));
    logNote(cli, `eod is up (${roles.join(', ')}); health: ${url}/healthz`);
    if (roles.includes('web')) logDashboard(cli, config, url);
    if (config.DATABASE_URL === undefined) logNote(cli, `its private Postgres: psql '${context.db.url}'`);
    await life.stopped;
  },
});

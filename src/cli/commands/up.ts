import { startAlertWatch } from '../../jobs/alerts/late-data.ts';
import { startScheduler } from '../../jobs/worker/scheduler.ts';
import { startWorker } from '../../jobs/worker/worker.ts';
import { type Cli, loadSettings, logNote } from '../cli.ts';
import { openContext } from '../open-context.ts';
import type { ROLES } from '../options.ts';
import { logDashboard, serve } from './web-command.ts';

export async function up(cli: Cli, { roles }: { readonly roles: typeof ROLES }): Promise<void> {
  const { life } = cli;
  const config = await loadSettings(cli);
  // Only a worker calls the source; a scheduler needs neither its address nor the key.
  const needs = { config, schedules: roles.includes('scheduler'), wait: 'long' } as const;
  const worker = roles.includes('worker') ? await openContext(cli, { ...needs, source: true }) : null;
  const context = worker ?? (await openContext(cli, { ...needs, queue: true }));
  const url = await serve(cli, context, roles);
  // Stopped side by side, because each may have to wait for a server that is silent.
  const running: { stop(): Promise<void> }[] = [];
  await life.open(
    async () => undefined,
    () => Promise.all(running.map((part) => part.stop())),
  );
  if (roles.includes('scheduler')) {
    await life.open(async () => running.push(await startScheduler(context)));
  }
  if (worker !== null) await life.open(async () => running.push(await startWorker(worker)));
  running.push(startAlertWatch(context));
  logNote(cli, `eod is up (${roles.join(' and ')}); health: ${url}/healthz`);
  if (roles.includes('web')) await logDashboard(cli, config, url);
  if (config.DATABASE_URL === undefined) logNote(cli, `its private Postgres: psql '${context.db.url}'`);
  await life.stopped;
}

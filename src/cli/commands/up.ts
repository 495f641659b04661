import type { Config } from '../../core/config.ts';
import type { QueueContext } from '../../jobs/context.ts';
import { type Cli, type Commands, loadSettings, logNote } from '../cli.ts';
import { examples, integerOption, parseChoices } from '../options.ts';

const ROLES = ['scheduler', 'worker', 'web'] as const;

export const commands: Commands = {
  up(command, cli) {
    command
      .option(
        '--roles <list>',
        'what this process does: scheduler, worker, web (the dashboard)',
        ROLES.join(','),
      )
      .addHelpText('after', examples('eod up', 'eod up --roles worker'))
      .action((flags: { readonly roles: string }) => up(cli, flags.roles));
  },
  web(command, cli) {
    command
      .addOption(
        integerOption('--port <n>', 'listen on this port instead of EOD_HTTP_PORT; 0: a free one', {
          least: 0,
          most: 65_535,
        }),
      )
      .addHelpText('after', examples('eod web', 'eod web --port 8081', 'eod --demo web'))
      .action((flags: { readonly port?: number }) => web(cli, flags));
  },
};

async function up(cli: Cli, text: string): Promise<void> {
  const { life } = cli;
  const roles = [...new Set(parseChoices('--roles', text, ROLES, 'role'))];
  const config = await loadSettings(cli);
  const { openContext } = await import('../open-context.ts');
  const { startScheduler } = await import('../../jobs/worker/scheduler.ts');
  const { startWorker } = await import('../../jobs/worker/worker.ts');
  const { startAlertWatch } = await import('../../jobs/alerts/late-data.ts');
  // Only a worker calls the source; a scheduler needs neither its address nor the key.
  const worker = roles.includes('worker')
    ? await openContext(cli, { config, source: true, wait: 'long' })
    : null;
  const context = worker ?? (await openContext(cli, { config, queue: true, wait: 'long' }));
  const url = await serve(cli, context, roles);
  // Stopped side by side, because each may have to wait for a server that is silent.
  const running: { stop(): Promise<void> }[] = [];
  await life.open(
    async () => undefined,
    () => Promise.all(running.map((one) => one.stop())),
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

/** Serves the dashboard alone, which needs neither the source's address nor the key. */
async function web(cli: Cli, { port }: { readonly port?: number }): Promise<void> {
  const settings = await loadSettings(cli);
  const config = port === undefined ? settings : { ...settings, EOD_HTTP_PORT: port };
  const { openContext } = await import('../open-context.ts');
  const context = await openContext(cli, { config, queue: true, wait: 'long' });
  await logDashboard(cli, config, await serve(cli, context, ['web']));
  await cli.life.stopped;
}

/** Serves HTTP until the command ends. @returns the address. */
async function serve(cli: Cli, context: QueueContext, roles: readonly string[]): Promise<string> {
  const { startHttpServer } = await import('../../web/server.ts');
  const { life } = cli;
  const server = await life.open(
    () => startHttpServer(context, { roles, stopping: life.signal }),
    (opened) => opened.close(),
  );
  return server.url;
}

async function logDashboard(cli: Cli, config: Config, url: string): Promise<void> {
  const { isOpenToNetwork } = await import('../../core/consistent-settings.ts');
  logNote(cli, `dashboard: ${url}/`);
  if (isOpenToNetwork(config)) {
    logNote(cli, 'eod: whoever reaches this address can read the dashboard; EOD_WEB_PASSWORD closes it');
  }
}

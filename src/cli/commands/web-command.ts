import type { Config } from '../../core/config.ts';
import { isOpenToNetwork } from '../../core/consistent-settings.ts';
import type { QueueContext } from '../../jobs/context.ts';
import { startHttpServer } from '../../web/server.ts';
import { type Cli, loadSettings, logNote } from '../cli.ts';
import { openContext } from '../open-context.ts';

/** Serves the dashboard alone, which needs neither the source's address nor the key. */
export async function web(cli: Cli, { port }: { readonly port?: number }): Promise<void> {
  const settings = await loadSettings(cli);
  const config = port === undefined ? settings : { ...settings, EOD_HTTP_PORT: port };
  const context = await openContext(cli, { config, queue: true, wait: 'long' });
  await logDashboard(cli, config, await serve(cli, context, ['web']));
  await cli.life.stopped;
}

/** Serves HTTP until the command ends. @returns the address. */
export async function serve(cli: Cli, context: QueueContext, roles: readonly string[]): Promise<string> {
  const { life } = cli;
  const server = await life.open(() =>
    startHttpServer(context, { roles, stopping: life.signal, isDemo: cli.demo === true }),
  );
  return server.url;
}

export async function logDashboard(cli: Cli, config: Config, url: string): Promise<void> {
  logNote(cli, `dashboard: ${url}/`);
  if (isOpenToNetwork(config)) {
    logNote(cli, 'eod: anyone who reaches this address can read the dashboard; EOD_WEB_PASSWORD closes it');
  }
}

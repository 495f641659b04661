import type { Config } from '../core/config.ts';
import { isOpenToNetwork } from '../core/consistent-settings.ts';
import type { QueueContext } from '../jobs/context.ts';
import { startHttpServer } from '../web/server.ts';
import { type Cli, logNote } from './cli.ts';

/** Serves HTTP until the command ends. @returns the address. */
export async function serve(cli: Cli, context: QueueContext, roles: readonly string[]): Promise<string> {
  const { life } = cli;
  const server = await life.open(() =>
    startHttpServer(context, { roles, stopping: life.signal, isDemo: cli.demo === true }),
  );
  return server.url;
}

export function logDashboard(cli: Cli, config: Config, url: string): void {
  logNote(cli, `dashboard: ${url}/`);
  if (isOpenToNetwork(config)) {
    logNote(cli, 'eod: anyone who reaches this address can read the dashboard; EOD_WEB_PASSWORD closes it');
  }
}

import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { redactor } from '../core/log.ts';
import { alertBody, postJson } from '../jobs/alerts/alerts.ts';
import { type Cli, examples } from './command.ts';
import { print, say } from './output.ts';

export function alertCommand(program: Command, cli: Cli): Command {
  const alert = program
    .command('alert')
    .description('Alerts: where they go, and whether they arrive.')
    .addHelpText('after', examples('eod alert test'));
  alert
    .command('test')
    .description('Send a test alert to EOD_ALERT_WEBHOOK; exit code 1 when it does not arrive.')
    .addHelpText('after', examples('eod alert test'))
    .action(() => test(cli));
  return alert;
}

async function test(cli: Cli): Promise<void> {
  const { EOD_ALERT_WEBHOOK: address } = loadConfig();
  if (address === undefined) {
    throw usageError('set EOD_ALERT_WEBHOOK to the address alerts shall be posted to');
  }
  const { host } = new URL(address);
  const body = alertBody({
    ...{ kind: 'test', subject: 'test', message: 'this is a test alert; nothing is wrong' },
    facts: {},
    raisedAt: new Date().toISOString(),
  });
  try {
    await postJson(address, body, cli.life.signal);
    print(`${host} took the test alert`);
  } catch (error) {
    say(`${host} did not take the test alert: ${redactor([address])(messageOf(error))}`);
    cli.exitCode = 1;
  }
}

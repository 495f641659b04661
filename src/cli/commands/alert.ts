import { redactor } from '../../core/environment.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import { type Cli, type Commands, EXIT, loadSettings, logStderr, print } from '../cli.ts';
import { examples } from '../options.ts';

export const commands: Commands = {
  alert(command, cli) {
    command.addHelpText('after', examples('eod alert test'));
    command
      .command('test')
      .description('Send a test alert to EOD_ALERT_WEBHOOK; exit code 1 when it does not arrive.')
      .addHelpText('after', examples('eod alert test'))
      .action(() => sendTestAlert(cli));
  },
};

async function sendTestAlert(cli: Cli): Promise<void> {
  const { EOD_ALERT_WEBHOOK: address } = await loadSettings(cli);
  if (address === undefined) {
    throw usageError('set EOD_ALERT_WEBHOOK to the address alerts shall be posted to');
  }
  const { alertBody, postJson } = await import('../../jobs/alerts/send-alerts.ts');
  const { host } = new URL(address);
  const body = alertBody({
    kind: 'test',
    subject: 'test',
    message: 'this is a test alert; nothing is wrong',
    facts: {},
    raisedAt: new Date().toISOString(),
  });
  try {
    await postJson(address, body, cli.life.signal);
    print(cli, `${host} accepted the test alert`);
  } catch (error) {
    logStderr(cli, `${host} did not accept the test alert: ${redactor([address])(messageOf(error))}`);
    cli.exitCode = EXIT.failed;
  }
}

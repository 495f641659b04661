import { settingsRedactor } from '../../core/environment.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import { postAlert } from '../../jobs/alerts/send-alerts.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, logStderr, print, printJson } from '../cli.ts';

export async function sendTestAlert(cli: Cli, flags: JsonFlag): Promise<void> {
  const config = await loadSettings(cli);
  const { EOD_ALERT_WEBHOOK: address, EOD_ALERT_SECRET: secret } = config;
  if (address === undefined) {
    throw usageError('set EOD_ALERT_WEBHOOK to the address that alerts are posted to');
  }
  const { host } = new URL(address);
  const alert = {
    kind: 'test',
    subject: 'test',
    message: 'this is a test alert; nothing is wrong',
    facts: {},
    raisedAt: new Date().toISOString(),
  };
  const problem = await postAlert(address, alert, { secret, proxies: config, signal: cli.life.signal }).then(
    () => null,
    (error) => settingsRedactor(config)(messageOf(error)),
  );
  if (flags.json === true) printJson(cli, { host, isDelivered: problem === null, problem });
  else if (problem === null) print(cli, `${host} accepted the test alert`);
  if (problem === null) return;
  logStderr(cli, `${host} did not accept the test alert: ${problem}`);
  cli.exitCode = EXIT.failed;
}

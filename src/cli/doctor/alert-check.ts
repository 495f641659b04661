import type { Config } from '../../core/config.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import { postAlert } from '../../jobs/alerts/send-alerts.ts';
import { failed, type Outcome, ok } from './check.ts';

/** The address that alerts are posted to. @throws PipelineError `usage` if none is set. */
export function alertAddress({ EOD_ALERT_WEBHOOK: address }: Config): string {
  if (address === undefined)
    throw usageError('--alert: set EOD_ALERT_WEBHOOK to the address that alerts are posted to');
  return address;
}

/** Posts a test alert to an address. */
export async function alertCheck(config: Config, address: string, signal: AbortSignal): Promise<Outcome> {
  const { host } = new URL(address);
  const alert = {
    kind: 'test',
    subject: 'test',
    message: 'this is a test alert; nothing is wrong',
    facts: {},
    raisedAt: new Date().toISOString(),
  };
  try {
    await postAlert(address, alert, { secret: config.EOD_ALERT_SECRET, proxies: config, signal });
    return ok(`${host} accepted the test alert`);
  } catch (error) {
    return failed(`${host} did not accept the test alert: ${messageOf(error)}`, 'correct EOD_ALERT_WEBHOOK');
  }
}

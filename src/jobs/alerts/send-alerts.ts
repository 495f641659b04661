import { request } from 'undici';
import { redactor } from '../../core/environment.ts';
import { messageOf } from '../../core/errors.ts';
import { claimDueAlerts, noteDelivery, recordAlert } from '../../load/state/alerts.ts';
import type { Context } from '../context.ts';

type AlertKind = 'run_failed' | 'access_key' | 'late_data' | 'gaps' | 'suspicious' | 'test';

/** Something a person should know now. */
export interface Alert {
  readonly kind: AlertKind;
  /** Same kind and subject within EOD_ALERT_REPEAT_HOURS: the same alert, sent once. */
  readonly subject: string;
  /** One sentence for people. */
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/**
 * The access key is refused, or its month used up. The same subject from every worker and every run
 * that the key has stopped, so that all of them make one alert.
 *
 * @param line what the source said.
 */
export function keyAlert(keyHash: string, line: string): Alert {
  return {
    kind: 'access_key',
    subject: keyHash,
    message: `the source takes no more calls with this access key (${line}); nothing more is asked until you run a command again`,
    facts: { diagnostic: line },
  };
}

/** What raising and delivering need. */
type AlertContext = Pick<Context, 'config' | 'db' | 'log'>;

/**
 * Keeps alerts in the database and tries to deliver them. Never throws: an alert that cannot be kept
 * or sent is logged, and what was going on goes on.
 *
 * @returns false when they could not be kept: nobody will hear of them.
 */
export async function raiseAlerts(context: AlertContext, alerts: readonly Alert[]): Promise<boolean> {
  if (alerts.length === 0) return true;
  const { config, db, log } = context;
  try {
    for (const alert of alerts) {
      const isNew = await recordAlert(db, alert, config.EOD_ALERT_REPEAT_HOURS);
      if (isNew) log.error({ alert: alert.kind, ...alert.facts }, alert.message);
    }
  } catch (error) {
    log.error({ err: error, alerts }, 'alerts could not be kept');
    return false;
  }
  await deliverAlerts(context);
  return true;
}

/** An alert as it is sent. */
interface SentAlert {
  readonly kind: string;
  readonly subject: string;
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** ISO 8601. */
  readonly raisedAt: string;
}

/**
 * Sends what was not delivered yet and is due. Never throws.
 *
 * @returns how many were delivered.
 */
export async function deliverAlerts(context: AlertContext, signal?: AbortSignal): Promise<number> {
  const { config, db, log } = context;
  const address = config.EOD_ALERT_WEBHOOK;
  if (address === undefined) return 0;
  try {
    const claimed = await claimDueAlerts(db.drizzle);
    const delivered = await Promise.all(
      claimed.map(({ id, raisedAt, ...alert }) => {
        const seconds = new Date(raisedAt).toISOString().replace(/\.\d+Z$/, 'Z');
        return deliver(context, address, id, { ...alert, raisedAt: seconds }, signal);
      }),
    );
    return delivered.filter(Boolean).length;
  } catch (error) {
    log.warn({ err: error }, 'alerts could not be delivered');
    return 0;
  }
}

async function deliver(
  { db, log, config }: AlertContext,
  address: string,
  id: number,
  alert: SentAlert,
  signal?: AbortSignal,
): Promise<boolean> {
  const redact = redactor([address, config.EOD_ACCESS_KEY]);
  try {
    await postJson(address, alertBody(alert, redact), signal);
  } catch (error) {
    const problem = redact(messageOf(error));
    await noteDelivery(db.drizzle, id, problem);
    log.warn({ alert: alert.kind, problem }, 'the webhook did not accept the alert; it is sent again later');
    return false;
  }
  await noteDelivery(db.drizzle, id, null);
  return true;
}

/**
 * The JSON that is posted: `text` for Slack and those that understand its webhooks, and the facts for
 * programs. `&`, `<` and `>` are escaped in `text`, so that nothing in it is taken for a mention.
 */
export function alertBody(
  alert: SentAlert,
  redact: (text: string) => string = (text) => text,
): Record<string, unknown> {
  const escaped = alert.message.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return JSON.parse(redact(JSON.stringify({ text: `eod: ${escaped}`, ...alert }))) as Record<string, unknown>;
}

/** Nobody waits longer than this for a webhook. */
const TIMEOUT_MS = 5_000;

/**
 * Posts a document as JSON.
 *
 * @throws Error when there is no answer in time, or one that is not 2xx.
 */
export async function postJson(address: string, document: unknown, signal?: AbortSignal): Promise<void> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const answer = await request(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(document),
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
  });
  // What it says does not matter, but an unread answer keeps its connection.
  await answer.body.dump();
  if (answer.statusCode < 200 || answer.statusCode > 299) {
    throw new Error(`the webhook answered ${answer.statusCode}`);
  }
}

import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import type { ALERT_KINDS, Config } from '../../core/config.ts';
import { redactor } from '../../core/environment.ts';
import { messageOf } from '../../core/errors.ts';
import { claimDueAlerts, forgetAlerts, noteDelivery, recordAlert } from '../../load/state/alerts.ts';
import type { Context } from '../context.ts';

/** `heartbeat`: for EOD_HEARTBEAT_URL; `test`: sent by hand, and not kept. */
type AlertKind = (typeof ALERT_KINDS)[number] | 'heartbeat' | 'test';

/** Kinds that say that all is well. */
const GOOD_NEWS: readonly string[] = ['run_completed', 'night_completed', 'heartbeat'];

/** Good news of a run or night is told once, however often it is found out, and is forgotten after so long. */
const GOOD_NEWS_DAYS = 60;

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
      const isGood = GOOD_NEWS.includes(alert.kind);
      const isNew = await recordAlert(
        db,
        alert,
        isGood ? 24 * GOOD_NEWS_DAYS : config.EOD_ALERT_REPEAT_HOURS,
      );
      if (isNew && isGood) await forgetAlerts(db.drizzle, GOOD_NEWS, GOOD_NEWS_DAYS);
      if (isNew) log[isGood ? 'info' : 'error']({ alert: alert.kind, ...alert.facts }, alert.message);
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
  const kinds = [
    ...(config.EOD_ALERT_WEBHOOK === undefined ? [] : config.EOD_ALERT_ON),
    ...(config.EOD_HEARTBEAT_URL === undefined ? [] : ['heartbeat']),
  ];
  if (kinds.length === 0) return 0;
  try {
    const claimed = await claimDueAlerts(db.drizzle, kinds);
    const delivered = await Promise.all(
      claimed.map(({ id, raisedAt, ...alert }) => {
        const seconds = new Date(raisedAt).toISOString().replace(/\.\d+Z$/, 'Z');
        return deliver(context, id, { ...alert, raisedAt: seconds }, signal);
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
  id: number,
  alert: SentAlert,
  signal?: AbortSignal,
): Promise<boolean> {
  const { EOD_ALERT_WEBHOOK: webhook, EOD_ALERT_SECRET: secret, EOD_HEARTBEAT_URL: heartbeat } = config;
  const redact = redactor([webhook, heartbeat, secret, config.EOD_ACCESS_KEY]);
  const isHeartbeat = alert.kind === 'heartbeat';
  try {
    if (isHeartbeat) await askHeartbeat(heartbeat ?? '', signal);
    else await postJson(webhook ?? '', alertBody(alert, redact), { secret, signal });
  } catch (error) {
    const problem = redact(messageOf(error));
    await noteDelivery(db.drizzle, id, problem);
    const message = isHeartbeat
      ? 'EOD_HEARTBEAT_URL did not answer; it is tried again later'
      : 'the webhook did not accept the alert; it is sent again later';
    log.warn({ alert: alert.kind, problem }, message);
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

/** How a document is posted. */
interface PostOptions {
  /** EOD_ALERT_SECRET: with it the body is signed. */
  readonly secret?: Config['EOD_ALERT_SECRET'] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Posts a document as JSON.
 *
 * @throws Error when there is no answer in time, or one that is not 2xx.
 */
export async function postJson(
  address: string,
  document: unknown,
  { secret, signal }: PostOptions = {},
): Promise<void> {
  const body = JSON.stringify(document);
  const signature =
    secret === undefined
      ? {}
      : { [SIGNATURE_HEADER]: signatureOf(body, secret, Math.floor(Date.now() / 1_000)) };
  await ask(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...signature },
    body,
    signal,
  });
}

/** The header that holds the signature of an alert. */
const SIGNATURE_HEADER = 'x-eod-signature';

/**
 * The signature of a body: `t=<seconds since the epoch>,v1=<HMAC-SHA256 of "<seconds>.<body>" in hex>`. The time is signed
 * too, so that whoever has heard an alert cannot send it again much later.
 */
export function signatureOf(body: string, secret: string, seconds: number): string {
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}

/** Pauses between the tries of a heartbeat, in milliseconds; after the last it is tried again as alerts are. */
const HEARTBEAT_PAUSES_MS = [500, 2_000];

/** Asks a monitor's address, a few times where it does not answer. @throws Error of the last try. */
async function askHeartbeat(address: string, signal?: AbortSignal): Promise<void> {
  for (const pauseMs of HEARTBEAT_PAUSES_MS) {
    try {
      return await ask(address, { method: 'GET', signal });
    } catch {
      await sleep(pauseMs, undefined, signal === undefined ? {} : { signal });
    }
  }
  await ask(address, { method: 'GET', signal });
}

type Asked = Pick<NonNullable<Parameters<typeof request>[1]>, 'method' | 'headers' | 'body'> & {
  readonly signal?: AbortSignal | undefined;
};

async function ask(address: string, { signal, ...options }: Asked): Promise<void> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const answer = await request(address, {
    ...options,
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
  });
  // What it says does not matter, but an unread answer keeps its connection.
  await answer.body.dump();
  if (answer.statusCode < 200 || answer.statusCode > 299) {
    throw new Error(`${options.method === 'GET' ? 'it' : 'the webhook'} answered ${answer.statusCode}`);
  }
}

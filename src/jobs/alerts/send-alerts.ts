import { createHmac } from 'node:crypto';
import { request } from 'undici';
import type { Config } from '../../core/config.ts';
import { redactValues, settingsRedactor } from '../../core/environment.ts';
import { messageOf } from '../../core/errors.ts';
import { createDispatcher } from '../../core/proxy.ts';
import { DISCONNECT_WITHIN_MS, endsWithin } from '../../core/waits.ts';
import { claimDueAlerts, noteDelivery, recordAlerts } from '../../state/alerts.ts';
import type { Context } from '../context.ts';
import { type Alert, buildBody, joinAlerts, type StoredAlert, shortSubject } from './alert.ts';

/** Kinds of alerts that report a success. */
const SUCCESSES: readonly string[] = ['run_completed', 'night_completed', 'heartbeat'];

/** The same success is not reported again for this many hours: 60 days. */
const SUCCESS_REPEAT_HOURS = 1_440;

type AlertContext = Pick<Context, 'clock' | 'config' | 'db' | 'log'>;

/**
 * Stores alerts in the database and tries to deliver them. Never throws: alerts that cannot be stored are logged, and
 * sent once, without a second try.
 *
 * @returns false if they could not be stored.
 */
export async function raiseAlerts(context: AlertContext, raised: readonly Alert[]): Promise<boolean> {
  if (raised.length === 0) return true;
  const alerts = raised.map((alert) => ({ ...alert, subject: shortSubject(alert.subject) }));
  const { config, db, log } = context;
  try {
    const isSuccess = ({ kind }: Alert) => SUCCESSES.includes(kind);
    const added = await recordAlerts(db, alerts, (alert) =>
      isSuccess(alert) ? SUCCESS_REPEAT_HOURS : config.EOD_ALERT_REPEAT_HOURS,
    );
    for (const alert of joinAlerts(added)) {
      log[isSuccess(alert) ? 'info' : 'error']({ alert: alert.kind, ...alert.facts }, alert.message);
    }
  } catch (error) {
    log.error({ err: error, alerts }, 'alerts could not be stored');
    await sendUnstored(context, alerts);
    return false;
  }
  await deliverAlerts(context);
  return true;
}

/** An alert as it is sent; `raisedAt` in ISO 8601. */
type SentAlert = StoredAlert & { readonly raisedAt: string };

/** Posts alerts that Postgres does not store, which may be what they are about. Never throws. */
async function sendUnstored({ config, log }: AlertContext, alerts: readonly Alert[]): Promise<void> {
  if (config.EOD_ALERT_WEBHOOK === undefined) return;
  const redact = settingsRedactor(config);
  const kinds: readonly string[] = config.EOD_ALERT_ON;
  const raisedAt = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const sent = alerts.filter(({ kind }) => kinds.includes(kind));
  for (const { of: _, ...alert } of joinAlerts(sent)) {
    await postAlert(config, { ...alert, raisedAt }).catch((error) =>
      log.warn(
        { alert: alert.kind, problem: redact(messageOf(error)) },
        'the webhook did not accept the alert',
      ),
    );
  }
}

/** How many alerts are claimed at once. Those about trading days are sent as one message. */
const MOST_CLAIMED = 1_000;

/**
 * Sends the stored alerts that are due. Never throws.
 *
 * @returns how many messages were delivered.
 */
export async function deliverAlerts(context: AlertContext, signal?: AbortSignal): Promise<number> {
  const { config, db, log } = context;
  const kinds = [
    ...(config.EOD_ALERT_WEBHOOK === undefined ? [] : config.EOD_ALERT_ON),
    ...(config.EOD_HEARTBEAT_URL === undefined ? [] : ['heartbeat']),
  ];
  if (kinds.length === 0) return 0;
  try {
    const claimed = await claimDueAlerts(db.drizzle, kinds, MOST_CLAIMED);
    const delivered = await Promise.all(
      joinAlerts(claimed).map(({ id: _, of, raisedAt: __, isLate: ___, ...alert }) => {
        // What the first one says may have changed since.
        const isLate = of.some((joined) => joined.isLate);
        const raisedAt = of.map((joined) => joined.raisedAt).sort()[0] ?? '';
        const seconds = new Date(raisedAt).toISOString().replace(/\.\d+Z$/, 'Z');
        const ids = of.map(({ id }) => id);
        const message = isLate ? `${alert.message} (as of ${seconds})` : alert.message;
        return deliver(context, ids, { ...alert, message, raisedAt: seconds }, signal);
      }),
    );
    return delivered.filter(Boolean).length;
  } catch (error) {
    log.warn({ err: error }, 'alerts could not be delivered');
    return 0;
  }
}

/** How often alerts that are due are sent. */
const DELIVER_EVERY_MS = 60_000;

/** Sends alerts that are due, now and every minute. @param before what is done first, each time. */
export function startDelivery(
  context: AlertContext,
  before = async (): Promise<void> => undefined,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const deliver = async () => {
    await before();
    await deliverAlerts(context, stopping.signal);
  };
  let delivering = deliver();
  const timer = setInterval(() => {
    delivering = delivering.then(deliver);
  }, DELIVER_EVERY_MS);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      // It may wait for a server that is silent.
      await endsWithin(delivering, DISCONNECT_WITHIN_MS);
    },
  };
}

async function deliver(
  { db, log, config }: AlertContext,
  ids: readonly number[],
  alert: SentAlert,
  signal?: AbortSignal,
): Promise<boolean> {
  const isHeartbeat = alert.kind === 'heartbeat';
  try {
    if (isHeartbeat) await send(config, config.EOD_HEARTBEAT_URL, { method: 'GET' }, signal);
    else await postAlert(config, alert, signal);
  } catch (error) {
    const problem = settingsRedactor(config)(messageOf(error));
    await noteDelivery(db.drizzle, ids, problem);
    const message = isHeartbeat
      ? 'EOD_HEARTBEAT_URL did not accept the request; it is sent again later'
      : 'the webhook did not accept the alert; it is sent again later';
    log.warn({ alert: alert.kind, problem }, message);
    return false;
  }
  await noteDelivery(db.drizzle, ids, null);
  return true;
}

/** Timeout of a request to a webhook or the heartbeat URL. */
const TIMEOUT_MS = 5_000;

/**
 * Posts an alert to EOD_ALERT_WEBHOOK as JSON, at most 2 kB (`buildBody`), signed if EOD_ALERT_SECRET is set.
 *
 * @throws Error if there is no response within TIMEOUT_MS, or its status is not 2xx.
 */
export async function postAlert(config: Config, alert: SentAlert, signal?: AbortSignal): Promise<void> {
  const secret = config.EOD_ALERT_SECRET;
  const body = JSON.stringify(redactValues(buildBody(alert), settingsRedactor(config)));
  const signature =
    secret === undefined
      ? {}
      : { [SIGNATURE_HEADER]: signBody(body, secret, Math.floor(Date.now() / 1_000)) };
  const headers = { 'content-type': 'application/json', ...signature };
  await send(config, config.EOD_ALERT_WEBHOOK, { method: 'POST', headers, body }, signal);
}

/** The header that holds the signature of an alert. */
const SIGNATURE_HEADER = 'x-eod-signature';

/**
 * The signature of a body: `t=<seconds since the epoch>,v1=<HMAC-SHA256 of "<seconds>.<body>" in hex>`. The time is
 * signed too, so that an intercepted alert cannot be sent again much later.
 */
export function signBody(body: string, secret: string, seconds: number): string {
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}

async function send(
  config: Config,
  address: string | undefined,
  options: NonNullable<Parameters<typeof request>[1]>,
  signal?: AbortSignal,
): Promise<void> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const dispatcher = createDispatcher(config, { timeoutMs: TIMEOUT_MS });
  try {
    const response = await request(address ?? '', {
      ...options,
      dispatcher,
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    // The body does not matter, but a connection is freed only when it has been read.
    await response.body.dump();
    if (response.statusCode < 200 || response.statusCode > 299) {
      throw new Error(
        `${options.method === 'GET' ? 'it' : 'the webhook'} responded with ${response.statusCode}`,
      );
    }
  } finally {
    await dispatcher.destroy();
  }
}

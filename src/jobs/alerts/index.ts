import { messageOf } from '../../core/errors.ts';
import { redactor } from '../../core/log.ts';
import { transaction } from '../../load/database/transaction.ts';
import type { Context } from '../context.ts';
import { postJson } from './webhook.ts';

export type AlertKind = 'run_failed' | 'access_key' | 'late_data' | 'gaps' | 'suspicious' | 'test';

/** Something somebody should know now. */
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

/** Pause before the next try in seconds, doubling from this up to an hour. */
const FIRST_PAUSE_S = 30;
const LONGEST_PAUSE_S = 3_600;

/** An alert nobody took for so long is no news any more. */
const NEWS_FOR = '1 day';

/** Alerts sent at once. */
const BATCH = 20;

/** What needs raising and delivering. */
export type AlertContext = Pick<Context, 'config' | 'db' | 'log'>;

/**
 * Keeps alerts in `etl.alerts` and tries to deliver them. Never throws: an alert that cannot be kept
 * or sent is logged, and what was going on goes on.
 */
export async function raiseAlerts(context: AlertContext, alerts: readonly Alert[]): Promise<void> {
  if (alerts.length === 0) return;
  try {
    for (const alert of alerts) {
      if (await keep(context, alert)) context.log.error({ alert: alert.kind, ...alert.facts }, alert.message);
    }
  } catch (error) {
    context.log.error({ err: error, alerts }, 'alerts could not be kept');
    return;
  }
  await deliverAlerts(context);
}

/** @returns false when the same alert was raised lately: then it is counted, and not sent again. */
async function keep(
  { db, config }: AlertContext,
  { kind, subject, message, facts }: Alert,
): Promise<boolean> {
  return transaction(db, async (client) => {
    // Two workers that see the same trouble at the same moment make one alert.
    await client.query("select pg_advisory_xact_lock(hashtextextended('eod alert ' || $1 || ' ' || $2, 0))", [
      ...[kind, subject],
    ]);
    const repeated = await client.query(
      `update etl.alerts set repeated = repeated + 1
        where id = (select max(id) from etl.alerts where kind = $1 and subject = $2)
          and raised_at > now() - make_interval(hours => $3)`,
      [kind, subject, config.EOD_ALERT_REPEAT_HOURS],
    );
    if (repeated.rowCount === 1) return false;
    await client.query('insert into etl.alerts (kind, subject, message, facts) values ($1, $2, $3, $4)', [
      ...[kind, subject, message, JSON.stringify(facts)],
    ]);
    return true;
  });
}

interface Pending {
  readonly id: number;
  readonly kind: string;
  readonly subject: string;
  readonly message: string;
  readonly facts: Record<string, unknown>;
  readonly raisedAt: string;
}

/**
 * Sends what was not heard yet and is due. Each try pushes the next one further away, before it is
 * made: so no two workers send the same alert. Never throws.
 *
 * @returns how many were delivered.
 */
export async function deliverAlerts(context: AlertContext, signal?: AbortSignal): Promise<number> {
  const { config, db, log } = context;
  const address = config.EOD_ALERT_WEBHOOK;
  if (address === undefined) return 0;
  try {
    const claimed = await db.pool.query<Pending>(
      `update etl.alerts set attempts = attempts + 1,
         next_attempt_at = now() + make_interval(secs => least($1::numeric, $2 * power(2::numeric, least(attempts, 20)))::float8)
        where id in (
          select id from etl.alerts
           where delivered_at is null and next_attempt_at <= now() and raised_at > now() - $3::interval
           order by id limit $4 for update skip locked)
        returning id::int, kind, subject, message, facts,
          to_char(raised_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "raisedAt"`,
      [LONGEST_PAUSE_S, FIRST_PAUSE_S, NEWS_FOR, BATCH],
    );
    const heard = await Promise.all(claimed.rows.map((alert) => deliver(context, address, alert, signal)));
    return heard.filter(Boolean).length;
  } catch (error) {
    log.warn({ err: error }, 'alerts could not be delivered');
    return 0;
  }
}

async function deliver(
  { db, log, config }: AlertContext,
  address: string,
  { id, ...alert }: Pending,
  signal?: AbortSignal,
): Promise<boolean> {
  const redact = redactor([address, config.EOD_ACCESS_KEY]);
  try {
    await postJson(address, alertBody(alert, redact), signal);
  } catch (error) {
    const problem = redact(messageOf(error));
    await db.pool.query('update etl.alerts set error = $2 where id = $1', [id, problem]);
    log.warn({ alert: alert.kind, problem }, 'the alert webhook did not take it; it is tried again');
    return false;
  }
  await db.pool.query('update etl.alerts set delivered_at = now(), error = null where id = $1', [id]);
  return true;
}

/**
 * The JSON that is posted: `text` for Slack and those that understand its webhooks, and the facts for
 * programs. `&`, `<` and `>` are escaped in `text`, so that nothing in it is taken for a mention.
 */
export function alertBody(
  alert: Omit<Pending, 'id'>,
  redact: (text: string) => string = (text) => text,
): Record<string, unknown> {
  const escaped = alert.message.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return JSON.parse(redact(JSON.stringify({ text: `eod: ${escaped}`, ...alert }))) as Record<string, unknown>;
}

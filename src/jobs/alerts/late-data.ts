import { type Clock, today } from '../../core/clock.ts';
import { addDays, type Day } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/pair.ts';
import { DISCONNECT_WITHIN_MS, endsWithin } from '../../core/waits.ts';
import { workWithSessionLock } from '../../load/database/session-lock.ts';
import { factsOfAlerts } from '../../load/state/alerts.ts';
import { readCompleteness, scheduledPairs } from '../../load/state/coverage/completeness.ts';
import { readWorkers } from '../../load/state/workers.ts';
import type { Context } from '../context.ts';
import { type Alert, deliverAlerts, listText, raiseAlerts } from './send-alerts.ts';

/** How often late data and undelivered alerts are checked. */
const CHECK_EVERY_MS = 60_000;

/** How many days back sessions are checked. Alerts about older ones have been raised, or they were not expected. */
const LOOK_BACK_DAYS = 7;

/** A session of an operation and exchange that is not loaded. */
interface LateSession extends Pair {
  readonly day: Day;
  readonly reason: string;
}

/**
 * Checks periodically for late data, and sends alerts that are due. Every long-running process does this, whatever its
 * role, so that a worker notices when the scheduler is gone, and the other way round.
 */
export function startAlertWatch(opened: Context): { stop(): Promise<void> } {
  // Without retry: what fails is done a minute later.
  const context = { ...opened, db: opened.db.withoutRetry };
  const since = context.clock.now();
  const stopping = new AbortController();
  const check = async () => {
    await checkLateData(context, since);
    await deliverAlerts(context, stopping.signal);
  };
  let checking = check();
  const timer = setInterval(() => {
    checking = checking.then(check);
  }, CHECK_EVERY_MS);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      // A check may wait for a server that is silent.
      await endsWithin(checking, DISCONNECT_WITHIN_MS);
    },
  };
}

/**
 * Raises one alert for all sessions that were due EOD_LATE_AFTER_MINUTES ago, are not loaded and are not in an earlier
 * alert, whether a nightly run asked for them or not. Never throws: errors are logged.
 *
 * @param since when this process began to check, in epoch milliseconds. If no recent session of a data set is loaded,
 *   only those that became late after this are reported, so that a new database raises no alert for last week.
 */
export async function checkLateData(context: Context, since: number): Promise<void> {
  if ((await lateSessions(context, since).catch(logged(context))).length === 0) return;
  // Checked again under a lock, so that two processes do not raise the same alert.
  await workWithSessionLock(context.db, 'eod:late-data', async () => {
    const late = await lateSessions(context, since);
    if (late.length > 0) await raiseAlerts(context, [await alertOf(context, late)]);
  }).catch(logged(context));
}

function logged({ log }: Context): (error: unknown) => never[] {
  return (error) => {
    log.warn({ err: error }, 'could not check for late data');
    return [];
  };
}

async function lateSessions(context: Context, since: number): Promise<LateSession[]> {
  const { clock, config } = context;
  const delay = config.EOD_LATE_AFTER_MINUTES * 60_000;
  const { late, loaded } = await sessionsAt(context, clock.now() - delay);
  if (late.length === 0) return [];
  const wasAlerted = await readAlertedSessions(context);
  const unalerted = late.filter((session) => !wasAlerted(session));
  if (unalerted.every((session) => loaded.has(pairName(session)))) return unalerted;
  const before = new Set((await sessionsAt(context, since - delay)).late.map(nameOf));
  return unalerted.filter((session) => loaded.has(pairName(session)) || !before.has(nameOf(session)));
}

/**
 * The sessions that were due at a time (epoch milliseconds) and are not loaded now, without those that the source has
 * refused, which raise other alerts; and the operations and exchanges with a recent session that is loaded.
 */
async function sessionsAt(context: Context, time: number) {
  const { config, db } = context;
  const clock: Clock = { now: () => time };
  const from = addDays(today(clock, config.EOD_TIMEZONE), -LOOK_BACK_DAYS);
  // `from` is not set, so that sessions before the first complete one of a pair are not expected.
  const scope = { expected: scheduledPairs(config), others: false, since: from };
  const sessions = (await readCompleteness({ config, clock, db }, scope)).filter(({ day }) => day >= from);
  const late = sessions.flatMap(({ operation, exchange, day, state, reason }): LateSession[] =>
    state === 'missing' && reason !== null && reason !== 'blocked' && reason !== 'beyond_history'
      ? [{ operation, exchange, day, reason }]
      : [],
  );
  return { late, loaded: new Set(sessions.filter(({ state }) => state === 'complete').map(pairName)) };
}

/** A session, or a range of sessions, in the facts of an alert. */
interface AlertedSessions extends Pair {
  readonly day?: Day;
  readonly from?: Day;
  readonly to?: Day;
}

/**
 * Reads which sessions recent alerts have reported, as late or as gaps after a nightly run.
 *
 * @returns a function that tells whether a session is among them.
 */
export async function readAlertedSessions({ config, db }: Context) {
  const kinds = config.EOD_ALERT_ON.filter((kind) => kind === 'late_data' || kind === 'gaps');
  const facts = await factsOfAlerts(db.drizzle, ['late_data', ...kinds], LOOK_BACK_DAYS + 1);
  const alerted = facts.flatMap(({ sessions, gaps }) => [
    ...((sessions ?? []) as readonly AlertedSessions[]),
    ...((gaps ?? []) as readonly AlertedSessions[]),
  ]);
  return ({ operation, exchange, day }: Omit<LateSession, 'reason'>): boolean =>
    alerted.some(
      (one) =>
        one.operation === operation &&
        one.exchange === exchange &&
        (one.day ?? one.from ?? '') <= day &&
        (one.day ?? one.to ?? '') >= day,
    );
}

const nameOf = (session: LateSession) => `${pairName(session)} ${session.day}`;

async function alertOf({ config, db }: Context, late: readonly LateSession[]): Promise<Alert> {
  const workers = await readWorkers(db.drizzle);
  const names = late.map(nameOf);
  const unasked = late.every(({ reason }) => reason === 'never_asked');
  const hints = [
    unasked ? 'nobody has asked for it: is a scheduler running?' : '',
    workers.seen === 0 ? 'no worker was seen within the last minute' : '',
  ].filter((hint) => hint !== '');
  const minutes = config.EOD_LATE_AFTER_MINUTES;
  const items = late.map((session) => `${nameOf(session)} (${session.reason})`);
  return {
    kind: 'late_data',
    subject: names.join(', '),
    message: `data is not there ${minutes} minutes after it should be: ${[listText(items), ...hints].join('; ')}`,
    facts: { minutes, sessions: late, workers: workers.seen },
  };
}

import { type Clock, today } from '../../core/clock.ts';
import { addDays, type Day } from '../../core/days.ts';
import { workWithSessionLock } from '../../load/database/session-lock.ts';
import { factsOfAlerts } from '../../load/state/alerts.ts';
import { type Pair, readCompleteness, scheduledPairs } from '../../load/state/completeness.ts';
import { readWorkers } from '../../load/state/workers.ts';
import type { Context } from '../context.ts';
import { listed } from './listed.ts';
import { type Alert, raiseAlerts } from './send-alerts.ts';

/** Sessions of so many days are looked at: what is missing for longer was told, or was not expected. */
const LOOK_BACK_DAYS = 7;

/** A session of an operation and exchange that is not there. */
interface LateSession {
  readonly operation: string;
  readonly exchange: string;
  readonly day: Day;
  readonly reason: string;
}

/**
 * Raises one alert for all sessions that should have been there for EOD_LATE_AFTER_MINUTES, are not, and were not
 * told of before, whether a night asked for them or not. Never throws: what goes wrong is logged.
 *
 * @param since when this process began to look, in milliseconds since the epoch: where nothing is there of the last
 *   days, only what has become late since then is told, so that a new database raises no alert for last week.
 */
export async function checkLateData(context: Context, since: number): Promise<void> {
  if ((await lateSessions(context, since).catch(logged(context))).length === 0) return;
  // Two processes that look at the same moment must not tell it twice: the second looks again, or leaves it to the first.
  await workWithSessionLock(context.db, 'eod:late-data', async () => {
    const late = await lateSessions(context, since);
    if (late.length > 0) await raiseAlerts(context, [await alertOf(context, late)]);
  }).catch(logged(context));
}

function logged({ log }: Context): (error: unknown) => never[] {
  return (error) => {
    log.warn({ err: error }, 'could not look for data that is late');
    return [];
  };
}

async function lateSessions(context: Context, since: number): Promise<LateSession[]> {
  const { clock, config } = context;
  const delay = config.EOD_LATE_AFTER_MINUTES * 60_000;
  const { late, loaded } = await sessionsAt(context, clock.now() - delay);
  if (late.length === 0) return [];
  const told = await toldSessions(context);
  const untold = late.filter((session) => !told(session));
  if (untold.every((session) => loaded.has(pairOf(session)))) return untold;
  const before = new Set((await sessionsAt(context, since - delay)).late.map(nameOf));
  return untold.filter((session) => loaded.has(pairOf(session)) || !before.has(nameOf(session)));
}

/**
 * What was due at a moment and is not there now, other than what the source refuses, since its refusal was told; and
 * of which operations and exchanges anything is there.
 */
async function sessionsAt(context: Context, moment: number) {
  const { config, db } = context;
  const clock: Clock = { now: () => moment };
  const from = addDays(today(clock, config.EOD_TIMEZONE), -LOOK_BACK_DAYS);
  // Without a first day of ours: before its first complete session nothing is expected of a pair.
  const scope = { expected: scheduledPairs(config), others: false, since: from };
  const sessions = (await readCompleteness({ config, clock, db }, scope)).filter(({ day }) => day >= from);
  const late = sessions.flatMap(({ operation, exchange, day, state, reason }): LateSession[] =>
    state === 'missing' && reason !== null && reason !== 'blocked' && reason !== 'beyond_history'
      ? [{ operation, exchange, day, reason }]
      : [],
  );
  return { late, loaded: new Set(sessions.filter(({ state }) => state === 'complete').map(pairOf)) };
}

/** A session as an alert names it, or a range of sessions. */
interface Told {
  readonly operation: string;
  readonly exchange: string;
  readonly day?: Day;
  readonly from?: Day;
  readonly to?: Day;
}

/** Was a session named by an alert already, of this kind or by the gaps a night has left? */
export async function toldSessions({ config, db }: Context) {
  const kinds = config.EOD_ALERT_ON.filter((kind) => kind === 'late_data' || kind === 'gaps');
  const facts = await factsOfAlerts(db.drizzle, ['late_data', ...kinds], LOOK_BACK_DAYS + 1);
  const told = facts.flatMap(({ sessions, gaps }) => [
    ...((sessions ?? []) as readonly Told[]),
    ...((gaps ?? []) as readonly Told[]),
  ]);
  return ({ operation, exchange, day }: Omit<LateSession, 'reason'>): boolean =>
    told.some(
      (one) =>
        one.operation === operation &&
        one.exchange === exchange &&
        (one.day ?? one.from ?? '') <= day &&
        (one.day ?? one.to ?? '') >= day,
    );
}

const pairOf = ({ operation, exchange }: Pair) => `${operation} ${exchange}`;
const nameOf = ({ operation, exchange, day }: LateSession) => `${operation} ${exchange} ${day}`;

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
    message: `data is not there ${minutes} minutes after it should be: ${[listed(items), ...hints].join('; ')}`,
    facts: { minutes, sessions: late, workers: workers.seen },
  };
}

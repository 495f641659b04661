import type { Clock } from '../../core/clock.ts';
import { addDays, type Day, dayEnd } from '../../core/days.ts';
import type { ErrorKind } from '../../core/errors.ts';
import { diagnose } from '../../extract/diagnostics.ts';
import { readCompleteness, type SessionState, scheduledPairs } from '../../load/state/completeness.ts';
import { failuresOfRun, readNewestNight } from '../../load/state/run-facts.ts';
import type { Context } from '../context.ts';
import type { Alert } from './send-alerts.ts';

/** A session that falls due in a night is at most a week old: weekly operations ask on their weekday. */
const LOOK_BACK_DAYS = 8;

/**
 * What is told once a night is complete: of EOD_HEARTBEAT_URL, and where EOD_ALERT_ON says so. A night is complete
 * when none of its runs is open, everything that falls due on its day is there, and one of its runs has failed in
 * nothing. What the key has no right to is not due.
 *
 * @returns nothing while the newest night is not complete.
 */
export async function alertsOfNight(context: Context): Promise<Alert[]> {
  const { config, db } = context;
  const wanted = [
    ...(config.EOD_HEARTBEAT_URL === undefined ? [] : (['heartbeat'] as const)),
    ...(config.EOD_ALERT_ON.includes('night_completed') ? (['night_completed'] as const) : []),
  ];
  if (wanted.length === 0) return [];
  const night = await readNewestNight(db.drizzle);
  if (night === null || night.open > 0) return [];
  const due = await sessionsDueOn(context, night.day);
  if (due.some(({ state }) => state === 'missing')) return [];
  if (night.completed === 0 && !(await failedInRightsOnly(context, night.failed))) return [];
  return wanted.map((kind) => ({
    kind,
    subject: night.day,
    message: `the night of ${night.day} is complete: ${due.length === 0 ? 'nothing was due' : `all ${due.length} data sets that were due are there`}`,
    facts: { day: night.day, dueSessions: due.length },
  }));
}

/** The sessions that fall due on a day, of all operations and exchanges in use. */
async function sessionsDueOn({ config, db }: Context, day: Day): Promise<SessionState[]> {
  const from = addDays(day, -LOOK_BACK_DAYS);
  const scope = { expected: scheduledPairs(config), others: false, since: from };
  const endOf = (one: Day): Clock => ({ now: () => dayEnd(one, config.EOD_TIMEZONE) * 1_000 });
  const read = (one: Day) => readCompleteness({ config, db, clock: endOf(one) }, scope);
  const [before, after] = [await read(addDays(day, -1)), await read(day)];
  const name = ({ operation, exchange, day: session }: SessionState) => `${operation} ${exchange} ${session}`;
  // Whether a complete session was due before is not said, and makes no difference.
  const dueBefore = new Set(before.filter(({ state }) => state === 'missing').map(name));
  return after.filter(
    (session) =>
      session.day >= from &&
      session.state !== 'pending' &&
      (session.state === 'complete' ? session.day === day : !dueBefore.has(name(session))) &&
      !isNoRight(session.detail),
  );
}

const NO_RIGHT: readonly (ErrorKind | undefined)[] = [
  'operation_blocked',
  'exchange_blocked',
  'instrument_blocked',
];

/** Does the source say that the key has no right to what was asked? */
const isNoRight = (line: string | null) => line !== null && NO_RIGHT.includes(diagnose(line)?.kind);

async function failedInRightsOnly({ db }: Context, runs: readonly number[]): Promise<boolean> {
  for (const run of runs) {
    const failures = await failuresOfRun(db.drizzle, run, null);
    if (failures.length > 0 && failures.every(({ reason }) => isNoRight(reason))) return true;
  }
  return false;
}

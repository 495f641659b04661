import { addDays, type Day, dayEnd, dayStart } from '../../core/days.ts';
import { tablesOfResponses } from '../../declaration/operation.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { readCompleteness, type TradingDayState } from '../../state/coverage/completeness.ts';
import { readNightChanges, reportedDay } from '../../state/loads/loads.ts';
import { readStateNumber } from '../../state/loads/state-numbers.ts';
import { readNight } from '../../state/runs/outcomes.ts';
import type { Context } from '../context.ts';
import type { Alert } from './alert.ts';

/** A trading day that becomes due on a day is at most a week old: some operations are scheduled once a week. */
const LOOK_BACK_DAYS = 8;

/**
 * The alerts for a complete night: `heartbeat` if EOD_HEARTBEAT_URL is set, and `night_completed` if EOD_ALERT_ON names
 * it. A night is complete if all its runs have ended, everything that became due on its day is loaded, and one of its
 * runs has completed. Data that the key may not use is left out.
 *
 * @returns none if the newest night is not complete.
 */
export async function alertsOfNight(context: Context): Promise<Alert[]> {
  const { config, db } = context;
  const wanted = [
    ...(config.EOD_HEARTBEAT_URL === undefined ? [] : (['heartbeat'] as const)),
    ...(config.EOD_ALERT_ON.includes('night_completed') ? (['night_completed'] as const) : []),
  ];
  if (wanted.length === 0) return [];
  const night = await readNight(db.drizzle);
  if (night === null) return [];
  const { isComplete, due } = await stateOfDay(context, night.day);
  if (!isComplete) return [];
  const changes = await readChanges(context, night.day);
  return wanted.map((kind) => ({
    kind,
    subject: night.day,
    message: `the night of ${night.day} is complete: ${due === 0 ? 'nothing was due' : `all ${due} data sets that were due are there`}`,
    facts: { day: night.day, dueSessions: due, ...changes },
  }));
}

/** The state of the tables, which has all of the night, and the tables and days that its runs have changed. */
async function readChanges({ db }: Pick<Context, 'db'>, day: Day) {
  const { stateNumber: state } = await readStateNumber(db.drizzle, null);
  const changed = (await readNightChanges(db.drizzle, day)).flatMap(({ operation, exchange, from, to }) =>
    tablesOfResponses(dataSetNamed(operation)).map(({ name }) => ({
      table: `market.${name}`,
      exchange,
      from: reportedDay(from),
      to: reportedDay(to),
    })),
  );
  return { state, changed };
}

/**
 * How many data sets were due on a day up to today, which of them are missing, and whether the day is complete. One
 * without a nightly run is complete if everything that became due on it is there, as after a backfill, so a holiday, on
 * which nothing becomes due, always is.
 */
export async function stateOfDay(context: Pick<Context, 'config' | 'db'>, day: Day) {
  const { open, completed } = (await readNight(context.db.drizzle, day)) ?? { open: 0, completed: 1 };
  const due = await tradingDaysDueOn(context, day);
  const missing = due.filter(({ state }) => state === 'missing');
  const isComplete = open === 0 && completed > 0 && missing.length === 0;
  return { isComplete, due: due.length, missing };
}

/** The trading days that became due on a day, of all scheduled operations and exchanges, as of its end. */
async function tradingDaysDueOn(
  { config, db }: Pick<Context, 'config' | 'db'>,
  day: Day,
): Promise<TradingDayState[]> {
  const [begins, ends] = [dayStart(day, config.EOD_TIMEZONE), dayEnd(day, config.EOD_TIMEZONE)];
  const scope = {
    expected: 'scheduled' as const,
    others: false,
    since: addDays(day, -LOOK_BACK_DAYS),
  };
  const clock = { now: () => 1_000 * ends };
  return (await readCompleteness({ config, db, clock }, scope)).filter(
    ({ state, due }) => 1_000 * begins <= due && due < 1_000 * ends && state !== 'pending',
  );
}

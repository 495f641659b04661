import { addDays, type Day, type DayRange, dayAt, dayEnd, isWeekend } from './days.ts';

/** Where the pipeline reads the time; tests pass a clock of their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** The only trading day that the source serves, which is taken as today; the time is still that of the clock. */
  readonly trialDay?: Day | undefined;
  /** Sets it to the time of the database. Without it, the clock keeps its own time. @returns whether it was set. */
  set?(now: number): boolean;
  /** The time of the database, even where this clock keeps its own. Without it, that is the same. */
  databaseNow?(): number;
}

/** The time of the database: for what cannot be undone, a clock that is set to another date is not trusted. */
export const databaseNow = (clock: Clock): number => clock.databaseNow?.() ?? clock.now();

/** A smaller difference may be the time that reading the other clock took. */
const MIN_CORRECTION_MS = 1_000;

/** Sets a clock to the time of the database again if that of the machine has leapt since. */
export function followDatabase(clock: Clock, time: number): void {
  if (Math.abs(time - databaseNow(clock)) > MIN_CORRECTION_MS) clock.set?.(time);
}

export const systemClock: Clock = { now: () => Date.now() };

type SettableClock = Clock & Required<Pick<Clock, 'set' | 'databaseNow'>>;

/** The settings that say which trading day it is. */
export interface ClockSettings {
  readonly EOD_TIMEZONE: string;
  readonly EOD_TRIAL_DAY?: Day | undefined;
}

/** The same clock, for a source that serves only one day if the settings say so. */
export function clockOf(
  { EOD_TRIAL_DAY: trialDay }: Pick<ClockSettings, 'EOD_TRIAL_DAY'>,
  clock = systemClock,
): Clock {
  return trialDay === undefined ? clock : { ...clock, trialDay };
}

/** A clock that differs from the database's by more than this was set to another time on purpose, or is broken. */
const MAX_CORRECTION_MS = 3_600_000;

/**
 * A clock that shows the time of the database from when it is set, so that processes on machines whose clocks differ
 * agree on the order of their calls. It is not set if it differs by more than an hour: anyone who runs a command under
 * another date, to see what a night will do, means that date.
 */
export function createSettableClock(clock: Clock): SettableClock {
  let ahead = 0;
  let difference = 0;
  return {
    trialDay: clock.trialDay,
    now: () => Math.floor(clock.now() + ahead),
    databaseNow: () => Math.floor(clock.now() + difference),
    set(now) {
      difference = now - clock.now();
      const isSet = Math.abs(difference) <= MAX_CORRECTION_MS;
      ahead = isSet ? difference : 0;
      return isSet;
    },
  };
}

/** The trading day that a day of the clock stands for: itself, or the only one that the source serves. */
export const tradingDay = ({ trialDay }: Pick<Clock, 'trialDay'>, day: Day): Day => trialDay ?? day;

/** The trading day of a time in epoch milliseconds, in `zone`. */
export const tradingDayAt = (clock: Pick<Clock, 'trialDay'>, time: number, zone: string): Day =>
  tradingDay(clock, dayAt(Math.floor(time / 1000), zone));

/** The trading day of the present. */
export const today = (clock: Clock, zone: string): Day => tradingDayAt(clock, clock.now(), zone);

/** The same for people, with what decides it. */
export const todayText = (clock: Clock, zone: string): string =>
  `${today(clock, zone)}${clock.trialDay === undefined ? ` in ${zone}` : ', by EOD_TRIAL_DAY'}`;

/** Days that can be requested, and why no others can. */
export interface Reach extends DayRange {
  readonly reason: string;
}

/** The only days that can be requested; undefined: any. */
export const reachOf = ({ trialDay: day }: Clock): Reach | undefined =>
  day === undefined
    ? undefined
    : { from: day, to: day, reason: `only ${day} can be requested (EOD_TRIAL_DAY)` };

/** As of when trading days are due, and how many days before that can be requested. @param now null: the present. */
export const reachOfSource = (
  {
    EOD_TRIAL_DAY: trialDay,
    EOD_TIMEZONE: zone,
    EOD_HISTORY_DAYS: historyDays,
  }: ClockSettings & {
    readonly EOD_HISTORY_DAYS: number;
  },
  now: number | null,
) =>
  trialDay === undefined
    ? { asOf: now, historyDays }
    : { asOf: 1_000 * dayEnd(trialDay, zone), historyDays: 0 };

/** Days for examples: a week that ends on the last weekday before today, which every source still serves. */
export function exampleDays(): DayRange {
  let to = addDays(today(systemClock, 'Asia/Kolkata'), -1);
  while (isWeekend(to)) to = addDays(to, -1);
  return { from: addDays(to, -7), to };
}

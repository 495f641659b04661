import { addDays, type Day, type DayRange, dayAt, isWeekend } from './days.ts';

/** Where the pipeline reads the time; tests pass a clock of their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * The day that is taken as today, if the source serves only one (EOD_TRIAL_DAY); the time is still that of the clock.
   */
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

/** The same clock, for a source that serves only one day if the settings say so. */
export function clockOf(
  { EOD_TRIAL_DAY: trialDay }: { readonly EOD_TRIAL_DAY?: Day | undefined },
  own = systemClock,
): Clock {
  return trialDay === undefined ? own : { ...own, trialDay };
}

/** A clock that differs from the database's by more than this was set to another time on purpose, or is broken. */
const MAX_CORRECTION_MS = 3_600_000;

/**
 * A clock that shows the time of the database from when it is set, so that processes on machines whose clocks differ
 * agree on the order of their calls. It is not set if it differs by more than an hour: anyone who runs a command under
 * another date, to see what a night will do, means that date.
 */
export function createSettableClock(own: Clock): SettableClock {
  let ahead = 0;
  let difference = 0;
  return {
    trialDay: own.trialDay,
    now: () => Math.floor(own.now() + ahead),
    databaseNow: () => Math.floor(own.now() + difference),
    set(now) {
      difference = now - own.now();
      const isSet = Math.abs(difference) <= MAX_CORRECTION_MS;
      ahead = isSet ? difference : 0;
      return isSet;
    },
  };
}

/** Today in `zone`, or the day that the source serves. */
export function today(clock: Clock, zone: string): Day {
  return clock.trialDay ?? dayAt(Math.floor(clock.now() / 1000), zone);
}

/** Days for examples: a week that ends on the last weekday before today, which every source still serves. */
export function exampleDays(): DayRange {
  let to = addDays(today(systemClock, 'Asia/Kolkata'), -1);
  while (isWeekend(to)) to = addDays(to, -1);
  return { from: addDays(to, -7), to };
}

/**
 * By how much our clock is certainly ahead of another (negative: behind), which was read at some time during a call; 0 if
 * the time that the call took may be all of the difference. Unit: milliseconds.
 */
export function certainLead(
  call: { readonly sentAt: number; readonly receivedAt: number },
  theirs: number,
): number {
  const half = (call.receivedAt - call.sentAt) / 2;
  const lead = call.sentAt + half - theirs;
  return Math.sign(lead) * Math.max(0, Math.abs(lead) - half);
}

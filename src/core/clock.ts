import { addDays, type Day, type DayRange, dayAt, isWeekend } from './days.ts';

/** Where the pipeline reads the time; tests pass a clock of their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Sets it to the time of the database. Without it, the clock keeps its own time. @returns whether it was set. */
  set?(now: number): boolean;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A clock that differs from the database's by more than this was set to another time on purpose, or is broken. */
const MAX_CORRECTION_MS = 3_600_000;

/**
 * A clock that shows the time of the database from when it is set, so that processes on machines whose clocks differ
 * agree on the order of their calls. It is not set if it differs by more than an hour: whoever runs a command under
 * another date, to see what a night will do, means that date.
 */
export function createSettableClock(own: Clock = systemClock): Required<Clock> {
  let ahead = 0;
  return {
    now: () => Math.floor(own.now() + ahead),
    set(now) {
      const difference = now - own.now();
      const isSet = Math.abs(difference) <= MAX_CORRECTION_MS;
      ahead = isSet ? difference : 0;
      return isSet;
    },
  };
}

/** Today in `zone`. */
export function today(clock: Clock, zone: string): Day {
  return dayAt(Math.floor(clock.now() / 1000), zone);
}

/** Days for examples: a week that ends on the last weekday before today, which every source still serves. */
export function exampleDays(): DayRange {
  let to = addDays(today(systemClock, 'Asia/Kolkata'), -1);
  while (isWeekend(to)) to = addDays(to, -1);
  return { from: addDays(to, -7), to };
}

import { type Day, dayAt } from './days.ts';

/** Where the pipeline reads the time; tests pass a clock of their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Today in `zone`. */
export function today(clock: Clock, zone: string): Day {
  return dayAt(Math.floor(clock.now() / 1000), zone);
}

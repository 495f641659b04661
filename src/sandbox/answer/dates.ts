import { type Day, dayAt, dayStart, timeAt } from '../../core/days.ts';
import { ZONE } from '../market/market.ts';

export type DateFormat = 'String' | 'Epoch';

/** `MM-DD-YYYY` (spec 2.1). */
export function dateText(day: Day): string {
  return `${day.slice(5, 7)}-${day.slice(8, 10)}-${day.slice(0, 4)}`;
}

let lastSeconds = Number.NaN;
let lastText = '';

/** `MM-DD-YYYY HH:mm:ss` on Indian clocks. */
export function dateTimeText(seconds: number): string {
  // Neighbouring records share their audit times.
  if (seconds !== lastSeconds) {
    lastText = `${dateText(dayAt(seconds, ZONE))} ${timeAt(seconds, ZONE)}`;
    lastSeconds = seconds;
  }
  return lastText;
}

/** The source's way to say that there is no date (field notes). */
export const NO_DATE = '01-01-0001';
export const NO_DATE_TIME = '01-01-0001 00:00:00';

/** Epoch seconds of a day's midnight. */
export function dateEpoch(day: Day): number {
  return dayStart(day, ZONE);
}

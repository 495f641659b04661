import { type Day, dayAt, dayStart, timeAt } from '../../core/days.ts';
import { ZONE } from '../market/market.ts';

export type DateFormat = 'String' | 'Epoch';

/** `MM-DD-YYYY` (spec 2.1). */
export function dateText(day: Day): string {
  return `${day.slice(5, 7)}-${day.slice(8, 10)}-${day.slice(0, 4)}`;
}

const REMEMBERED = 10_000;
const texts = new Map<number, string>();

/** `MM-DD-YYYY HH:mm:ss` on Indian clocks. */
export function dateTimeText(seconds: number): string {
  let text = texts.get(seconds);
  if (text === undefined) {
    text = `${dateText(dayAt(seconds, ZONE))} ${timeAt(seconds, ZONE)}`;
    // A day's records share their audit times.
    if (texts.size >= REMEMBERED) texts.clear();
    texts.set(seconds, text);
  }
  return text;
}

/** The source's way to say that there is no date (field notes). */
export const NO_DATE = '01-01-0001';
export const NO_DATE_TIME = '01-01-0001 00:00:00';

/** Epoch seconds of a day's midnight. */
export function dateEpoch(day: Day): number {
  return dayStart(day, ZONE);
}

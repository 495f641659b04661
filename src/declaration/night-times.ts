import { type Clock, tradingDay } from '../core/clock.ts';
import { addDays, type Day, dayAt, epochOf } from '../core/days.ts';
import type { NonEmpty } from '../core/iterables.ts';
import { type Operation, publicationTime, SCHEDULED_WEEKDAYS } from './operation.ts';

// A night has the name of the day whose data it requests first, and lasts until the exchanges open again.

/** The settings that say when nights begin. */
export interface NightSettings {
  readonly EOD_PUBLISHED_AT: string;
  readonly EOD_NIGHT_TIMES?: readonly string[] | undefined;
}

const HOUR_S = 3_600;
const DAY_MINUTES = 1_440;

/** The hour before the exchanges open: what is requested until then belongs to the night of the day before. */
const OPENING_HOUR = 9;

/** The time at which the first operation is declared to be requested; EOD_NIGHT_TIMES moves it and the others with it. */
const DECLARED_START = '21:15';

const countMinutes = (time: string) => secondsOfDay(time) / 60;

/** The times of EOD_NIGHT_TIMES in the order of a night, in minutes after the midnight that the day begins with. */
function nightMinutes(times: readonly string[]): number[] {
  const inNight = (minutes: number) => (minutes < OPENING_HOUR * 60 ? minutes + DAY_MINUTES : minutes);
  return times.map((time) => inNight(countMinutes(time))).sort((a, b) => a - b);
}

/**
 * When the schedules request the data of a day of an operation, in minutes after the midnight that the day begins with:
 * at the declared time, or as long after each time of EOD_NIGHT_TIMES as it is declared to be after the first.
 */
export function requestMinutes(
  { schedule }: Pick<Operation, 'schedule'>,
  { EOD_NIGHT_TIMES: times }: Pick<NightSettings, 'EOD_NIGHT_TIMES'>,
): Readonly<NonEmpty<number>> {
  if (times === undefined) return [countMinutes(schedule.at)];
  const later = minutesIntoNight({ schedule }, { EOD_NIGHT_TIMES: times });
  const [first, ...others] = nightMinutes(times).map((minutes) => minutes + later);
  return [first ?? later, ...others];
}

/** How many minutes after each time of EOD_NIGHT_TIMES an operation is requested; 0 where these are not set. */
export const minutesIntoNight = (
  { schedule }: Pick<Operation, 'schedule'>,
  { EOD_NIGHT_TIMES: times }: Pick<NightSettings, 'EOD_NIGHT_TIMES'>,
): number =>
  times === undefined ? 0 : Math.max(0, countMinutes(schedule.at) - countMinutes(DECLARED_START));

/** The cron pattern of such a time, on the weekdays of the schedule. */
export function cronPattern({ schedule }: Pick<Operation, 'schedule'>, minutes: number): string {
  const weekday = SCHEDULED_WEEKDAYS[schedule.on];
  const day = weekday === null ? '*' : (weekday + Math.floor(minutes / DAY_MINUTES)) % 7;
  return `${minutes % 60} ${Math.floor(minutes / 60) % 24} * * ${day}`;
}

/**
 * When the data of a day is due, in minutes after the midnight that the day begins with, whatever the weekday: when the
 * schedules request it first after it is published.
 */
export function dueMinutes(operation: Operation, settings: NightSettings): number {
  const published = countMinutes(publicationTime(operation, settings.EOD_PUBLISHED_AT));
  return requestMinutes(operation, settings).find((minutes) => minutes >= published) ?? published;
}

/** The night to which a request at this moment belongs (epoch seconds). */
export function nightAt(epochSeconds: number, zone: string): Day {
  return dayAt(epochSeconds - OPENING_HOUR * HOUR_S, zone);
}

/**
 * The last day whose data is due: today from EOD_PUBLISHED_AT on, or from the first time of EOD_NIGHT_TIMES if that is
 * earlier, and until then yesterday.
 */
export function lastNight(settings: NightSettings & { readonly EOD_TIMEZONE: string }, clock: Clock): Day {
  const { EOD_TIMEZONE: zone, EOD_NIGHT_TIMES: times, EOD_PUBLISHED_AT: published } = settings;
  const begins = Math.min(countMinutes(published), nightMinutes(times ?? [])[0] ?? DAY_MINUTES);
  const seconds = Math.floor(clock.now() / 1000);
  const day = dayAt(seconds, zone);
  const isDue = seconds >= epochOf(day, begins * 60, zone);
  return tradingDay(clock, isDue ? day : addDays(day, -1));
}

/** Seconds after midnight of a time of day, `HH:mm`. */
export function secondsOfDay(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 3_600 + minutes * 60;
}

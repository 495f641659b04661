import { type DayRange, dayAt, timeAt } from './days.ts';
import { type Pair, pairName } from './exchanges.ts';

// How numbers, ranges, durations and times are written for people, on a terminal and on web pages.

/**
 * `12,345` or `1.25`: at most two decimals. Without `Intl.NumberFormat`, which would take a tenth of the time of the
 * status command.
 */
export function count(value: number): string {
  const [integer = '', ...decimals] = String(Number(value.toFixed(2))).split('.');
  return [integer.replace(/\B(?=(\d{3})+$)/g, ','), ...decimals].join('.');
}

/** `a, b or c` */
export const either = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

/** `Price bands`, from `price bands`. */
export const sentenceCase = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** `12.3 %`: three digits are enough to judge a size. */
const percentText = (value: number): string => `${Number(value.toPrecision(3))} %`;

/** Kinds of corporate events without terms from which an effect on the price follows. */
const WITHOUT_TERMS: readonly string[] = ['buyback', 'meeting', 'other'];

/** How far an event of a kind moves the price, by `etl.price_effect`: at most by its terms, or as far as the price moved. */
export const priceEffectText = (kind: string, effect: number): string =>
  WITHOUT_TERMS.includes(kind)
    ? `the price moved by ${percentText(effect)}`
    : `at most ${percentText(effect)} of the price`;

/** `1 window`, `3 windows`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** `2025-02-27`, or `2025-02-20 to 2025-02-27`. */
export function rangeText({ from, to }: DayRange): string {
  return from === to ? from : `${from} to ${to}`;
}

/** `2025-02-20, latest 2025-02-27`: the day up to which none is missing, and the latest that is complete. */
export const completeText = ({
  completeTo,
  lastComplete,
}: {
  readonly completeTo: string | null;
  readonly lastComplete: string | null;
}): string =>
  [
    completeTo ?? 'no complete day yet',
    ...(lastComplete === completeTo ? [] : [`latest ${lastComplete}`]),
  ].join(', ');

/** Whether a run has days: an import that loaded nothing has only that on which it was started. */
export const hasDays = (run: {
  readonly kind: string;
  readonly windows: { readonly total: number };
}): boolean => run.kind !== 'import' || run.windows.total > 0;

/** The kind and the days of a run, such as `import, 2025-02-27`. */
export const runDaysText = (run: Parameters<typeof hasDays>[0] & DayRange): string =>
  hasDays(run) ? `${run.kind}, ${rangeText(run)}` : run.kind;

/** `empty on 5 trading days that should have data, 2 of them not published yet (2025-02-20 to 2025-02-27)`. */
export function emptyTradingDaysText({
  sessions,
  notPublished,
  ...range
}: DayRange & { readonly sessions: number; readonly notPublished: number }): string {
  if (notPublished === sessions)
    return `${plural(sessions, 'trading day')} ${sessions === 1 ? 'is' : 'are'} not published yet (${rangeText(range)})`;
  const ofThem = notPublished === 0 ? '' : `, ${notPublished} of them not published yet`;
  return `empty on ${plural(sessions, 'trading day')} that should have data${ofThem} (${rangeText(range)})`;
}

/** A reason without its numbers and times: reasons that differ only in these are one cause. */
export const causeOf = (reason: string): string => reason.replace(/\d[\d.,:-]*/g, '#');

/** The state of a run; `no records` if it completed and all that the source sent was empty. */
export function runStateText(run: {
  readonly state: string;
  readonly windows: { readonly empty: number };
  readonly fetched: number;
}): string {
  return run.state === 'completed' && run.windows.empty > 0 && run.fetched === 0 ? 'no records' : run.state;
}

/** Windows of a run that failed and are tried again, for the same reason. */
export interface Retry extends Pair {
  readonly windows: number;
  readonly error: string;
  /** The number of their next call, the largest of them: the first is 1. Not all count towards EOD_ATTEMPTS. */
  readonly attempt: number;
  /** When the first of them is tried again at the earliest, ISO 8601; null if that time has come. */
  readonly retryAt: string | null;
  /** Whether its run is paused, and tries nothing until it is resumed. */
  readonly isPaused: boolean;
}

/** `GetCircuitBreakers NSE: HTTP 500, 5th call at 02:59:12`. */
export function retryText(retry: Retry, timeZone: string): string {
  const { windows, error, attempt, retryAt, isPaused } = retry;
  const several = windows === 1 ? '' : ` (${plural(windows, 'window')})`;
  const why = error.replace(/^the source responded with HTTP status /, 'HTTP ');
  const unnamed = isPaused ? 'when the run is resumed' : 'waits for its turn';
  const when = retryAt === null ? unnamed : `at ${timeAt(Date.parse(retryAt) / 1000, timeZone)}`;
  return `${pairName(retry)}${several}: ${why}, ${ordinal(attempt)} call ${when}`;
}

/** Says of a trading day that only prices show. */
export const observedTradingDayText = ({
  exchange,
  day,
}: {
  readonly exchange: string;
  readonly day: string;
}) => `${exchange} ${day} counts as a trading day: prices exist, although the calendar has it closed`;

/** `1st`, `2nd`, `3rd`, `4th`, `11th`. */
function ordinal(value: number): string {
  const teens = value % 100 >= 11 && value % 100 <= 13;
  return `${value}${(teens ? undefined : ['th', 'st', 'nd', 'rd'][value % 10]) ?? 'th'}`;
}

/**
 * True if a number of records differs so much from the usual one that it is worth saying. Small data sets vary more.
 */
export const isUnusual = (records: number, usual: number | null): boolean =>
  usual !== null && usual >= 100 && Math.abs(records - usual) > usual * 0.2;

/** `4s`, `1m 20s`, `2h 05m`. */
export function duration(seconds: number): string {
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded}s`;
  if (rounded < 3_600) return `${Math.floor(rounded / 60)}m ${String(rounded % 60).padStart(2, '0')}s`;
  return `${Math.floor(rounded / 3_600)}h ${String(Math.floor((rounded % 3_600) / 60)).padStart(2, '0')}m`;
}

/** `2025-02-27 19:00:00`: an ISO 8601 time in the local time of a zone. */
export function momentText(iso: string, timeZone: string): string {
  const seconds = Math.floor(Date.parse(iso) / 1000);
  return `${dayAt(seconds, timeZone)} ${timeAt(seconds, timeZone)}`;
}

/** `19:00 IST`: the time of day of an ISO 8601 time in a zone, with the name of the zone. */
export function clockTime(iso: string, timeZone: string): string {
  return `${timeAt(Date.parse(iso) / 1000, timeZone).slice(0, 5)} ${zoneName(iso, timeZone)}`;
}

/** `IST` for Asia/Kolkata. */
function zoneName(iso: string, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en-IN', { timeZone, timeZoneName: 'short' }).formatToParts(
    Date.parse(iso),
  );
  return parts.find((part) => part.type === 'timeZoneName')?.value ?? timeZone;
}

/**
 * Characters with which text from outside could control a terminal or be shown in another order than it is stored:
 * control characters except tab and line feed, and the marks that set the writing direction.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression is there to find them.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const escapeCharacter = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Escapes control characters as JSON does, e.g. `\u001b`, so that a JSON document keeps its meaning. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, escapeCharacter);
}

/** The name of a file as it is shown and stored: on one line, so that it cannot be taken for other lines of a report. */
export function escapeName(name: string): string {
  return escapeControls(name).replace(/[\t\n]/g, escapeCharacter);
}

/** At most this many items are listed in a message. */
const MAX_LISTED = 5;

/** The first items as a text, with the number of the others. */
export function listText(items: readonly string[], separator = '; '): string {
  const more = items.length - MAX_LISTED;
  return items.slice(0, MAX_LISTED).join(separator) + (more > 0 ? `${separator}and ${more} more` : '');
}

/** A word as a shell reads it: ids of events have symbols in them, such as M&M. */
export const quoteForShell = (word: string): string =>
  /^[\w./:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** What is wrong with a record: `ClosePrice is no number; …`. A problem of the whole record has no path. */
export const problemsText = (
  problems: readonly { readonly path: string; readonly message: string }[],
): string => problems.map(({ path, message }) => [path, message].filter(Boolean).join(' ')).join('; ');

/** Why a file is skipped that was imported completely. */
export const IMPORTED_BEFORE = 'imported before';

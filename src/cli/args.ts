import type { Clock } from '../core/clock.ts';
import { today } from '../core/clock.ts';
import { type Config, readList } from '../core/config.ts';
import { type Day, dayStart, isDay } from '../core/days.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { EXCHANGES, type Operation } from '../operations/operation.ts';
import { operationNamed, operations } from '../operations/registry.ts';

/** What a day may be compared with. */
export interface DayContext {
  readonly config: Pick<Config, 'EOD_TIMEZONE'>;
  readonly clock: Clock;
}

/** A day that exists and is not after today in EOD_TIMEZONE. */
export function parseDay(flag: string, text: string, { config, clock }: DayContext): Day {
  if (!isDay(text)) throw usageError(`${flag}: "${text}" is not a day; write it as 2025-02-27`);
  const now = today(clock, config.EOD_TIMEZONE);
  if (text > now) {
    throw usageError(`${flag}: ${text} is in the future (today is ${now} in ${config.EOD_TIMEZONE})`);
  }
  return text;
}

const MOMENT = /^(\d{4}-\d{2}-\d{2})[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-](0\d|1[0-5]):?[0-5]\d)$/i;

/**
 * A moment: a day (its first second in EOD_TIMEZONE), or a time that says its zone. Text that Postgres
 * reads: a Date would lose the microseconds.
 */
export function parseMoment(flag: string, text: string, { config }: Pick<DayContext, 'config'>): string {
  if (isDay(text)) return new Date(dayStart(text, config.EOD_TIMEZONE) * 1000).toISOString();
  const day = MOMENT.exec(text)?.[1];
  if (day !== undefined && isDay(day) && !Number.isNaN(Date.parse(text))) return text;
  throw usageError(
    `${flag}: "${text}" is not a time; write a day, 2025-02-27, or a time with its zone, 2025-02-27T21:00:00+05:30`,
  );
}

/** Both ends of a range, in order. */
export function parseRange(
  from: string | undefined,
  to: string | undefined,
  context: DayContext,
): { from: Day; to: Day } {
  if (from === undefined || to === undefined) {
    const missing = [from === undefined ? '--from' : '', to === undefined ? '--to' : ''].filter(Boolean);
    throw usageError(`${missing.join(' and ')} missing: give both, e.g. --from 2025-02-20 --to 2025-02-27`);
  }
  const range = { from: parseDay('--from', from, context), to: parseDay('--to', to, context) };
  if (range.from > range.to) {
    throw usageError(`--from ${range.from} is after --to ${range.to}: the range is reversed`);
  }
  return range;
}

/** Operations by name, in any case, each once; or all of them. */
export function parseOperations(names: readonly string[], all: boolean): Operation[] {
  if (all && names.length > 0) throw usageError('give either names of operations or --all, not both');
  if (all) return [...operations];
  if (names.length === 0) {
    throw usageError('nothing to do: name operations ("eod operations" lists them) or give --all');
  }
  const split = names.flatMap((name) => name.split(',')).filter((name) => name !== '');
  return [...new Set(split.map(operationNamed))];
}

/** Exchanges, in any case; undefined when none are given. */
export function parseExchanges(text: string | undefined): string[] | undefined {
  return text === undefined ? undefined : parseChoices('--exchange', text, EXCHANGES, 'exchange');
}

/** `A, B` or `@file`; empty when none are given. */
export function parseInstruments(text: string | undefined): string[] {
  if (text === undefined) return [];
  let names: string[];
  try {
    names = readList(text);
  } catch (error) {
    throw usageError(`--instruments: ${text} cannot be read: ${messageOf(error)}`);
  }
  if (names.length === 0) throw usageError(`--instruments: ${text || 'it'} names no instrument`);
  return names;
}

/** The number of a run. */
export function parseRunId(text: string): number {
  const id = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(id)) {
    throw usageError(`"${text}" is not the number of a run ("eod runs" lists them)`);
  }
  return id;
}

/** A list of known words, without regard to case, each once. */
export function parseChoices<Word extends string>(
  flag: string,
  text: string,
  known: readonly Word[],
  what: string,
): Word[] {
  const words = [...new Set(text.split(',').map((word) => word.trim()))].filter((word) => word !== '');
  if (words.length === 0) throw usageError(`${flag}: it names no ${what} (${known.join(', ')})`);
  return words.map((word) => {
    const found = known.find((one) => one.toLowerCase() === word.toLowerCase());
    if (found !== undefined) return found;
    const guess = nearest(word, known);
    const hint = guess === null ? '' : `; did you mean ${guess}?`;
    throw usageError(`${flag}: unknown ${what} "${word}"${hint} (known: ${known.join(', ')})`);
  });
}

import { type Clock, type ClockSettings, clockOf, exampleDays, today, todayText } from '../core/clock.ts';
import { addDays, type Day, type DayRange, dayStart, isDay } from '../core/days.ts';
import { usageError } from '../core/errors.ts';
import { EXCHANGE_CODES } from '../core/exchanges.ts';
import { type NumberRange, parseChoice, parseInteger } from '../core/input.ts';
import type { Severity } from '../state/findings.ts';
import type { ArgumentType, OptionType } from './define-command.ts';

/** How severe findings are, the least first. */
export const SEVERITIES = ['info', 'warning', 'error'] as const satisfies readonly Severity[];

// Types of options.

/** An option without a value. @param conflicts the keys of options that contradict it. */
export const flag = (description: string, ...conflicts: readonly string[]): OptionType<boolean> => ({
  description,
  default: false,
  conflicts,
});

/** An option whose value stays a text. */
export const text = (placeholder: string, description: string): OptionType<string | undefined> => ({
  description,
  placeholder,
});

/** A day, to be read by `parseDay`, `parseOpenRange` or `parseRange`: which ones are allowed may depend on settings. */
export const day = (description: string) => text('<day>', description);

/** An option that may be given several times. */
export const repeatable = (
  placeholder: string,
  description: string,
): OptionType<readonly string[] | undefined> => ({
  description,
  placeholder,
  parse: (typed, _, before = []) => [...before, typed],
});

export const integer = (
  placeholder: string,
  description: string,
  range: NumberRange,
): OptionType<number | undefined> => ({
  description,
  placeholder,
  parse: (typed, name) => parseInteger(name, typed, range),
});

/** How many lines of a list are printed, or how many rows of a result. */
export const LIMIT: NumberRange = { least: 1, most: 9_999_999 };

export const limit = (value: number): OptionType<number> => ({
  description: 'how many',
  placeholder: '<n>',
  parse: (typed, name) => parseInteger(name, typed, LIMIT),
  default: value,
});

/** One of these words, in any case. */
export const word = <Word extends string>(
  placeholder: string,
  description: string,
  words: readonly Word[],
  noun?: string,
): OptionType<Word | undefined> => ({
  description,
  placeholder,
  parse: (typed, name) => parseChoice(name, typed, words, noun),
});

/** The parts of a text that commas separate, without repeats. */
export const splitList = (text: string): string[] => {
  const parts = text.split(',').map((part) => part.trim());
  return [...new Set(parts.filter((part) => part !== ''))];
};

/** Several of these words, separated by commas, in any case and without repeats. */
export const words = <Word extends string>(
  description: string,
  known: readonly Word[],
  noun: string,
): OptionType<readonly Word[] | undefined> => ({
  description,
  placeholder: '<list>',
  parse(typed, name) {
    const names = splitList(typed);
    if (names.length === 0) throw usageError(`${name} names no ${noun} (${known.join(', ')})`);
    return [...new Set(names.map((part) => parseChoice(name, part, known, noun)))];
  },
});

/** An option in milliseconds. @param byDefault its value if it is not given, as it is typed: `2h`. */
export const duration = (description: string, byDefault: string): OptionType<number> => ({
  description,
  placeholder: '<time>',
  parse: (typed, name) => parseDuration(name, typed),
  default: parseDuration('', byDefault),
  defaultText: byDefault,
});

// Options of several commands.

export const exchangeOption = words('only these exchanges, e.g. NSE,BSE', EXCHANGE_CODES, 'exchange');

/** Two options that narrow a list by day. @param things what the list has: `days`, `ex-dates`, `responses about days`. */
export const onlyDays = (things: string) => ({
  from: day(`only ${things} from this one on, YYYY-MM-DD`),
  to: day(`only ${things} up to this one, YYYY-MM-DD`),
});

/** Leaves the work of a run to other processes. */
export const detachOption = flag('only create the run and print its number; workers (eod up) do the work');

export const dryRunOption = flag('only show which calls would be made', 'detach');

/** Of commands that ask for a confirmation. */
export const yesOption = flag('do not ask first (without a terminal there is no confirmation)');

// Types of arguments.

/** A word that must be there. */
export const required = (description: string): ArgumentType<string> => ({ description, isRequired: true });

/** A word that may be there. */
export const optional = (description: string): ArgumentType<string | undefined> => ({ description });

/** Any number of words. */
export const several = (description: string): ArgumentType<readonly string[]> => ({
  description,
  isVariadic: true,
});

/** The number of something that a command lists. @param noun `run` */
export const numberOf = (noun: string): ArgumentType<number> => ({
  description: `the number of the ${noun}`,
  isRequired: true,
  parse: (typed) => parseInteger(`the number of the ${noun}`, typed, { least: 1 }),
});

/** The same, but it may be left out. */
export const optionalNumberOf = (noun: string): ArgumentType<number | undefined> => ({
  ...numberOf(noun),
  isRequired: false,
});

/** The number of one entry of a list, to show that entry alone. */
export const numberInList = (noun: string, description: string): ArgumentType<number | undefined> => ({
  ...optionalNumberOf(noun),
  description,
  isOne: true,
});

// Days and times.

/** The two ends of a range, read by `parseRange` or `parseOpenRange`. */
export interface RangeValues {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** What `parseDay` needs to know today's date. */
export interface DayContext {
  readonly config: ClockSettings;
  readonly clock: Clock;
}

/**
 * Parses a day. With a context, it must not be after today in EOD_TIMEZONE, and may be the word `today` or `yesterday`,
 * for crontabs and systemd units, where `%` is special and `date +%F` would have to be escaped.
 *
 * @throws PipelineError `usage`
 */
export function parseDay(flag: string, text: string, context?: DayContext): Day {
  const notADay = `${flag}: "${text}" is not a day; write it as 2025-02-27`;
  if (context === undefined) {
    if (!isDay(text)) throw usageError(notADay);
    return text;
  }
  const { config, clock } = context;
  const marketClock = clockOf(config, clock);
  const now = today(marketClock, config.EOD_TIMEZONE);
  if (text === 'today') return now;
  if (text === 'yesterday') return addDays(now, -1);
  if (!isDay(text)) throw usageError(`${notADay}, today or yesterday`);
  if (text > now) {
    throw usageError(
      `${flag}: ${text} is in the future (today is ${todayText(marketClock, config.EOD_TIMEZONE)})`,
    );
  }
  return text;
}

/**
 * Parses a range in which both ends are optional.
 *
 * @throws PipelineError `usage`
 */
export function parseOpenRange(
  flags: RangeValues,
  context?: DayContext,
): { from: Day | undefined; to: Day | undefined } {
  const from = flags.from === undefined ? undefined : parseDay('--from', flags.from, context);
  const to = flags.to === undefined ? undefined : parseDay('--to', flags.to, context);
  if (from !== undefined && to !== undefined && from > to) {
    throw usageError(`--from ${from} is after --to ${to}: the range is reversed`);
  }
  return { from, to };
}

/**
 * Parses a range in which both ends are required.
 *
 * @throws PipelineError `usage`
 */
export function parseRange(flags: RangeValues, context: DayContext): DayRange {
  const { from, to } = parseOpenRange(flags, context);
  if (from !== undefined && to !== undefined) return { from, to };
  const missing = [from === undefined ? '--from' : '', to === undefined ? '--to' : ''].filter(Boolean);
  throw usageError(
    `${missing.join(' and ')} missing: give both, e.g. --from ${exampleDays().from} --to ${exampleDays().to}`,
  );
}

const MOMENT = /^(\d{4}-\d{2}-\d{2})[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-](0\d|1[0-5]):?[0-5]\d)$/i;

/**
 * Parses a moment: a day (its first second in EOD_TIMEZONE), or a time with its zone. Returns text for Postgres,
 * because a Date would lose the microseconds.
 *
 * @throws PipelineError `usage`
 */
export function parseMoment(flag: string, text: string, { config }: Pick<DayContext, 'config'>): string {
  if (isDay(text)) return new Date(dayStart(text, config.EOD_TIMEZONE) * 1000).toISOString();
  const day = MOMENT.exec(text)?.[1];
  if (day !== undefined && isDay(day) && !Number.isNaN(Date.parse(text))) return text;
  throw usageError(
    `${flag}: "${text}" is not a time; write a day, 2025-02-27, or a time with its zone, 2025-02-27T21:00:00+05:30`,
  );
}

const UNITS = { '': 1_000, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** Milliseconds of `90s`, `30m`, `2h`, or of a number of seconds. @throws PipelineError `usage` */
function parseDuration(flag: string, text: string): number {
  const [, amount, unit] = /^(\d{1,6})([smh]?)$/.exec(text) ?? [];
  if (amount === undefined) throw usageError(`${flag}: "${text}" is not a time such as 90s, 30m or 2h`);
  return Number(amount) * UNITS[unit as keyof typeof UNITS];
}

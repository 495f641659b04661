import { Argument, Option } from 'commander';
import { type Clock, type ClockSettings, clockOf, exampleDays, today, todayText } from '../core/clock.ts';
import { addDays, type Day, type DayRange, dayStart, isDay } from '../core/days.ts';
import { usageError } from '../core/errors.ts';
import { EXCHANGE_CODES } from '../core/exchanges.ts';
import { type NumberRange, parseChoice, parseInteger } from '../core/input.ts';
import type { Severity } from '../state/findings.ts';
import { pageWidth, wrap } from './output.ts';

export { exampleDays };

// Words that options take, and numbers that their descriptions name.

/** What a process of `eod up` may do. */
export const ROLES = ['scheduler', 'worker', 'web'] as const;

/** Formats of exported files; each is also the ending of a file's name. */
export const FORMATS = ['parquet', 'csv', 'ndjson'] as const;

/** States of a corporate event. */
export const EVENT_STATUSES = ['applied', 'needs_review', 'ignored'] as const;

/** How severe findings are, the least first. */
export const SEVERITIES = ['info', 'warning', 'error'] as const satisfies readonly Severity[];

/** How many rows are listed where `--limit` says nothing. */
export const LISTED = {
  /** Of a query, whose table is held in memory, and read by a person. */
  asTable: 1_000,
} as const;

/** The examples at the end of the help of a command. */
export function examples(lines: readonly string[]): string {
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map(exampleText).join('\n')}`;
}

/** Breaks an example that is wider than the page into several lines, as a shell reads them, its comment above it. */
function exampleText(line: string): string {
  const whole = `  $ ${line}`;
  if (whole.length <= pageWidth()) return whole;
  const [command = '', comment] = line.split(/\s+# /);
  const lines = comment === undefined ? [] : [wrap(`  # ${comment}`).replaceAll('\n    ', '\n  # ')];
  return [...lines, commandText(`  $ ${command}`)].join('\n');
}

/** Breaks a command that is wider than the page into several lines, as a shell reads them, so that it can be pasted. */
export function commandText(line: string): string {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > pageWidth()) {
    const start = rest.search(/\S/) + 2;
    const last = (text: string) => rest.lastIndexOf(text, pageWidth() - 2);
    const end = last(' --') > start ? last(' --') : last(' ');
    if (end <= start) break;
    lines.push(`${rest.slice(0, end)} \\`);
    rest = `     ${rest.slice(end)}`;
  }
  return [...lines, rest].join('\n');
}

/** The `--json` flag. @param kind the kind of document, if the command does not make it obvious. */
export function jsonOption(kind?: string): Option {
  return new Option('--json', `print one JSON document${kind === undefined ? '' : `: ${kind}`}`);
}

/** The `--limit` flag. */
export function limitOption(fallback?: number, meaning = 'how many'): Option {
  const option = integerOption('--limit <n>', meaning, { least: 1, most: 9_999_999 });
  return fallback === undefined ? option : option.default(fallback);
}

/** A flag that takes an integer. */
export function integerOption(flags: string, description: string, range: NumberRange): Option {
  const option = new Option(flags, description);
  return option.argParser((text: string) => parseInteger(option.long ?? flags, text, range));
}

/** A flag that may be given several times. */
export function repeatableOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((value: string, before: readonly string[] = []) => [
    ...before,
    value,
  ]);
}

/** A flag that takes one of these words, in any case. */
export function wordOption(flags: string, description: string, words: readonly string[], noun?: string) {
  const option = new Option(flags, description);
  return option.argParser((text: string) => parseChoice(option.long ?? flags, text, words, noun));
}

/** A flag that takes several of these words, separated by commas, in any case and without repeats. */
export function wordsOption(flags: string, description: string, words: readonly string[], noun: string) {
  const option = wordOption(flags, description, words);
  return option.argParser((text: string) => {
    const typed = new Set(text.split(',').map((word) => word.trim()));
    typed.delete('');
    if (typed.size === 0) throw usageError(`${option.long} names no ${noun} (${words.join(', ')})`);
    return [...new Set([...typed].map((word) => parseChoice(option.long ?? flags, word, words, noun)))];
  });
}

/** The `--exchange` flag. */
export const exchangeOption = () =>
  wordsOption('--exchange <list>', 'only these exchanges, e.g. NSE,BSE', EXCHANGE_CODES, 'exchange');

/** The two ends of a range, read by `parseRange` or `parseOpenRange`. */
export interface RangeFlags {
  readonly from?: string;
  readonly to?: string;
}

/** The flags `--from` and `--to`, with these descriptions. */
export function rangeOptions({ from, to }: Required<RangeFlags>): Option[] {
  return [new Option('--from <day>', from), new Option('--to <day>', to)];
}

/** The `--detach` flag, which leaves the work of a run to other processes. */
export function detachOption(): Option {
  return new Option('--detach', 'only create the run and print its number; workers (eod up) do the work');
}

/** The `--dry-run` flag. */
export function dryRunOption(): Option {
  return new Option('--dry-run', 'only show which calls would be made').conflicts('detach');
}

/** The flag of commands that ask before they delete something. */
export function yesOption(): Option {
  return new Option('--yes', 'do not ask first (without a terminal there is no confirmation)');
}

/** The `<id>` argument of a verb, as a number. @param noun what it acts on: `run`. */
export function idArgument(noun: string, description = `number of the ${noun}`): Argument {
  return new Argument('<id>', description).argParser((text: string) => parseId(noun, text));
}

/** The same where options may say which instead. */
export function optionalId(noun: string): Argument {
  return new Argument('[id]', `number of the ${noun}`).argParser((text: string) => parseId(noun, text));
}

/** Parses the number of something that a command lists. @param noun `reject` @throws PipelineError `usage` */
export function parseId(noun: string, text: string): number {
  return parseInteger(`the number of the ${noun}`, text, { least: 1 });
}

/** What `parseDay` needs to know today's date. */
export interface DayContext {
  readonly config: ClockSettings;
  readonly clock: Clock;
}

/**
 * Parses a day. With a context, it must not be after today in EOD_TIMEZONE, and may be the word `today` or `yesterday`
 * for crontabs and units, in which the `%` of `date +%F` means something else.
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

/** Parses a range in which both ends are optional. @throws PipelineError `usage` */
export function parseOpenRange(
  flags: RangeFlags,
  context?: DayContext,
): { from: Day | undefined; to: Day | undefined } {
  const from = flags.from === undefined ? undefined : parseDay('--from', flags.from, context);
  const to = flags.to === undefined ? undefined : parseDay('--to', flags.to, context);
  if (from !== undefined && to !== undefined && from > to) {
    throw usageError(`--from ${from} is after --to ${to}: the range is reversed`);
  }
  return { from, to };
}

/** Parses a range in which both ends are required. @throws PipelineError `usage` */
export function parseRange(flags: RangeFlags, context: DayContext): DayRange {
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

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds of `90s`, `30m`, `2h`, or of a number of seconds. @throws PipelineError `usage` */
export function parseDuration(flag: string, text: string): number {
  const [, amount, unit = 's'] = /^(\d{1,6})([smh]?)$/.exec(text) ?? [];
  if (amount === undefined) throw usageError(`${flag}: "${text}" is not a time such as 90s, 30m or 2h`);
  return Number(amount) * (UNITS[unit || 's'] as number);
}

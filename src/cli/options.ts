import { Argument, type Command, Help, Option } from 'commander';
import { type Clock, clockOf, exampleDays, today } from '../core/clock.ts';
import type { Config } from '../core/config.ts';
import { addDays, type Day, type DayRange, dayStart, isDay } from '../core/days.ts';
import { type PipelineError, usageError } from '../core/errors.ts';
import { EXCHANGE_CODES } from '../core/exchanges.ts';
import { didYouMean, type NumberRange, parseChoice, parseInteger } from '../core/input.ts';
import { PAGE_WIDTH } from './output.ts';

export { exampleDays };

/** The examples at the end of the help of a command. */
export function examples(...lines: string[]): string {
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map(exampleText).join('\n')}`;
}

/** Breaks an example that is wider than the page into two lines, as a shell reads them. */
function exampleText(line: string): string {
  const text = `  $ ${line}`;
  const end = text.length <= PAGE_WIDTH ? -1 : text.lastIndexOf(' --', PAGE_WIDTH - 2);
  return end === -1 ? text : `${text.slice(0, end)} \\\n     ${text.slice(end)}`;
}

/**
 * Gives a command the grammar of lists: alone it lists, with an id it shows one, with a verb it acts on one. Listing is
 * a command of its own, "list", whose name need not be typed: the help of the command explains it.
 *
 * @param id what may stand after its name beside verbs: `the number of a reject`.
 * @returns the command that lists; verbs are further commands.
 */
export function listOf(command: Command, id: string): Command {
  const list = command
    .command('list', { isDefault: true, hidden: true })
    .description(command.description())
    .configureHelp(command.configureHelp())
    .allowExcessArguments()
    .hook('preAction', () => {
      const [first, second] = list.args;
      const name = command.name();
      if (first === undefined) return;
      if (verbsOf(command).includes(first)) {
        throw usageError(`${name}: flags follow the verb: write "eod ${name} ${first}" first`);
      }
      if (list.registeredArguments[0]?.variadic === true) return;
      if (second !== undefined) {
        if (/^\d|:/.test(first)) throw usageError(`${name}: "${second}" is too much: give one id`);
        throw noSuchVerb(command, id, first);
      }
      refuseListFlags(list, name, first);
    });
  const plain = Object.assign(new Help(), command.configureHelp());
  const explained = (one: Command) => (one === command ? list : one);
  command.commandsGroup('Verbs:').configureHelp({
    ...command.configureHelp(),
    visibleArguments: (one) => plain.visibleArguments(explained(one)),
    visibleOptions: (one) => plain.visibleOptions(explained(one)),
    visibleCommands: (one) => plain.visibleCommands(one).filter((verb) => verb.name() !== 'help'),
    commandUsage: (one) =>
      one === command
        ? `${plain.commandUsage(list).replace(' list', '')}${verbsOf(one)
            .map((verb) => `\n       eod ${one.name()} ${verb} …`)
            .join('')}`
        : plain.commandUsage(one),
  });
  return list;
}

/** With an id, only `--json` says something: a flag that narrows the list would be ignored. @throws PipelineError `usage` */
function refuseListFlags(list: Command, name: string, id: string): void {
  const given = list.options.filter(
    (option) => option.long !== '--json' && list.getOptionValueSource(option.attributeName()) === 'cli',
  );
  if (given.length === 0) return;
  const flags = given.map(({ long }) => long).join(', ');
  throw usageError(`${name}: "${id}" shows one, for which ${flags} means nothing: leave out one of them`);
}

/** The verbs of a list, as help names them. */
function verbsOf(command: Command): string[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.map((verb) => verb.name());
}

/**
 * Parses what is typed after the name of a list, which is no verb: the number of one.
 *
 * @param noun what is listed: `reject`.
 * @throws PipelineError `usage` that says what may stand there.
 */
export function parseListed(command: Command, noun: string, text: string): number {
  if (/^\d/.test(text)) return parseId(noun, text);
  throw noSuchVerb(command, `the number of a ${noun}`, text);
}

/** The error about a word after the name of a list. @param id what else may stand there. */
export function noSuchVerb(command: Command, id: string, text: string): PipelineError {
  const verbs = verbsOf(command);
  const known = verbs.length === 0 ? '' : ` nor a verb (${verbs.join(', ')})`;
  const not = verbs.length === 0 ? 'not' : 'neither';
  return usageError(`${command.name()}: "${text}" is ${not} ${id}${known}${didYouMean(text, verbs)}`);
}

/** The `--json` flag. @param what the kind of document, if the command does not make it obvious. */
export function jsonOption(what?: string): Option {
  return new Option('--json', `print one JSON document${what === undefined ? '' : `: ${what}`}`);
}

/** The `--limit` flag. */
export function limitOption(fallback?: number, what = 'how many'): Option {
  const option = integerOption('--limit <n>', what, { least: 1, most: 9_999_999 });
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

/** The `--exchange` flag, read by `parseExchanges`. */
export function exchangeOption(description = 'only these exchanges, e.g. NSE,BSE'): Option {
  return new Option('--exchange <list>', description);
}

/** The two ends of a range, read by `parseRange` or `parseOpenRange`. */
export interface RangeFlags {
  readonly from?: string;
  readonly to?: string;
}

/** Gives a command `--from` and `--to`, with these descriptions. */
export function addRange(command: Command, { from, to }: Required<RangeFlags>): Command {
  return command.option('--from <day>', from).option('--to <day>', to);
}

/** The `--detach` flag, which leaves the work of a run to other processes. */
export function detachOption(): Option {
  return new Option('--detach', 'only create the run and print its number; workers (eod up) do the work');
}

/** The `--dry-run` flag. */
export function dryRunOption(): Option {
  return new Option('--dry-run', 'only show which calls would be made').conflicts('detach');
}

/** The `<id>` argument of a run, as a number. */
export function runIdArgument(): Argument {
  return new Argument('<id>', 'the number of the run').argParser(parseRunId);
}

/** Parses the number of a run. @throws PipelineError `usage` */
export function parseRunId(text: string): number {
  return parseId('run', text);
}

/** Parses the number of one of what is listed. @param noun `reject` @throws PipelineError `usage` */
export function parseId(noun: string, text: string): number {
  return parseInteger(`the number of the ${noun}`, text, { least: 1 });
}

/** What `parseDay` needs to know today's date. */
export interface DayContext {
  readonly config: Pick<Config, 'EOD_TIMEZONE' | 'EOD_TRIAL_DAY'>;
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
  const now = today(clockOf(config, clock), config.EOD_TIMEZONE);
  if (text === 'today') return now;
  if (text === 'yesterday') return addDays(now, -1);
  if (!isDay(text)) throw usageError(`${notADay}, today or yesterday`);
  if (text > now) {
    const why = config.EOD_TRIAL_DAY === undefined ? ` in ${config.EOD_TIMEZONE}` : ', by EOD_TRIAL_DAY';
    throw usageError(`${flag}: ${text} is in the future (today is ${now}${why})`);
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

/** Parses a list of exchanges, in any case; undefined if none is given. @throws PipelineError `usage` */
export function parseExchanges(text: string | undefined): string[] | undefined {
  return text === undefined ? undefined : parseChoices('--exchange', text, EXCHANGE_CODES, 'exchange');
}

/** Parses a comma-separated list of known words, in any case, without repeats. @throws PipelineError `usage` */
export function parseChoices<Word extends string>(
  flag: string,
  text: string,
  known: readonly Word[],
  what: string,
): Word[] {
  const words = [...new Set(text.split(',').map((word) => word.trim()))].filter((word) => word !== '');
  if (words.length === 0) throw usageError(`${flag} names no ${what} (${known.join(', ')})`);
  return words.map((word) => parseChoice(flag, word, known, what));
}

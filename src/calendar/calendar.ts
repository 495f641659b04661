import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { type Day, eachDay, isDay, weekday } from '../core/days.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { EXCHANGES, type Exchange, exchangeOfSegment } from '../core/exchanges.ts';
import { firstItem } from '../core/iterables.ts';
import { CODE } from '../core/package-folders.ts';

/** Why a day is or is not a trading day. */
type DayKind = 'session' | 'special' | 'weekend' | 'holiday';

/** Trading days of the cash markets. */
export interface Calendar {
  isTradingDay(exchange: string, day: Day): boolean;
  kindOf(exchange: string, day: Day): DayKind;
  /** True if it is a trading day that is listed, such as one on a Saturday. */
  isSpecial(exchange: string, day: Day): boolean;
  /** Trading days from `from` to `to`, both included, ascending. */
  tradingDays(exchange: string, from: Day, to: Day): Day[];
  /** The last `count` trading days up to `day`, which is included, ascending. */
  lastTradingDays(exchange: string, day: Day, count: number): Day[];
  /** True if there is data for this year. If not, trading days are assumed from Monday to Friday. */
  knows(exchange: string, year: number): boolean;
}

/** One exchange: its listed days, the years with data, and the trading days of the years requested so far. */
interface Market {
  readonly listed: ReadonlyMap<Day, Entry['kind']>;
  readonly years: ReadonlySet<number>;
  readonly tradingDays: Map<number, readonly Day[]>;
}

/** One line of a calendar file: a day for which the Monday-to-Friday rule, or an earlier file, is wrong. */
export interface Entry {
  /** `*` means every exchange; a line that names an exchange overrides it. */
  readonly exchange: Exchange | '*';
  readonly day: Day;
  readonly kind: 'session' | 'holiday';
}

interface Line {
  readonly cells: readonly string[];
  /** Line number in the file, from 1. */
  readonly at: number;
}

const HEADER = 'exchange,date,kind,note';
const HEADER_WITHOUT_NOTE = 'exchange,date,kind';

/** Finds the market of an exchange or segment. */
type FindMarket = (exchange: string) => Market;

/**
 * Builds a calendar from lists of entries; later lists override earlier ones.
 *
 * A day listed as a trading day is `special`; otherwise Saturday and Sunday are `weekend`, a day listed as a holiday is
 * `holiday`, and any other day is a `session`. A year is known if a holiday is listed in it.
 */
export const buildCalendar = (lists: readonly (readonly Entry[])[]): Calendar =>
  makeCalendar(findMarketIn(lists));

function findMarketIn(lists: readonly (readonly Entry[])[]): FindMarket {
  const nse = makeMarket('NSE', lists);
  const bse = makeMarket('BSE', lists);
  return (exchange) => (exchangeOfSegment(exchange) === 'BSE' ? bse : nse);
}

function makeCalendar(findMarket: FindMarket): Calendar {
  return {
    isTradingDay: (exchange, day) => isOpen(kindIn(findMarket(exchange), day)),
    kindOf: (exchange, day) => kindIn(findMarket(exchange), day),
    isSpecial: (exchange, day) => findMarket(exchange).listed.get(day) === 'session',
    tradingDays(exchange, from, to) {
      const days: Day[] = [];
      for (let year = readYear(from); year <= readYear(to); year++) {
        for (const day of tradingDaysIn(findMarket(exchange), year))
          if (from <= day && day <= to) days.push(day);
      }
      return days;
    },
    lastTradingDays(exchange, day, count) {
      if (count < 1) return [];
      let days = tradingDaysIn(findMarket(exchange), readYear(day)).filter((tradingDay) => tradingDay <= day);
      for (let year = readYear(day) - 1; days.length < count && year > 0; year--) {
        days = [...tradingDaysIn(findMarket(exchange), year), ...days];
      }
      return days.slice(-count);
    },
    knows: (exchange, year) => findMarket(exchange).years.has(year),
  };
}

function makeMarket(exchange: Exchange, lists: readonly (readonly Entry[])[]): Market {
  const listed = new Map<Day, Entry['kind']>();
  const years = new Set<number>();
  for (const list of lists) {
    for (const scope of ['*', exchange]) {
      for (const entry of list) {
        if (entry.exchange !== scope) continue;
        listed.set(entry.day, entry.kind);
        if (entry.kind === 'holiday') years.add(readYear(entry.day));
      }
    }
  }
  return { listed, years, tradingDays: new Map() };
}

function kindIn(market: Market, day: Day, dayOfWeek = weekday(day)): DayKind {
  const listed = market.listed.get(day);
  if (listed === 'session') return 'special';
  if (dayOfWeek === 0 || dayOfWeek === 6) return 'weekend';
  return listed ?? 'session';
}

function isOpen(kind: DayKind): boolean {
  return kind === 'session' || kind === 'special';
}

/** The trading days of a year, cached because planning requests the same few years many times. */
function tradingDaysIn(market: Market, year: number): readonly Day[] {
  const known = market.tradingDays.get(year);
  if (known !== undefined) return known;
  const name = String(year).padStart(4, '0');
  const days = eachDay(`${name}-01-01`, `${name}-12-31`);
  const first = weekday(firstItem(days));
  const tradingDays = days.filter((day, at) => isOpen(kindIn(market, day, (first + at) % 7)));
  market.tradingDays.set(year, tradingDays);
  return tradingDays;
}

function readYear(day: Day): number {
  return Number(day.slice(0, 4));
}

/** A day on which an exchange was open, as data of that day shows. */
interface ObservedTradingDay {
  readonly exchange: string;
  readonly day: Day;
}

/** A calendar that can be corrected: if there is data for a day that it lists as closed, that day is a trading day. */
export interface LearningCalendar extends Calendar {
  /** The calendar without observed trading days. */
  readonly listed: Calendar;
  /** Replaces the observed trading days, which become `special` days. */
  learn(observed: readonly ObservedTradingDay[]): void;
}

/**
 * Builds a calendar like `buildCalendar` to which observed trading days can be added while it is in use. They override
 * every list, because the exchange was open.
 */
export function learningCalendar(lists: readonly (readonly Entry[])[]): LearningCalendar {
  let current = findMarketIn(lists);
  let learned = '';
  return {
    ...makeCalendar((exchange) => current(exchange)),
    listed: buildCalendar(lists),
    learn(observed) {
      const entries = observed.flatMap(makeEntries);
      const text = entries.map(({ exchange, day }) => `${exchange} ${day}`).join(',');
      if (text !== learned) current = findMarketIn([...lists, entries]);
      learned = text;
    },
  };
}

/** Exchanges without a calendar of their own follow NSE and add nothing to it. */
function makeEntries({ exchange, day }: ObservedTradingDay): Entry[] {
  const known = EXCHANGES.find((code) => code === exchange);
  return known === undefined ? [] : [{ exchange: known, day, kind: 'session' }];
}

const REVIEWED = ['holidays.csv', 'special-sessions.csv'];

/**
 * Loads the trading days of NSE and BSE (cash market): reviewed data for 2015 to 2026 (each file in `data/` names
 * its sources), Monday to Friday for other years. Any other exchange gets the trading days of NSE.
 *
 * @param options.file calendar file of the user, which overrides the reviewed data; see docs/completeness.md.
 * @throws PipelineError `usage` when that file cannot be read or has invalid lines.
 */
export function loadCalendar(options: { readonly file?: string | undefined } = {}): LearningCalendar {
  const reviewed = REVIEWED.flatMap((name) => {
    const path = join(CODE, 'calendar', 'data', name);
    return readEntries(readFileSync(path, 'utf8'), path);
  });
  return learningCalendar([reviewed, options.file === undefined ? [] : readUserFile(options.file)]);
}

function readUserFile(path: string): Entry[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw usageError(`calendar file ${path} cannot be read: ${messageOf(error)}`);
  }
  return readEntries(text, path);
}

/**
 * Parses a calendar file: CSV with the header `exchange,date,kind,note`. Blank lines and lines that start with `#` are
 * skipped. Only people read the note; the column may be missing.
 *
 * @param name the file's name, for error messages.
 * @throws PipelineError `usage` that names the file and, line by line, all that is wrong with it.
 */
export function readEntries(text: string, name: string): Entry[] {
  const [header, ...lines] = splitLines(text, name);
  const names = header?.cells.join(',').toLowerCase() ?? '';
  if (names !== HEADER && names !== HEADER_WITHOUT_NOTE) {
    throw usageError(`calendar file ${name}, line ${header?.at ?? 1}: the header must be "${HEADER}"`);
  }
  const problems: string[] = [];
  const linesByKey = new Map<string, number>();
  const entries = lines.flatMap(({ cells, at }) => {
    const entry = readLine(cells);
    if (typeof entry === 'string') {
      problems.push(`line ${at}: ${entry}`);
      return [];
    }
    const key = `${entry.exchange} ${entry.day}`;
    const before = linesByKey.get(key);
    if (before !== undefined) problems.push(`line ${at}: ${key} is already listed on line ${before}`);
    linesByKey.set(key, at);
    return [entry];
  });
  if (problems.length > 0) throw usageError(`calendar file ${name}, ${problems.join('; ')}`);
  return entries;
}

function splitLines(text: string, name: string): Line[] {
  const lines: Line[] = [];
  try {
    parse(text, {
      bom: true,
      comment: '#',
      // Notes may hold a `#`.
      comment_no_infix: true,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
      on_record: (cells: string[], { lines: at }) => {
        lines.push({ cells, at });
        return null;
      },
    });
    return lines;
  } catch (error) {
    throw usageError(`calendar file ${name} is not valid CSV: ${messageOf(error)}`);
  }
}

/** @returns the entry, or a sentence that says what is wrong with the line. */
function readLine(cells: readonly string[]): Entry | string {
  const [exchangeCell = '', day = '', kindCell = ''] = cells;
  if (cells.length < 3 || cells.length > 4) {
    return `${cells.length} columns instead of 4 (quote a note that holds a comma)`;
  }
  const exchange = (['*', ...EXCHANGES] as const).find((known) => known === exchangeCell.toUpperCase());
  if (exchange === undefined) return `exchange "${exchangeCell}" is not ${EXCHANGES.join(', ')} or *`;
  if (!isDay(day)) return `"${day}" is not a date such as 2026-01-26`;
  const kind = (['session', 'holiday'] as const).find((known) => known === kindCell.toLowerCase());
  if (kind === undefined) return `kind "${kindCell}" is not session or holiday`;
  return { exchange, day, kind };
}

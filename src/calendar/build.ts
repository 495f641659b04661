import { type Day, eachDay, isWeekend } from '../core/days.ts';
import { type Entry, EXCHANGES, type Exchange } from './entries.ts';
import type { Calendar, DayKind } from './types.ts';

/** One exchange: its listed days, the years they cover, and the sessions of years asked for so far. */
interface Market {
  readonly listed: ReadonlyMap<Day, Entry['kind']>;
  readonly years: ReadonlySet<number>;
  readonly sessions: Map<number, readonly Day[]>;
}

/**
 * A calendar from lists of entries, later lists winning over earlier ones. Pure.
 *
 * A listed session is `special`; else Saturday and Sunday are `weekend`, a listed holiday is
 * `holiday`, and any other day is a `session`. A year counts as known once a holiday is listed in it.
 */
export function buildCalendar(lists: readonly (readonly Entry[])[]): Calendar {
  const nse = market('NSE', lists);
  const markets = new Map<string, Market>(
    EXCHANGES.map((exchange) => [exchange, exchange === 'NSE' ? nse : market(exchange, lists)]),
  );
  const of = (exchange: string): Market => markets.get(exchange) ?? nse;

  return {
    isSession: (exchange, day) => isOpen(kindIn(of(exchange), day)),
    kindOf: (exchange, day) => kindIn(of(exchange), day),
    sessions(exchange, from, to) {
      const found: Day[] = [];
      for (let year = yearOf(from); year <= yearOf(to); year++) {
        for (const day of sessionsIn(of(exchange), year)) if (from <= day && day <= to) found.push(day);
      }
      return found;
    },
    lastSessions(exchange, day, count) {
      if (count < 1) return [];
      let found = sessionsIn(of(exchange), yearOf(day)).filter((session) => session <= day);
      for (let year = yearOf(day) - 1; found.length < count && year > 0; year--) {
        found = [...sessionsIn(of(exchange), year), ...found];
      }
      return found.slice(-count);
    },
    knows: (exchange, year) => of(exchange).years.has(year),
  };
}

function market(exchange: Exchange, lists: readonly (readonly Entry[])[]): Market {
  const listed = new Map<Day, Entry['kind']>();
  const years = new Set<number>();
  for (const list of lists) {
    for (const scope of ['*', exchange]) {
      for (const entry of list) {
        if (entry.exchange !== scope) continue;
        listed.set(entry.day, entry.kind);
        if (entry.kind === 'holiday') years.add(yearOf(entry.day));
      }
    }
  }
  return { listed, years, sessions: new Map() };
}

function kindIn(market: Market, day: Day): DayKind {
  const listed = market.listed.get(day);
  if (listed === 'session') return 'special';
  if (isWeekend(day)) return 'weekend';
  return listed ?? 'session';
}

function isOpen(kind: DayKind): boolean {
  return kind === 'session' || kind === 'special';
}

/** Sessions of a year, worked out once: planners ask for the same few years again and again. */
function sessionsIn(market: Market, year: number): readonly Day[] {
  const known = market.sessions.get(year);
  if (known !== undefined) return known;
  const name = String(year).padStart(4, '0');
  const days = eachDay(`${name}-01-01`, `${name}-12-31`).filter((day) => isOpen(kindIn(market, day)));
  market.sessions.set(year, days);
  return days;
}

function yearOf(day: Day): number {
  return Number(day.slice(0, 4));
}

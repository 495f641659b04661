import type { Calendar } from '../../calendar/calendar.ts';
import type { Clock } from '../../core/clock.ts';
import { addDays, type Day, type DayRange, dayAt, dayStart, epochOf } from '../../core/days.ts';
import type { Exchange } from '../../core/exchanges.ts';
import { hashText } from './hash.ts';
import { type Instrument, MARKET_START, Path } from './path.ts';
import { type TradeLine, tradeLines } from './session.ts';
import { Splits } from './splits.ts';

/** The time zone of the exchanges. */
export const ZONE = 'Asia/Kolkata';

/** A day's data is published at 21:02, about when the source's samples were received. */
const PUBLISHED_AT = 21 * 3600 + 2 * 60;
const REMEMBERED_DAYS = 64;
const YEAR_OF_SESSIONS = 250;

/** Prices computed for each calendar; they never change, and computing them from 2015 on takes a second. */
const paths = new WeakMap<Calendar, Map<string, Path>>();

function pathOf(exchange: Exchange, calendar: Calendar, count: number): Path {
  let known = paths.get(calendar);
  if (known === undefined) {
    known = new Map();
    paths.set(calendar, known);
  }
  const key = `${exchange} ${count}`;
  let path = known.get(key);
  if (path === undefined) {
    path = new Path(exchange, calendar, count);
    known.set(key, path);
  }
  return path;
}

interface MarketOptions {
  readonly calendar: Calendar;
  readonly clock: Clock;
  readonly instrumentsPerExchange: number;
  readonly revision: number;
  /** Whether companies split their shares. */
  readonly splits: boolean;
}

/** The simulated market of both exchanges, from which every data set is computed. */
export class Market {
  readonly splits: Splits | null;
  readonly #options: MarketOptions;
  readonly #lines = new Lru<readonly TradeLine[]>(REMEMBERED_DAYS);
  readonly #bySymbol = new Map<Exchange, Map<string, number>>();

  constructor(options: MarketOptions) {
    this.#options = options;
    this.splits = options.splits ? new Splits(this.path('NSE').instruments) : null;
  }

  path(exchange: Exchange): Path {
    return pathOf(exchange, this.#options.calendar, this.#options.instrumentsPerExchange);
  }

  /** Today in India. */
  today(): Day {
    return dayAt(this.#seconds(), ZONE);
  }

  /** The newest day whose data is published: today from 21:02 on, else yesterday. */
  publishedUntil(): Day {
    const today = this.today();
    return this.#seconds() >= epochOf(today, PUBLISHED_AT, ZONE) ? today : addDays(today, -1);
  }

  /** Published sessions from `from` to `to`, both included. */
  sessions(exchange: Exchange, from: Day, to: Day): Day[] {
    const first = from < MARKET_START ? MARKET_START : from;
    const published = this.publishedUntil();
    const last = to > published ? published : to;
    return first > last ? [] : this.#options.calendar.sessions(exchange, first, last);
  }

  /** The newest published session, or null before the market begins. */
  latestSession(exchange: Exchange): Day | null {
    const path = this.path(exchange);
    const at = path.lastSession(this.publishedUntil());
    return at < 0 ? null : path.day(at);
  }

  /** The trade file of a day; empty when the exchange was closed or the day is not published yet. */
  lines(exchange: Exchange, day: Day): readonly TradeLine[] {
    if (day < MARKET_START || day > this.publishedUntil()) return [];
    return this.#lines.get(`${exchange} ${day}`, () => {
      const path = this.path(exchange);
      const lines = tradeLines(path, day, this.#options.revision);
      const { splits } = this;
      if (splits === null) return lines;
      const at = path.lastSession(addDays(day, -1));
      const before = at < 0 ? null : path.day(at);
      return lines.map((line) => splits.applySplits(line, day, before));
    });
  }

  /** The index of a symbol's own line (never its block or T+0 line), or null. */
  find(exchange: Exchange, symbol: string): number | null {
    let known = this.#bySymbol.get(exchange);
    if (known === undefined) {
      known = new Map();
      for (const [at, one] of this.path(exchange).instruments.entries()) {
        if (!known.has(one.symbol)) known.set(one.symbol, at);
      }
      this.#bySymbol.set(exchange, known);
    }
    return known.get(symbol) ?? null;
  }

  /** The companies' own lines that are listed in this session. */
  shares(exchange: Exchange, session: number): { readonly instrument: Instrument; readonly at: number }[] {
    const path = this.path(exchange);
    return path.instruments.flatMap((instrument, at) =>
      instrument.kind === 'share' && path.close(at, session) > 0 ? [{ instrument, at }] : [],
    );
  }

  /** The highest and lowest close, in paise, of a year of sessions that ends with `session`. */
  yearRange(exchange: Exchange, at: number, session: number): { high: number; low: number } {
    const path = this.path(exchange);
    let high = 0;
    let low = Number.POSITIVE_INFINITY;
    for (let i = Math.max(0, session - YEAR_OF_SESSIONS + 1); i <= session; i++) {
      const close = path.close(at, i);
      if (close === 0) continue;
      high = Math.max(high, close);
      low = Math.min(low, close);
    }
    return { high, low };
  }

  /** When the source received and saved a data set of a day, in epoch seconds; a corrected record is saved later. */
  audit(dataSet: string, exchange: Exchange, day: Day, revision = 0) {
    const published = epochOf(day, PUBLISHED_AT, ZONE);
    const receivedAt = published - 58 + (hashText(`${dataSet} ${exchange} ${day}`) % 40);
    const savedAt = receivedAt + (hashText(`${dataSet} ${day} saved`) % 18);
    return { receivedAt, savedAt: revision === 0 ? savedAt : published + 600 * revision };
  }

  /** The first and last day whose midnight is between two times (epoch seconds), both included. */
  daysWithin(from: number, to: number): DayRange {
    const first = dayAt(from, ZONE);
    return { from: dayStart(first, ZONE) >= from ? first : addDays(first, 1), to: dayAt(to, ZONE) };
  }

  #seconds(): number {
    return Math.floor(this.#options.clock.now() / 1000);
  }
}

/** A map that drops the least recently used entry once it holds more than `limit`. */
export class Lru<V> {
  readonly #entries = new Map<string, V>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the value of a key, after making it with `make` if it is not there. */
  get(key: string, make: () => V): V {
    const known = this.#entries.get(key);
    const value = known ?? make();
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#limit) this.#entries.delete(this.#entries.keys().next().value as string);
    return value;
  }
}

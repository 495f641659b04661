import type { Calendar } from '../../calendar/calendar.ts';
import type { Clock } from '../../core/clock.ts';
import { addDays, type Day, type DayRange, dayAt, dayStart, epochOf } from '../../core/days.ts';
import { type Exchange, MARKET_ZONE } from '../../core/exchanges.ts';
import { firstItem, largest } from '../../core/iterables.ts';
import { hashText } from './hash.ts';
import { computeClose, MARKET_START, type Move, type Share, Shares } from './shares.ts';
import { Splits } from './splits.ts';
import { type TradeLine, tradeLines } from './trade-file.ts';

/** A day's data is published at 21:02, about when the source's samples were received. */
const PUBLISHED_AT = 21 * 3600 + 2 * 60;
const REMEMBERED_DAYS = 64;
const YEAR_OF_TRADING_DAYS = 250;

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
  readonly #shares: Readonly<Record<Exchange, Shares>>;
  /** The trade files that were requested last, the newest at the end. */
  readonly #lines = new Map<string, readonly TradeLine[]>();

  constructor(options: MarketOptions) {
    this.#options = options;
    const listShares = (exchange: Exchange) => new Shares(exchange, options.instrumentsPerExchange);
    this.#shares = { NSE: listShares('NSE'), BSE: listShares('BSE') };
    this.splits = options.splits ? new Splits(this.shares('NSE').list) : null;
  }

  shares(exchange: Exchange): Shares {
    return this.#shares[exchange];
  }

  /** Today in India. */
  today(): Day {
    return dayAt(this.#seconds(), MARKET_ZONE);
  }

  /** The newest day whose data is published: today from 21:02 on, else yesterday. */
  publishedUntil(): Day {
    const today = this.today();
    return this.#seconds() >= epochOf(today, PUBLISHED_AT, MARKET_ZONE) ? today : addDays(today, -1);
  }

  /** Published trading days from `from` to `to`, both included. */
  tradingDays(exchange: Exchange, from: Day, to: Day): Day[] {
    const first = from < MARKET_START ? MARKET_START : from;
    const published = this.publishedUntil();
    const last = to > published ? published : to;
    return first > last ? [] : this.#options.calendar.tradingDays(exchange, first, last);
  }

  /** The newest published trading day, or null before the market begins. */
  latestTradingDay(exchange: Exchange): Day | null {
    const day = this.#options.calendar.lastTradingDays(exchange, this.publishedUntil(), 1)[0];
    return day === undefined || day < MARKET_START ? null : day;
  }

  /** The trading day before a day. */
  #tradingDayBefore(exchange: Exchange, day: Day): Day {
    return this.#options.calendar.lastTradingDays(exchange, addDays(day, -1), 1)[0] ?? addDays(day, -1);
  }

  /** The trade file of a day; empty when the exchange was closed or the day is not published yet. */
  lines(exchange: Exchange, day: Day): readonly TradeLine[] {
    if (this.tradingDays(exchange, day, day).length === 0) return [];
    const key = `${exchange} ${day}`;
    const lines = this.#lines.get(key) ?? this.#makeLines(exchange, day);
    this.#lines.delete(key);
    this.#lines.set(key, lines);
    if (this.#lines.size > REMEMBERED_DAYS) this.#lines.delete(firstItem(this.#lines.keys()));
    return lines;
  }

  #makeLines(exchange: Exchange, day: Day): TradeLine[] {
    const before = this.#tradingDayBefore(exchange, day);
    const lines = tradeLines(this.shares(exchange), day, before, this.#options.revision);
    const { splits } = this;
    return splits === null ? lines : lines.map((line) => splits.applySplits(line, day, before));
  }

  /** The shares that are in another series than in the trading day before. */
  moves(exchange: Exchange, day: Day): Move[] {
    return this.shares(exchange).moves(day, this.#tradingDayBefore(exchange, day));
  }

  /** The highest and lowest close, in paise, of a year of trading days that ends with a day. */
  yearRange(exchange: Exchange, share: Share, day: Day): { high: number; low: number } {
    const tradingDays = this.#options.calendar.lastTradingDays(exchange, day, YEAR_OF_TRADING_DAYS);
    const closes = tradingDays.map((tradingDay) => computeClose(share, tradingDay));
    return { high: largest(closes), low: -largest(closes.map((close) => -close)) };
  }

  /** When the source received and saved a data set of a day, in epoch seconds; a corrected record is saved later. */
  audit(dataSet: string, exchange: Exchange, day: Day, revision = 0) {
    const published = epochOf(day, PUBLISHED_AT, MARKET_ZONE);
    const receivedAt = published - 58 + (hashText(`${dataSet} ${exchange} ${day}`) % 40);
    const savedAt = receivedAt + (hashText(`${dataSet} ${day} saved`) % 18);
    return { receivedAt, savedAt: revision === 0 ? savedAt : published + 600 * revision };
  }

  /** The first and last day whose midnight is between two times (epoch seconds), both included. */
  daysWithin(from: number, to: number): DayRange {
    const first = dayAt(from, MARKET_ZONE);
    return {
      from: dayStart(first, MARKET_ZONE) >= from ? first : addDays(first, 1),
      to: dayAt(to, MARKET_ZONE),
    };
  }

  #seconds(): number {
    return Math.floor(this.#options.clock.now() / 1000);
  }
}

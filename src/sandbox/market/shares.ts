import { type Day, daysBetween } from '../../core/days.ts';
import type { Exchange } from '../../core/exchanges.ts';
import { type Company, companies } from './companies.ts';
import { chance, hash, pick } from './hash.ts';

/** The first day of the simulation. */
export const MARKET_START: Day = '2015-01-01';

const EPOCH: Day = '1970-01-01';
const START_NUMBER = daysBetween(EPOCH, MARKET_START);
/** After so many days, a share costs about what it costs today. */
const GROWTH_DAYS = 4_300;
/** From one turning point of a price to the next. */
const SWING_DAYS = 16;
/** How many calendar days a share of NSE is in trade-to-trade (BE), if it is moved there. */
const MOVED_DAYS = 14;

// The purposes for which a number is hashed for a day.
const SWING = 20;
const STEP = 21;

/** A company's share on an exchange. */
export interface Share extends Company {
  /** Series (NSE) or group (BSE) at first; a share at NSE may be moved later. */
  readonly series: string;
  /** Number on the exchange; NSE's belongs to symbol and series (see `shareId`). */
  readonly id: number;
  /** Its price at the start of 2015, as a fraction of `paise`. */
  readonly start: number;
  /** Smallest price step in paise. */
  readonly tick: number;
  /** Price band in percent of the previous close. */
  readonly band: number;
  /** Usual size of a day's move. */
  readonly volatility: number;
  /** Usual traded quantity of a day. */
  readonly quantity: number;
}

/** A share that is in another series than in the trading day before. */
export interface Move {
  readonly share: Share;
  readonly from: string;
  readonly to: string;
}

/** The days since 1970, by which everything of a day is hashed. */
export const dayNumber = (day: Day): number => daysBetween(EPOCH, day);

/** Upper and lower price limit in paise around a previous close. */
export function limits(previous: number, band: number, tick: number): { low: number; high: number } {
  const reach = (previous * band) / 100;
  return {
    low: Math.max(tick, Math.ceil((previous - reach) / tick) * tick),
    high: Math.floor((previous + reach) / tick) * tick,
  };
}

/**
 * The close of a day in paise: it grows from a fraction in 2015 to today's, swings, and moves a little every day, so
 * that it depends on the day alone and stays within its band from one trading day to the next.
 */
export function computeClose(share: Share, day: Day): number {
  const number = dayNumber(day);
  const grown = share.start + (1 - share.start) * Math.min(1.2, (number - START_NUMBER) / GROWTH_DAYS);
  const turn = Math.floor(number / SWING_DAYS);
  const part = (number % SWING_DAYS) / SWING_DAYS;
  const signed = (at: number, purpose: number) => 2 * chance(share.seed, at, purpose) - 1;
  const swing = signed(turn, SWING) * (1 - part) + signed(turn + 1, SWING) * part;
  const moved = 1 + share.volatility * (6 * swing + 0.7 * signed(number, STEP));
  return Math.max(100, Math.round((share.paise * grown * moved) / share.tick) * share.tick);
}

/** The shares of an exchange, `count` of them, always in the same order. */
export class Shares {
  readonly exchange: Exchange;
  readonly list: readonly Share[];
  /** The positions of those that are moved to trade-to-trade and back, one after the other. */
  readonly #movable = new Map<Share, number>();

  constructor(exchange: Exchange, count: number) {
    this.exchange = exchange;
    const list: Share[] = [];
    for (const company of companies()) {
      if (list.length >= count) break;
      if (exchange === 'BSE' ? company.onBse : company.onNse)
        list.push(makeShare(company, exchange, list.length));
    }
    this.list = list;
    if (exchange === 'BSE') return;
    for (const share of list) {
      if (!share.wellKnown && share.series === 'EQ') this.#movable.set(share, this.#movable.size);
    }
  }

  find(symbol: string): Share | null {
    return this.list.find((share) => share.symbol === symbol) ?? null;
  }

  /** The series of a share on a day. */
  series(share: Share, day: Day): string {
    const position = this.#movable.get(share);
    if (position === undefined) return share.series;
    const count = this.#movable.size;
    const since = (dayNumber(day) + count - position) % count;
    return since < Math.min(MOVED_DAYS, count / 2) ? 'BE' : 'EQ';
  }

  /** The shares that are in another series than in the trading day before. */
  moves(day: Day, before: Day): Move[] {
    return [...this.#movable.keys()].flatMap((share) => {
      const [from, to] = [this.series(share, before), this.series(share, day)];
      return from === to ? [] : [{ share, from, to }];
    });
  }

  /** The number of a share in its first series; it stays when the series changes. */
  companyNumber(share: Share): number {
    return this.shareId(share, share.series);
  }

  /** The number of a line. NSE has a number for each series of a symbol, BSE one code that never changes. */
  shareId(share: Share, series: string): number {
    if (this.exchange === 'BSE') return share.id;
    const positions = ['EQ', 'BE', 'SM'];
    return 1_000 + share.id * positions.length + positions.indexOf(series);
  }
}

function chooseSeries(company: Company, exchange: Exchange): string {
  if (company.wellKnown) return exchange === 'NSE' ? 'EQ' : 'A';
  const at = chance(company.seed, 0, 3);
  if (exchange === 'NSE') return at < 0.84 ? 'EQ' : at < 0.91 ? 'BE' : 'SM';
  if (at < 0.22) return 'A';
  return at < 0.62 ? 'B' : at < 0.84 ? 'X' : at < 0.91 ? 'T' : 'M';
}

function chooseBand(series: string, company: Company): number {
  if (['BE', 'T'].includes(series)) return 5;
  if (company.wellKnown || series === 'A') return 20;
  return pick([5, 10, 20, 20], hash(company.seed, 0, 4));
}

function makeShare(company: Company, exchange: Exchange, index: number): Share {
  const { paise, seed, wellKnown } = company;
  const series = chooseSeries(company, exchange);
  const band = chooseBand(series, company);
  const worth = wellKnown ? 4e10 : 10 ** (5.5 + 4 * chance(seed, 0, 7)) * 100;
  const volatility = wellKnown ? 0.011 : 0.012 + 0.016 * chance(seed, 0, 8);
  return {
    ...company,
    series,
    id: exchange === 'BSE' ? company.code : index,
    start: 0.3 + 0.5 * chance(seed, 0, 11),
    tick: paise < 25_000 ? 1 : 5,
    band,
    // Also over a long weekend, a close moves by less than six times as much.
    volatility: Math.min(volatility, band / 600),
    quantity: Math.max(20, Math.round(worth / paise / (exchange === 'BSE' ? 12 : 1))),
  };
}

import { addDays, type Day, daysBetween } from '../../core/days.ts';
import { pick } from './hash.ts';
import { MARKET_START, type Share } from './shares.ts';
import type { TradeLine } from './trade-file.ts';

/** Shares after a split for one before it. */
const RATIO = 5;
/** At most this many companies split their shares. */
const COMPANIES = 100;
/** Companies with a lower price do not split: the price would become too small. */
const LEAST_PAISE = 20_000;
/** The first Monday of the market. */
const FIRST_MONDAY: Day = addDays(MARKET_START, 4);

/** A split (5 shares for 1), or a consolidation (1 share for 5), of a company on both exchanges. */
export interface Split {
  readonly exDate: Day;
  readonly symbol: string;
  readonly code: number;
  readonly kind: 'split' | 'consolidation';
  /** Shares after to shares before. */
  readonly ratio: string;
}

/**
 * Each Monday and Wednesday one company splits its shares, and one that split before consolidates them, so that prices
 * stay similar over the years. Like everything here, this depends only on the day.
 */
export class Splits {
  /** The companies that split, one after the other. */
  readonly #companies: readonly Share[];
  readonly #positions: ReadonlyMap<string, number>;

  /** @param shares of NSE */
  constructor(shares: readonly Share[]) {
    const fit = shares.filter(
      ({ series, wellKnown, onBse, paise }) => series === 'EQ' && !wellKnown && onBse && paise >= LEAST_PAISE,
    );
    this.#companies = fit.slice(0, Math.min(COMPANIES, 2 * Math.floor(fit.length / 2)));
    this.#positions = new Map(this.#companies.map(({ isin }, position) => [isin, position]));
  }

  /** The splits and consolidations in a range of days, both ends included. */
  between(from: Day, to: Day): Split[] {
    const count = this.#companies.length;
    const splits: Split[] = [];
    for (let turn = Math.max(0, turnAt(addDays(from, -1)) + 1); count > 0 && turn <= turnAt(to); turn += 1) {
      const exDate = addDays(FIRST_MONDAY, 7 * Math.floor(turn / 2) + 2 * (turn % 2));
      for (const kind of ['split', 'consolidation'] as const) {
        const { symbol, code } = pick(this.#companies, turn + (kind === 'split' ? 0 : count / 2));
        const ratio = kind === 'split' ? `${RATIO}:1` : `1:${RATIO}`;
        splits.push({ exDate, symbol, code, kind, ratio });
      }
    }
    return splits;
  }

  /**
   * Applies the splits up to a day to a line of its trade file.
   *
   * @param before the trading day before.
   */
  applySplits(line: TradeLine, day: Day, before: Day): TradeLine {
    const { tick } = line.share;
    const price = (paise: number) => Math.max(tick, Math.round(paise / RATIO / tick) * tick);
    const lastClose = this.#isSplit(line, before) ? price(line.lastClose) : line.lastClose;
    if (!this.#isSplit(line, day)) return { ...line, lastClose };
    const [high, low] = [price(line.high), price(line.low)];
    const quantity = line.quantity * RATIO;
    const average = Math.round(line.turnover / line.quantity / RATIO);
    return {
      ...line,
      open: price(line.open),
      high,
      low,
      close: price(line.close),
      last: price(line.last),
      previous: price(line.previous),
      lastClose,
      settlement: price(line.settlement),
      quantity,
      turnover: quantity * Math.max(low, Math.min(high, average)),
    };
  }

  /** Whether the line's share is split on that day, so that there are five shares for each original one. */
  #isSplit({ share: { isin } }: TradeLine, day: Day): boolean {
    const count = this.#companies.length;
    const position = this.#positions.get(isin);
    // Since the turn in which it split; the second half of them have split before the first one.
    return position !== undefined && (turnAt(day) + count - position) % count < count / 2;
  }
}

/** The number of the last Monday or Wednesday by this day, from 0; negative before the first. */
function turnAt(day: Day): number {
  const days = daysBetween(FIRST_MONDAY, day);
  const week = Math.floor(days / 7);
  return 2 * week + (days - 7 * week >= 2 ? 1 : 0);
}

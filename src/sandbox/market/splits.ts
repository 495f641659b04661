import { addDays, type Day, daysBetween } from '../../core/days.ts';
import { type Instrument, MARKET_START } from './path.ts';
import type { TradeLine } from './session.ts';

/** Shares after a split for one before it. */
const RATIO = 5;
/** How many companies split before the first of them consolidates. */
const COMPANIES = 50;
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
 * Each Monday and Wednesday one company splits its shares, and one that split before consolidates them. Two groups of
 * companies take turns, so that prices stay similar over the years. Like everything here, this depends only on the day.
 */
export class Splits {
  readonly #groups: readonly (readonly Instrument[])[];
  readonly #positions = new Map<string, { readonly group: number; readonly position: number }>();

  /** @param instruments of NSE */
  constructor(instruments: readonly Instrument[]) {
    const fit = instruments.filter(
      ({ kind, series, company, listedOn, trades, paise }) =>
        kind === 'share' &&
        series === 'EQ' &&
        company?.wellKnown === false &&
        company.onBse &&
        listedOn === 0 &&
        trades === 1 &&
        paise >= LEAST_PAISE,
    );
    const size = Math.min(COMPANIES, Math.floor(fit.length / 2));
    this.#groups = [fit.slice(0, size), fit.slice(size, 2 * size)];
    for (const [group, members] of this.#groups.entries()) {
      for (const [position, { isin }] of members.entries()) this.#positions.set(isin, { group, position });
    }
  }

  /** The splits and consolidations in a range of days, both ends included. */
  between(from: Day, to: Day): Split[] {
    const size = this.#groups[0]?.length ?? 0;
    const found: Split[] = [];
    for (let turn = Math.max(0, turnAt(addDays(from, -1)) + 1); size > 0 && turn <= turnAt(to); turn += 1) {
      const round = Math.floor(turn / size);
      for (const group of [0, 1]) {
        const splits = round % 2 === group;
        const company = this.#groups[group]?.[turn % size]?.company;
        // In the first round the second group has no splits to undo.
        if (company == null || (!splits && round === 0)) continue;
        found.push({
          exDate: addDays(FIRST_MONDAY, 7 * Math.floor(turn / 2) + 2 * (turn % 2)),
          symbol: company.symbol,
          code: company.code,
          kind: splits ? 'split' : 'consolidation',
          ratio: splits ? `${RATIO}:1` : `1:${RATIO}`,
        });
      }
    }
    return found;
  }

  /**
   * Applies the splits up to a day to a line of its trade file.
   *
   * @param before the session before; null if there is none.
   */
  applySplits(line: TradeLine, day: Day, before: Day | null): TradeLine {
    const { tick } = line.instrument;
    const price = (paise: number) => Math.max(tick, Math.round(paise / RATIO / tick) * tick);
    const lastClose =
      line.lastClose > 0 && before !== null && this.#isSplit(line, before)
        ? price(line.lastClose)
        : line.lastClose;
    if (!this.#isSplit(line, day)) return lastClose === line.lastClose ? line : { ...line, lastClose };
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
      previous: line.previous === 0 ? 0 : price(line.previous),
      lastClose,
      settlement: line.settlement === null ? null : price(line.settlement),
      quantity,
      turnover: quantity * Math.max(low, Math.min(high, average)),
    };
  }

  /** Whether the line's share is split on that day, so that there are five shares for each original one. */
  #isSplit({ instrument: { isin, kind } }: TradeLine, day: Day): boolean {
    const known = kind === 'share' ? this.#positions.get(isin) : undefined;
    const size = this.#groups[0]?.length ?? 0;
    const round = known === undefined ? -1 : Math.floor((turnAt(day) - known.position) / size);
    return round >= 0 && round % 2 === known?.group;
  }
}

/** The number of the last Monday or Wednesday by this day, from 0; negative before the first. */
function turnAt(day: Day): number {
  const days = daysBetween(FIRST_MONDAY, day);
  const week = Math.floor(days / 7);
  return 2 * week + (days - 7 * week >= 2 ? 1 : 0);
}

import { addDays, type Day, daysBetween } from '../../core/days.ts';
import type { Instrument } from './instruments.ts';
import { MARKET_START } from './path.ts';
import type { TradeLine } from './session.ts';

/** Shares after a split for one before it. */
const RATIO = 5;
/** As many companies split for the first time before the first of them changes back. */
const COMPANIES = 50;
/** A company that costs less would cost nothing afterwards. */
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
 * Each Monday and Wednesday one company splits its shares, and one that split before consolidates them: two groups of
 * companies take turns, so that prices stay what they are over the years. As everything here, it follows from the day.
 */
export class Splits {
  readonly #groups: readonly (readonly Instrument[])[];
  readonly #places = new Map<string, { readonly group: number; readonly place: number }>();

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
      for (const [place, { isin }] of members.entries()) this.#places.set(isin, { group, place });
    }
  }

  /** What has happened by the Mondays and Wednesdays of a range of days, both included. */
  between(from: Day, to: Day): Split[] {
    const size = this.#groups[0]?.length ?? 0;
    const found: Split[] = [];
    for (let turn = Math.max(0, turnAt(addDays(from, -1)) + 1); size > 0 && turn <= turnAt(to); turn += 1) {
      const round = Math.floor(turn / size);
      for (const group of [0, 1]) {
        const splits = round % 2 === group;
        const company = this.#groups[group]?.[turn % size]?.company;
        // In the first round the second group has nothing to take back.
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
   * A line of the trade file of a day, after the splits until then.
   *
   * @param before the session before; null where there is none.
   */
  applied(line: TradeLine, day: Day, before: Day | null): TradeLine {
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

  /** Are there five shares of its company on that day for each one that was? */
  #isSplit({ instrument: { isin, kind } }: TradeLine, day: Day): boolean {
    const known = kind === 'share' ? this.#places.get(isin) : undefined;
    const size = this.#groups[0]?.length ?? 0;
    const round = known === undefined ? -1 : Math.floor((turnAt(day) - known.place) / size);
    return round >= 0 && round % 2 === known?.group;
  }
}

/** The number of the last Monday or Wednesday by this day, from 0; negative before the first. */
function turnAt(day: Day): number {
  const days = daysBetween(FIRST_MONDAY, day);
  const week = Math.floor(days / 7);
  return 2 * week + (days - 7 * week >= 2 ? 1 : 0);
}

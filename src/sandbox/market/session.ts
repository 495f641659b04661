import { type Day, daysBetween } from '../../core/days.ts';
import { between, chance, hash } from './hash.ts';
import { type Instrument, instrumentId, limits, type Path } from './path.ts';

/** Proportion of a day's rows that each revision corrects. */
const CORRECTED = 0.02;

/** One line of a session's trade file; prices and turnover in paise, exact integers. */
export type TradeLine = Readonly<ReturnType<typeof line>>;

const clamp = (value: number, low: number, high: number) => Math.max(low, Math.min(high, value));

function prices(one: Instrument, day: number, previous: number, close: number, band: number) {
  const { tick } = one;
  // A new listing has no band, but opens and closes within a few percent.
  const bounds = previous > 0 ? limits(previous, band, tick) : limits(close, 20, tick);
  const near = (base: number, reach: number, purpose: number) =>
    clamp(
      Math.round((base * (1 + reach * (2 * chance(one.seed, day, purpose) - 1))) / tick) * tick,
      bounds.low,
      bounds.high,
    );
  const open = near(previous > 0 ? previous : close, one.volatility * 0.6, 40);
  const last = near(close, 0.001, 41);
  let high = Math.max(open, last, close, near(Math.max(open, close), one.volatility * 0.7, 42));
  let low = Math.min(open, last, close, near(Math.min(open, close), one.volatility * 0.7, 43));
  const touch = chance(one.seed, day, 44);
  // Sometimes the price touches a band, rarely both, without closing there.
  if (previous > 0 && touch < 0.006) high = bounds.high;
  if (previous > 0 && touch > 0.003 && touch < 0.008) low = bounds.low;
  const average = clamp(Math.round((open + high + low + 2 * close) / 5), low, high);
  return { open, high, low, last, average };
}

/** Prices of a T+0 line: a few trades of its own, and the close of the company's own line. */
function t0Prices(one: Instrument, day: number, close: number): ReturnType<typeof prices> {
  const at = (purpose: number) =>
    Math.max(
      one.tick,
      Math.round((close * (0.99 + 0.02 * chance(one.seed, day, purpose))) / one.tick) * one.tick,
    );
  const open = at(40);
  const last = at(41);
  const high = Math.max(open, last);
  const low = Math.min(open, last);
  return { open, last, high, low, average: Math.round((high + low) / 2) };
}

function quantityOf(one: Instrument, day: number, revision: number): { quantity: number; revision: number } {
  const factor =
    0.35 + 1.9 * chance(one.seed, day, 45) * chance(one.seed, day, 46) + chance(one.seed, day, 47) * 0.4;
  let quantity = Math.max(1, Math.round(one.quantity * factor));
  let newest = 0;
  for (let n = 1; n <= revision; n++) {
    if (chance(one.seed, day, 1_000 + n) >= CORRECTED) continue;
    quantity += between(1, Math.max(2, Math.round(quantity / 50)), one.seed, day, 2_000 + n);
    newest = n;
  }
  return { quantity, revision: newest };
}

function line(path: Path, at: number, session: number, day: number, revision: number) {
  const one = path.instruments[at] as Instrument;
  const close = path.close(at, session);
  const previous = path.previousClose(at, session);
  const series = path.series(at, session);
  const band = path.bandOf(at, session);
  const t0 = one.kind === 't0';
  const { average, ...priced } = t0 ? t0Prices(one, day, close) : prices(one, day, previous, close, band);
  const traded = quantityOf(one, day, revision);
  const bounds = limits(previous, band, one.tick);
  const banded = previous > 0 && !t0;
  return {
    instrument: one,
    id: instrumentId(path.exchange, one, series),
    series,
    ...priced,
    close,
    /** The close to compare with: the last close, adjusted on an ex-date; 0 on the day of listing. */
    previous,
    /** The last close as printed, without adjustment for splits, as the exchanges print it. */
    lastClose: previous,
    /** Null for T+0 lines. */
    settlement: t0 ? null : path.exchange === 'BSE' ? average : close,
    quantity: traded.quantity,
    turnover: traded.quantity * average,
    trades: clamp(Math.round(traded.quantity / (5 + (hash(one.seed, 0, 12) % 90))), 1, traded.quantity),
    hitHigh: banded && priced.high === bounds.high,
    hitLow: banded && priced.low === bounds.low,
    /** The newest revision that corrected this line; 0 for none. */
    revision: traded.revision,
  };
}

/**
 * The trade file of a session, in the order of the instruments; empty if the exchange was closed.
 *
 * @param revision how many corrections are applied; 0 is the file as first published.
 */
export function tradeLines(path: Path, day: Day, revision: number): TradeLine[] {
  const session = path.sessionAt(day);
  if (session < 0) return [];
  const number = daysBetween('1970-01-01', day);
  const lines: TradeLine[] = [];
  for (let at = 0; at < path.instruments.length; at++) {
    if (path.traded(at, session)) lines.push(line(path, at, session, number, revision));
  }
  return lines;
}

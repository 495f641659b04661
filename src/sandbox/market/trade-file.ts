import type { Day } from '../../core/days.ts';
import { between, chance, hash } from './hash.ts';
import { computeClose, dayNumber, limits, type Share, type Shares } from './shares.ts';

/** Proportion of a day's rows that each revision corrects. */
const CORRECTED = 0.02;
/**
 * Proportions of a day's rows that touch the upper band (`high`), of these also the lower (`both`), and only the lower
 * (`low`).
 */
const TOUCHES = { high: 0.02, both: 0.002, low: 0.018 };

/** One line of a trading day's trade file; prices and turnover in paise, exact integers. */
export type TradeLine = Readonly<ReturnType<typeof makeLine>>;

const clamp = (value: number, low: number, high: number) => Math.max(low, Math.min(high, value));

// The last argument of `chance`, `hash` and `between` is the purpose: each draw has a number of its own.

function drawPrices(share: Share, dayIndex: number, previous: number, close: number) {
  const { tick, volatility, seed } = share;
  const bounds = limits(previous, share.band, tick);
  const near = (base: number, reach: number, purpose: number) =>
    clamp(
      Math.round((base * (1 + reach * (2 * chance(seed, dayIndex, purpose) - 1))) / tick) * tick,
      bounds.low,
      bounds.high,
    );
  const open = near(previous, volatility * 0.6, 40);
  const last = near(close, 0.001, 41);
  let high = Math.max(open, last, close, near(Math.max(open, close), volatility * 0.7, 42));
  let low = Math.min(open, last, close, near(Math.min(open, close), volatility * 0.7, 43));
  // Sometimes the price touches a band, rarely both, without closing there.
  const touch = chance(seed, dayIndex, 44);
  if (touch < TOUCHES.high) high = bounds.high;
  if (touch >= TOUCHES.high - TOUCHES.both && touch < TOUCHES.high + TOUCHES.low) low = bounds.low;
  const average = clamp(Math.round((open + high + low + 2 * close) / 5), low, high);
  return {
    open,
    high,
    low,
    last,
    average,
    hitHigh: high === bounds.high,
    hitLow: low === bounds.low,
  };
}

function computeQuantity({ seed, quantity: usual }: Share, dayIndex: number, revision: number) {
  const factor =
    0.35 + 1.9 * chance(seed, dayIndex, 45) * chance(seed, dayIndex, 46) + chance(seed, dayIndex, 47) * 0.4;
  let quantity = Math.max(1, Math.round(usual * factor));
  let lastCorrection = 0;
  for (let n = 1; n <= revision; n++) {
    if (chance(seed, dayIndex, 1_000 + n) >= CORRECTED) continue;
    quantity += between(1, Math.max(2, Math.round(quantity / 50)), seed, dayIndex, 2_000 + n);
    lastCorrection = n;
  }
  return { quantity, revision: lastCorrection };
}

function makeLine(shares: Shares, share: Share, day: Day, before: Day, revision: number) {
  const dayIndex = dayNumber(day);
  const close = computeClose(share, day);
  const previous = computeClose(share, before);
  const series = shares.series(share, day);
  const { average, ...prices } = drawPrices(share, dayIndex, previous, close);
  const traded = computeQuantity(share, dayIndex, revision);
  return {
    share,
    id: shares.shareId(share, series),
    series,
    ...prices,
    close,
    // The last close twice, until `applySplits` adjusts them: `previous` from the day of a split on, `lastClose`, which the
    // exchanges print without adjustment, from the day after it.
    previous,
    lastClose: previous,
    settlement: shares.exchange === 'BSE' ? average : close,
    quantity: traded.quantity,
    turnover: traded.quantity * average,
    trades: clamp(Math.round(traded.quantity / (5 + (hash(share.seed, 0, 12) % 90))), 1, traded.quantity),
    /** The newest revision that corrected this line; 0 for none. */
    revision: traded.revision,
  };
}

/**
 * The trade file of a trading day, in the order of the shares.
 *
 * @param before the trading day before.
 * @param revision how many corrections are applied; 0 is the file as first published.
 */
export const tradeLines = (shares: Shares, day: Day, before: Day, revision: number): TradeLine[] =>
  shares.list.map((share) => makeLine(shares, share, day, before, revision));

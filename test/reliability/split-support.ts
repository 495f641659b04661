import { expect } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { daysBetween } from '../../src/core/days.ts';

/** 26 days with 18 trading days: one window of an operation that takes 30 days a call. */
export const MONTH = { from: '2025-08-11', to: '2025-09-05' };

export const HIGHLIGHTS = { ...MONTH, operations: ['GetTotalTradeHighlights'] };

export const span = ({ from, to }: { from: string; to: string }) => daysBetween(from, to) + 1;

export const calendar = loadCalendar();

/** The pieces hold the trading days of the whole, each once, and none of them is without a trading day. */
export function expectWhole(
  pieces: readonly { from: string; to: string }[],
  { from, to }: typeof MONTH,
): void {
  const tradingDays = pieces.map((piece) => calendar.tradingDays('NSE', piece.from, piece.to));
  expect(tradingDays.flat().sort()).toEqual(calendar.tradingDays('NSE', from, to));
  expect(Math.min(...tradingDays.map((some) => some.length))).toBeGreaterThan(0);
}

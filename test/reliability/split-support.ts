import { expect } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { daysBetween } from '../../src/core/days.ts';

/** 26 days with 18 sessions: one window of an operation that takes 30 days a call. */
export const MONTH = { from: '2025-08-11', to: '2025-09-05' };

export const HIGHLIGHTS = { ...MONTH, operations: ['GetTotalTradeHighlights'] };

export const span = ({ from, to }: { from: string; to: string }) => daysBetween(from, to) + 1;

export const calendar = loadCalendar();

/** The pieces hold the sessions of the whole, each once, and none of them is without a session. */
export function expectWhole(
  pieces: readonly { from: string; to: string }[],
  { from, to }: typeof MONTH,
): void {
  const sessions = pieces.map((piece) => calendar.sessions('NSE', piece.from, piece.to));
  expect(sessions.flat().sort()).toEqual(calendar.sessions('NSE', from, to));
  expect(Math.min(...sessions.map((some) => some.length))).toBeGreaterThan(0);
}

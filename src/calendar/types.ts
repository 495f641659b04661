import type { Day } from '../core/days.ts';

/** Why a day is, or is not, a session. */
export type DayKind = 'session' | 'special' | 'weekend' | 'holiday';

/** Trading sessions of the cash markets. */
export interface Calendar {
  isSession(exchange: string, day: Day): boolean;
  kindOf(exchange: string, day: Day): DayKind;
  /** Sessions from `from` to `to`, both included, ascending. */
  sessions(exchange: string, from: Day, to: Day): Day[];
  /** The `count` sessions that end on or before `day`, ascending. */
  lastSessions(exchange: string, day: Day, count: number): Day[];
  /** Is there reviewed data for this year? Without, Monday to Friday is assumed. */
  knows(exchange: string, year: number): boolean;
}

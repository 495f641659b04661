import type { Day } from '../core/days.ts';
import { buildCalendar } from './build.ts';
import { type Entry, EXCHANGES } from './entries.ts';
import type { Calendar } from './types.ts';

/** A day on which an exchange was seen to be open. */
export interface ObservedSession {
  readonly exchange: string;
  readonly day: Day;
}

/** A calendar that can be shown to be wrong: data of a day it calls closed makes that day a session. */
export interface LearningCalendar extends Calendar {
  /** What the files say, without anything learned. */
  readonly listed: Calendar;
  /** From now on these days are sessions too (`special`), and nothing learned before is. */
  learn(observed: readonly ObservedSession[]): void;
}

/**
 * A calendar from lists of entries, as `buildCalendar`, that takes further sessions while it is in
 * use. What was observed wins over every list: the exchange was open, whatever somebody wrote.
 */
export function learningCalendar(lists: readonly (readonly Entry[])[]): LearningCalendar {
  const listed = buildCalendar(lists);
  let current = listed;
  let learned = '';
  return {
    listed,
    isSession: (exchange, day) => current.isSession(exchange, day),
    kindOf: (exchange, day) => current.kindOf(exchange, day),
    sessions: (exchange, from, to) => current.sessions(exchange, from, to),
    lastSessions: (exchange, day, count) => current.lastSessions(exchange, day, count),
    knows: (exchange, year) => current.knows(exchange, year),
    learn(observed) {
      const entries = observed.flatMap(entryOf);
      const text = entries.map(({ exchange, day }) => `${exchange} ${day}`).join(',');
      if (text === learned) return;
      learned = text;
      current = entries.length === 0 ? listed : buildCalendar([...lists, entries]);
    },
  };
}

/** Exchanges without a calendar of their own follow NSE and teach it nothing. */
function entryOf({ exchange, day }: ObservedSession): Entry[] {
  const known = EXCHANGES.find((one) => one === exchange);
  return known === undefined ? [] : [{ exchange: known, day, kind: 'session' }];
}

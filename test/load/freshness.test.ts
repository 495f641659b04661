import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import type { Pair } from '../../src/core/pair.ts';
import type { SessionState } from '../../src/load/state/coverage/completeness.ts';
import { MISSING_OF, summarizePairs } from '../../src/load/state/coverage/freshness.ts';
import { forAll } from '../support/for-all.ts';

const NSE: Pair = { operation: 'GetBhavCopyCM', exchange: 'NSE' };
const BSE: Pair = { operation: 'GetBhavCopyCM', exchange: 'BSE' };
const STATES = { c: 'complete', m: 'missing', p: 'pending' } as const;

/** A session for each letter (complete, missing, pending), day after day; its records are its place. */
function sessionsOf(pair: Pair, states: string, reason: SessionState['reason'] = 'failed'): SessionState[] {
  return [...states].map((letter, at) => {
    const state = STATES[letter as keyof typeof STATES];
    const isMissing = state === 'missing';
    return {
      ...pair,
      day: addDays('2025-01-01', at),
      state,
      reason: isMissing ? reason : null,
      detail: isMissing ? `why ${at}` : null,
      records: state === 'complete' ? at : 0,
    };
  });
}
const day = (at: number) => addDays('2025-01-01', at);
const summaryOf = (states: string) => {
  const [summary] = summarizePairs([NSE], sessionsOf(NSE, states));
  if (summary === undefined) throw new Error('a pair has a summary');
  return summary;
};

describe('the summary of the sessions of a pair', () => {
  const late = (at: number) => ({ lastDue: day(at), isLate: true, reason: 'failed', detail: `why ${at}` });
  const onTime = (at: number) => ({ lastDue: day(at), isLate: false, reason: null, detail: null });
  test.each([
    ['', { lastComplete: null, lastDue: null, isLate: false, missingSessions: 0, medianRecords: null }, 0],
    ['p', { lastComplete: null, lastDue: null, isLate: false, missingSessions: 0, lastRecords: null }, 0],
    ['c', { lastComplete: day(0), ...onTime(0), missingSessions: 0, lastRecords: 0, medianRecords: null }, 0],
    ['mmp', { lastComplete: null, ...late(1), missingSessions: 2, lastRecords: null }, 2],
    ['cmcpp', { lastComplete: day(2), ...onTime(2), missingSessions: 1, medianRecords: 0 }, 0],
    ['ccccmcmmp', { lastComplete: day(5), ...late(7), missingSessions: 3, medianRecords: 1.5 }, 2],
  ])('%s', (states, freshness, missingInARow) => {
    expect(summaryOf(states)).toMatchObject({ freshness: { ...NSE, ...freshness }, missingInARow });
  });

  test('each pair that was asked for has one, of its own sessions, in the order of the pairs', () => {
    const sessions = [...sessionsOf(BSE, 'cm'), ...sessionsOf(NSE, 'mc')];
    const other = { ...NSE, exchange: 'XSE' };
    const found = summarizePairs([NSE, other, BSE], sessions);
    expect(found.map(({ freshness, ...one }) => [freshness.exchange, one.sessions.length])).toEqual([
      ['NSE', 2],
      ['XSE', 0],
      ['BSE', 2],
    ]);
    expect(summarizePairs([], sessions)).toEqual([]);
  });

  const states = fc.array(fc.constantFrom('c', 'c', 'c', 'm', 'p'), { maxLength: 80, size: 'max' });

  test('counts each session once, as a walk from the last one back does', () => {
    forAll([states], (letters) => {
      const { freshness, ...summary } = summaryOf(letters.join(''));
      const due = letters.filter((letter) => letter !== 'p');
      expect([summary.complete.length, summary.missing.length]).toEqual([
        due.filter((letter) => letter === 'c').length,
        due.filter((letter) => letter === 'm').length,
      ]);
      const back = due.reverse();
      const first = back.indexOf('c');
      expect(summary.missingInARow).toBe(first === -1 ? back.length : first);
      expect(freshness.isLate).toBe(back[0] === 'm');
      expect(freshness.missingSessions).toBe(
        back.slice(0, MISSING_OF).filter((letter) => letter === 'm').length,
      );
    });
  });

  test('what is decided stays, whatever older sessions there are', () => {
    let decided = 0;
    forAll([states, states], { numRuns: 300 }, (older, newer) => {
      const recent = sessionsOf(NSE, newer.join(''));
      const [summary] = summarizePairs([NSE], recent);
      if (summary?.isDecided !== true) return;
      decided += 1;
      const before = sessionsOf(NSE, older.join('')).map((one) => ({
        ...one,
        day: addDays(one.day, -100),
      }));
      expect(summarizePairs([NSE], [...before, ...recent])).toMatchObject([
        { freshness: summary.freshness, isDecided: true },
      ]);
    });
    expect(decided).toBeGreaterThan(20);
  });
});

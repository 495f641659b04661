import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import { type CallGroup, spreadCalls } from '../../src/jobs/policy/call-pace.ts';
import {
  nightPriority,
  type Recency,
  recencyOf,
  type Turn,
  worthOf,
} from '../../src/jobs/queue/call-order.ts';
import { PRIORITY } from '../../src/jobs/queue/enqueue.ts';
import type { ScheduleValue } from '../../src/operations/operation.ts';
import { operationNamed, operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';

const VALUES: readonly ScheduleValue[] = ['prices', 'lists', 'details'];
const RECENCIES: readonly Recency[] = ['newest', 'lookback', 'older'];

const turns: fc.Arbitrary<Turn> = fc.record({
  value: fc.constantFrom(...VALUES),
  recency: fc.constantFrom(...RECENCIES),
  requestedOn: fc.option(fc.integer({ min: 0, max: 40_000 }).map((days) => addDays('2000-01-01', days))),
});

/** The order in words: value, then newer days, then what was requested longest ago, of which never is the longest. */
function compare(a: Turn, b: Turn): number {
  const positions = [
    [VALUES.indexOf(a.value), VALUES.indexOf(b.value)],
    [RECENCIES.indexOf(a.recency), RECENCIES.indexOf(b.recency)],
  ] as const;
  for (const [one, other] of positions) if (one !== other) return one - other;
  const [one, other] = [a.requestedOn ?? '', b.requestedOn ?? ''];
  return one === other ? 0 : one < other ? -1 : 1;
}

describe('the order of a night', () => {
  test('is by value, then by the newness of the days, then by age: of any two turns', () => {
    forAll([turns, turns], { numRuns: 2_000 }, (a, b) => {
      expect(Math.sign(nightPriority(a) - nightPriority(b))).toBe(
        compare(a, b) < 0 ? -1 : compare(a, b) > 0 ? 1 : 0,
      );
    });
  });

  test('is one order of any set, in whatever order it comes', () => {
    forAll([fc.array(turns), fc.infiniteStream(fc.nat())], (set, chances) => {
      const shuffled = set
        .map((turn) => ({ turn, chance: chances.next().value as number }))
        .sort((a, b) => a.chance - b.chance)
        .map(({ turn }) => turn);
      const sorted = (some: readonly Turn[]) => some.map(nightPriority).sort((a, b) => a - b);
      expect(sorted(shuffled)).toEqual(sorted(set));
      expect([...shuffled].sort(compare).map(nightPriority)).toEqual(sorted(set));
    });
  });

  test('lies between the windows that go before it and the limit of BullMQ', () => {
    forAll([turns], (turn) => {
      const priority = nightPriority(turn);
      expect(Number.isInteger(priority)).toBe(true);
      expect(priority).toBeGreaterThan(PRIORITY.piece + 366);
      expect(priority).toBeLessThanOrEqual(2 ** 21 - 1);
    });
  });

  test('puts prices first, and every operation that is about instruments last', () => {
    const named = (value: ScheduleValue) => operations.filter((one) => worthOf(one) === value);
    expect(named('prices').map(({ name }) => name)).toEqual(['GetBhavCopyCM', 'GetBhavCopyFO']);
    expect(named('details').every(({ windows }) => windows.per === 'instrument')).toBe(true);
  });

  test('knows the days of a lookback from older gaps, where requests are about sessions', () => {
    const sessions = ['2025-09-08', '2025-09-09', '2025-09-10'];
    const of = (name: string) => (to: string) => recencyOf(operationNamed(name), to, sessions);
    const days = ['2025-09-12', '2025-09-10', '2025-09-09', '2025-09-08', '2025-09-05'];
    const expected = ['newest', 'newest', 'lookback', 'lookback', 'older'];
    expect(days.map(of('GetBhavCopyCM'))).toEqual(expected);
    expect(days.map(of('GetFinRatioEOD'))).toEqual(expected);
    expect(days.map(of('GetFinancialRatios'))).toEqual(days.map(() => 'newest'));
  });
});

describe('what fits into a night', () => {
  const groups: fc.Arbitrary<CallGroup[]> = fc.array(
    fc.record({ pair: fc.constantFrom('a', 'b', 'c', 'd'), class: fc.nat(8), calls: fc.nat(500) }),
  );
  const HOUR = 3_600_000;

  test('is as many calls as the hours allow, and of those the ones that come first', () => {
    forAll([groups, fc.integer({ min: 1, max: 200 }), fc.nat(10)], (all, perHour, hours) => {
      const pace = { perHour, leftThisHour: perHour, now: 0, hour: 0, secondsPerCall: 0 };
      const placed = spreadCalls(all, pace, hours * HOUR);
      const total = all.reduce((sum, { calls }) => sum + calls, 0);
      const left = [...placed.values()].reduce((sum, { leftOver }) => sum + leftOver, 0);
      expect(left).toBe(Math.max(0, total - (hours + 1) * perHour));
      // What is of a lower class than anything left over is made whole.
      for (const { pair, class: own } of all.filter(({ calls }) => calls > 0)) {
        const before = all.filter((one) => one.class <= own).reduce((sum, { calls }) => sum + calls, 0);
        const isLast = all.every((one) => one.pair !== pair || one.class <= own);
        if (isLast && before <= (hours + 1) * perHour) expect(placed.get(pair)?.leftOver).toBe(0);
      }
    });
  });
});

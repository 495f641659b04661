import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSettableClock } from '../../../src/core/clock.ts';
import { loadConfig } from '../../../src/core/config.ts';
import {
  computeCallLimit,
  createSourceClock,
  fullHourWait,
  furtherHours,
  hourStart,
  untilNextHour,
} from '../../../src/jobs/policy/quota.ts';
import { callsLeft, usedUpText } from '../../../src/jobs/runs/read-status.ts';
import { manualClock } from '../../sandbox/support.ts';
import { forAll } from '../../support/for-all.ts';

describe('the clock hour', () => {
  const IST = 'Asia/Kolkata';
  const until = (time: string) => untilNextHour(Date.parse(`2025-09-10T${time}Z`), IST);

  test('turns at half past by UTC for Indian clocks, and calls start two seconds into it', () => {
    expect(until('10:00:00')).toBe(30 * 60_000 + 2_000);
    expect(until('10:29:59.999')).toBe(2_001);
    expect(until('10:30:00')).toBe(3_602_000);
  });

  test('no call starts within two seconds of its turn', () => {
    const wait = (time: string) => fullHourWait(Date.parse(`2025-09-10T${time}Z`), IST);
    expect(wait('10:29:57')).toBe(0);
    expect(wait('10:29:59')).toBe(3_000);
    expect(wait('10:30:01')).toBe(1_000);
    expect(wait('10:30:02')).toBe(0);
  });

  test('starts at a full hour of the zone, never ahead of now', () =>
    forAll(
      [fc.integer({ min: 1e12, max: 4e12 }), fc.constantFrom('UTC', IST, 'America/St_Johns')],
      (now, zone) => {
        const start = hourStart(now, zone);
        expect(now - start).toBeGreaterThanOrEqual(0);
        expect(now - start).toBeLessThan(3_600_000);
        expect(start % 60_000).toBe(0);
      },
    ));
});

describe('the clock of the source', () => {
  const at = (time: string) => Date.parse(`2025-09-12T${time}+05:30`);

  function sourceClock(start: string, offsetMs = 0) {
    const clock = manualClock(at(start));
    const source = { clockOffsetMs: () => offsetMs };
    return createSourceClock({ clock, source });
  }

  test('follows its Date headers', () => {
    const hours = sourceClock('23:00:05', -30_000);
    expect(hours.now()).toBe(at('22:59:35'));
  });

  test('is moved by its Date headers by no more than five minutes', () => {
    for (const [offset, moved] of [
      [240_000, 240_000],
      [900_000, 300_000],
      [-1_500_000, -300_000],
    ] as const) {
      const hours = sourceClock('23:30:00', offset);
      expect(hours.now()).toBe(at('23:30:00') + moved);
    }
  });

  test('follows that of Postgres where the clock of the machine is set to another date', () => {
    const days = 86_400_000;
    forAll(
      [
        fc.integer({ min: -1_800, max: 1_800 }),
        fc.integer({ min: 0, max: days }),
        fc.integer({ min: -10, max: 10 }),
      ],
      (ahead, into, minutes) => {
        const server = at('00:00:00') + into;
        const ownClock = manualClock(server + ahead * days);
        const clock = createSettableClock(ownClock);
        clock.set(server);
        const config = loadConfig({ EOD_ACCESS_KEY: 'kiwi' });
        const source = { clockOffsetMs: () => minutes * 60_000 };
        const { hour } = computeCallLimit(config, clock, createSourceClock({ clock, source }));
        expect(Math.abs(hour + 1_800_000 - server)).toBeLessThanOrEqual(1_800_000 + 300_000);
      },
    );
  });
});

describe('the calls that are left in an hour', () => {
  const NEXT = '2025-09-12T17:30:00.000Z';

  test('are those of backfills and those that are reserved, whatever was made and however the settings are', () =>
    forAll(
      [fc.nat(2_000), fc.nat(2_000), fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean()],
      (calls, limit, reserve, isClosed) => {
        const backfillLimit = Math.floor(limit * (1 - reserve));
        const waits = (allowed: number) => (isClosed || calls >= allowed ? NEXT : null);
        const { left, forBackfills, reserved } = callsLeft({
          hour: '2025-09-12T16:30:00.000Z',
          calls,
          limit,
          backfillLimit,
          backfillsWaitUntil: waits(backfillLimit),
          nightsWaitUntil: waits(limit),
        });
        expect(left).toBe(isClosed ? 0 : Math.max(0, limit - calls));
        expect(forBackfills + reserved).toBe(left);
        expect(reserved).toBeGreaterThanOrEqual(0);
        expect(forBackfills).toBe(isClosed ? 0 : Math.max(0, backfillLimit - calls));
      },
    ));

  const quota = {
    hour: '2025-09-12T16:30:00.000Z',
    calls: 70,
    limit: 100,
    backfillLimit: 70,
    backfillsWaitUntil: NEXT,
    nightsWaitUntil: null,
  };

  test.each([
    ['backfill', quota, "the backfills' share of this hour is used up"],
    ['gap_fill', quota, "the backfills' share of this hour is used up"],
    ['backfill', { ...quota, nightsWaitUntil: NEXT }, 'the calls of this hour are used up'],
    ['nightly', { ...quota, nightsWaitUntil: NEXT }, 'the calls of this hour are used up'],
  ] as const)('a %s waits because its own are used up', (kind, used, sentence) => {
    expect(usedUpText(used, kind)).toBe(sentence);
  });
});

test('calls take as many hours as the budget of each makes necessary', () =>
  forAll([fc.nat(5_000), fc.integer({ min: 1, max: 900 }), fc.nat(900)], (calls, perHour, left) => {
    let [hours, remaining] = [0, calls - left];
    for (; remaining > 0; remaining -= perHour) hours += 1;
    expect(furtherHours(calls, { perHour, left })).toBe(hours);
    expect(furtherHours(left + 1, { perHour: 0, left })).toBe(Number.POSITIVE_INFINITY);
  }));

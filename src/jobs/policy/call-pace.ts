import { HOUR_MS } from '../../core/days.ts';

// When calls are made, by the budget of each clock hour (pure).

export interface Pace {
  readonly leftThisHour: number;
  readonly perHour: number;
  /** The current time and the start of the clock hour, milliseconds since the epoch. */
  readonly now: number;
  readonly hour: number;
  /** With EOD_CONCURRENCY calls at a time. */
  readonly secondsPerCall: number;
}

/** How many clock hours this many calls take, and when the last one is made; null if they may never be made. */
export function expectedFinish(
  requests: number,
  pace: Pace,
): { readonly hours: number; readonly finishAt: number } | null {
  const { leftThisHour, perHour, now, hour, secondsPerCall } = pace;
  const later = Math.max(0, requests - leftThisHour);
  if (later === 0) {
    return { hours: requests === 0 ? 0 : 1, finishAt: now + requests * secondsPerCall * 1000 };
  }
  // All calls are reserved for nightly runs: a backfill would never end.
  if (perHour <= 0) return null;
  const further = Math.ceil(later / perHour);
  const inLast = later - (further - 1) * perHour;
  const end = hour + further * HOUR_MS + Math.min(HOUR_MS, inLast * secondsPerCall * 1000);
  return { hours: further + (leftThisHour > 0 ? 1 : 0), finishAt: end };
}

/** Calls of one class in the order of a night (`classOf`), of one operation and exchange. */
export interface CallGroup {
  readonly pair: string;
  readonly class: number;
  readonly calls: number;
}

/** What becomes of the calls of an operation and exchange. */
interface Placed {
  /** When the last one is made that is made before the next night; null if none is. */
  readonly finishAt: number | null;
  /** How many are left when the next night begins. */
  readonly leftOver: number;
  /** How many calls come before the last of those that are left, and are left too; with it. */
  readonly leftBefore: number;
}

/**
 * Which calls of a night are made before the next one begins, by operation and exchange: in the order in which workers
 * make them, as far as the budget reaches.
 */
export function spreadCalls(
  groups: readonly CallGroup[],
  pace: Pace,
  nextNight: number,
): ReadonlyMap<string, Placed> {
  const placed = new Map<string, Placed>();
  const room = callsUntil(
    pace,
    nextNight,
    groups.reduce((total, { calls }) => total + calls, 0),
  );
  let made = 0;
  for (const { pair, calls } of [...groups].sort((a, b) => a.class - b.class)) {
    const fitting = Math.min(calls, Math.max(0, room - made));
    made += calls;
    const before = placed.get(pair);
    placed.set(pair, {
      finishAt:
        fitting === 0
          ? (before?.finishAt ?? null)
          : (expectedFinish(Math.min(made, room), pace)?.finishAt ?? null),
      leftOver: (before?.leftOver ?? 0) + calls - fitting,
      leftBefore: Math.max(0, made - room),
    });
  }
  return placed;
}

/** The most of these calls that can be made until then. */
function callsUntil(pace: Pace, end: number, calls: number): number {
  let [least, most] = [0, calls];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    const finish = expectedFinish(middle, pace);
    if (finish !== null && finish.finishAt <= end) least = middle;
    else most = middle - 1;
  }
  return least;
}

import { today } from '../../core/clock.ts';
import { addDays, type Day } from '../../core/days.ts';
import {
  type GapReason,
  type Pair,
  readCompleteness,
  type SessionState,
  scheduledPairs,
  USUAL_OVER,
} from '../../load/state/completeness.ts';
import { countOpenRejects } from '../../load/state/rejects.ts';
import { openRunsProgress, type RunProgress } from '../../load/state/reports.ts';
import { readWorkers } from '../../load/state/workers.ts';
import type { Context } from '../context.ts';
import { type NextTick, nextTicks } from '../worker/scheduler.ts';
import { forecastFinish } from './forecast.ts';
import { type KeyStatus, readKeyStatus, waitsUntil } from './read-status.ts';

/** How many days back sessions are shown; the coverage pages show older ones. */
export const RECENT_DAYS = 60;

/** The state of the latest session of a data set. */
export interface LatestSession extends Pair {
  /** The latest session that should be loaded by now; null if there is none within RECENT_DAYS. */
  readonly due: Day | null;
  readonly state: 'complete' | 'missing' | 'nothing';
  readonly reason: GapReason | null;
  readonly detail: string | null;
  /** Last session that is complete. */
  readonly lastComplete: Day | null;
  /** Number of records of the last complete session, and the median of those before it. */
  readonly records: number | null;
  readonly usual: number | null;
  /** Number of missing sessions within RECENT_DAYS, without the latest one. */
  readonly missingBefore: number;
  readonly openRejects: number;
  /** When its schedule runs next, ISO 8601. */
  readonly next: string | null;
}

/** Why a run does not proceed. */
export type WaitReason =
  | { readonly why: 'paused' }
  | { readonly why: 'no_worker'; readonly lastSeenAt: string | null }
  | { readonly why: 'calls_used'; readonly until: string }
  | { readonly why: 'key_refused'; readonly line: string }
  | { readonly why: 'bhav_copies' };

/** A run that has not ended. */
export interface OpenRun extends RunProgress {
  /** When it will probably end, ISO 8601; null if that cannot be estimated. */
  readonly finishAt: string | null;
  readonly waitReasons: readonly WaitReason[];
}

export interface Tonight extends KeyStatus {
  readonly sessions: readonly LatestSession[];
  readonly openRuns: readonly OpenRun[];
  readonly workers: Awaited<ReturnType<typeof readWorkers>>;
  readonly ticks: readonly NextTick[];
}

/** Reads the state of the current or last night, with the same few queries however long the history is. */
export async function readTonight(context: Context): Promise<Tonight> {
  const { config, clock, db } = context;
  const since = addDays(today(clock, config.EOD_TIMEZONE), -RECENT_DAYS);
  const scope = { expected: scheduledPairs(config), others: false, from: since, since };
  const [sessions, rejects, progress, workers, { quota, keyRefused }] = await Promise.all([
    readCompleteness(context, scope),
    countOpenRejects(db.drizzle),
    openRunsProgress(db.drizzle),
    readWorkers(db.drizzle),
    readKeyStatus(context),
  ]);
  const ticks = nextTicks(config, clock);
  return {
    sessions: scope.expected.map((pair) => ({
      ...latestOf(
        pair,
        sessions.filter((one) => isSame(one, pair)),
      ),
      openRejects: rejects.find((one) => isSame(one, pair))?.rejects ?? 0,
      next: ticks.find((one) => isSame(one, pair))?.next ?? null,
    })),
    openRuns: await Promise.all(
      progress.map(async (run) => ({
        ...run,
        finishAt:
          run.state === 'running' && !run.deferred
            ? (await forecastFinish(context, run.kind, run.total - run.ended)).finishAt
            : null,
        waitReasons: waitReasonsOf(run, { workers, quota, keyRefused }),
      })),
    ),
    quota,
    keyRefused,
    workers,
    ticks,
  };
}

const isSame = (one: Pair, other: Pair) =>
  one.operation === other.operation && one.exchange === other.exchange;

/** Summarizes the sessions of a data set, given in the order of their days (pure). */
export function latestOf(
  { operation, exchange }: Pair,
  sessions: readonly SessionState[],
): Omit<LatestSession, 'openRejects' | 'next'> {
  const due = sessions.filter(({ state }) => state !== 'pending');
  const latest = due.at(-1);
  const complete = due.filter(({ state }) => state === 'complete');
  const last = complete.at(-1);
  const first = due.findIndex(({ state }) => state === 'complete');
  const earlier = due.slice(Math.max(first, 0), -1);
  const before = complete.slice(-USUAL_OVER - 1, -1).map(({ records }) => records);
  return {
    operation,
    exchange,
    due: latest?.day ?? null,
    state: latest === undefined ? 'nothing' : latest.state === 'complete' ? 'complete' : 'missing',
    reason: latest?.reason ?? null,
    detail: latest?.detail ?? null,
    lastComplete: last?.day ?? null,
    records: last?.records ?? null,
    usual: median(before),
    // Sessions before the first complete one are not expected.
    missingBefore: first < 0 ? 0 : earlier.filter(({ state }) => state === 'missing').length,
  };
}

function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return null;
  const [low = 0, high = 0] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

function waitReasonsOf(
  run: RunProgress,
  { workers, quota, keyRefused }: Pick<Tonight, 'workers' | 'quota' | 'keyRefused'>,
): WaitReason[] {
  if (run.state === 'paused') return [{ why: 'paused' }];
  const until = quota === null ? null : waitsUntil(quota, run.kind);
  return [
    ...(workers.seen > 0 ? [] : [{ why: 'no_worker' as const, lastSeenAt: workers.lastSeenAt }]),
    ...(keyRefused === null ? [] : [{ why: 'key_refused' as const, line: keyRefused }]),
    ...(until === null ? [] : [{ why: 'calls_used' as const, until }]),
    ...(run.deferred ? [{ why: 'bhav_copies' as const }] : []),
  ];
}

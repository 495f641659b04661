import { today } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/pair.ts';
import { bestStates, summarizeCoverage } from '../../load/state/coverage/coverage.ts';
import { type Freshness, isUnused, readFreshness } from '../../load/state/coverage/freshness.ts';
import type { CoverageState } from '../../load/state/coverage/registers.ts';
import { countOpenRejects } from '../../load/state/rejects.ts';
import { openRunsProgress, type RunProgress } from '../../load/state/runs/reports.ts';
import type { RunKind } from '../../load/state/runs/request.ts';
import { readObservedSessions, type SessionRow } from '../../load/state/sessions.ts';
import { readKeyRefusal } from '../../load/state/source/access-keys.ts';
import { readHour } from '../../load/state/source/call-budget.ts';
import { countDoubtedWindows } from '../../load/state/windows/doubted.ts';
import { readWorkers } from '../../load/state/workers.ts';
import { isQuarterly } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { queueOf } from '../worker/queue.ts';
import { callLimitOf, keyHash } from '../worker/quota.ts';

/** How many sessions the status reports on … */
export const RECENT_SESSIONS = 10;

/** … or, for operations with figures of quarters, how many quarters. */
const RECENT_QUARTERS = 4;

export interface OperationStatus extends Freshness {
  /** The watermark: last session that is loaded, or null. */
  readonly lastLoaded: Day | null;
  /** Number of recent sessions or quarters by coverage state; `never` if they were never asked for. */
  readonly recent: Readonly<Partial<Record<CoverageState | 'never', number>>>;
  /** Rejected records that are not resolved. */
  readonly openRejects: number;
  /** Windows that lacked too many rows, and no good answer since: a person should look at them. */
  readonly suspiciousWindows: number;
  /** The last run that asked, and when, or null. */
  readonly lastRun: number | null;
  readonly lastAskedAt: string | null;
}

/** What is known about the access key. */
export interface KeyStatus {
  /** Its budget of this clock hour; null if no key is set. */
  readonly quota: QuotaStatus | null;
  /** The line with which the source refused it, or null. */
  readonly keyRefused: string | null;
}

export interface Status extends KeyStatus {
  /** Was nothing ever asked for or imported? */
  readonly isUnused: boolean;
  readonly queue: 'redis' | 'postgres';
  readonly database: 'DATABASE_URL' | 'private';
  /** Number of workers seen within the last minute, and when one was last seen. */
  readonly workers: Awaited<ReturnType<typeof readWorkers>>;
  readonly operations: readonly OperationStatus[];
  readonly openRuns: readonly RunProgress[];
  /** Sessions that no calendar file lists, known because there is data for them. */
  readonly observedSessions: readonly Pick<SessionRow, 'exchange' | 'day'>[];
}

/** Reads what is loaded, what is missing, and what is being worked on. */
export async function readStatus(context: Context): Promise<Status> {
  const { config, db } = context;
  const known = await summarizeCoverage(db.drizzle);
  const pairs = await readFreshness(context);
  const rejects = await countOpenRejects(db.drizzle);
  const doubted = await countDoubtedWindows(db.drizzle);
  const openRuns = await openRunsProgress(db.drizzle);
  const recent = await recentSessions(context, pairs);
  const statuses = pairs.map((pair, at): OperationStatus => {
    const same = (one: Pair) => pairName(one) === pairName(pair);
    const facts = known.find(same);
    const asked = facts?.lastAskedAt ?? null;
    return {
      ...pair,
      lastLoaded: facts?.lastLoaded ?? null,
      recent: recent[at] ?? {},
      openRejects: rejects.find(same)?.rejects ?? 0,
      suspiciousWindows: doubted.find(same)?.windows ?? 0,
      lastRun: facts?.lastRun ?? null,
      lastAskedAt: asked === null ? null : new Date(asked).toISOString(),
    };
  });
  return {
    isUnused: isUnused(pairs),
    queue: config.REDIS_URL === undefined ? 'postgres' : 'redis',
    workers: await readWorkers(db.drizzle),
    database: config.DATABASE_URL === undefined ? 'private' : 'DATABASE_URL',
    operations: statuses,
    openRuns,
    ...(await readKeyStatus(context)),
    observedSessions: (await readObservedSessions(db.drizzle)).map(({ exchange, day }) => ({
      exchange,
      day,
    })),
  };
}

/** The last days of the last `count` quarters that have ended. */
function quarterEnds(now: Day, count: number): Day[] {
  const begun = 3 * Math.floor((Number(now.slice(5, 7)) - 1) / 3);
  return Array.from({ length: count }, (_, back) =>
    new Date(Date.UTC(Number(now.slice(0, 4)), begun - 3 * back, 0)).toISOString().slice(0, 10),
  );
}

/** Counts the recent sessions of each pair by coverage state, in the order of `pairs`. */
async function recentSessions(
  { db, calendar, clock, config }: Context,
  pairs: readonly Pair[],
): Promise<OperationStatus['recent'][]> {
  const now = today(clock, config.EOD_TIMEZONE);
  const asked = pairs.map((pair) => ({
    ...pair,
    sessions: isQuarterly(operationNamed(pair.operation))
      ? quarterEnds(now, RECENT_QUARTERS)
      : calendar.lastSessions(pair.exchange, now, RECENT_SESSIONS),
  }));
  const known = await bestStates(db.drizzle, {
    operations: asked.map((one) => one.operation),
    exchanges: asked.map((one) => one.exchange),
    days: asked.flatMap((one) => one.sessions),
  });
  // The best state of a day comes first.
  const best = new Map(known.reverse().map((one) => [`${pairName(one)} ${one.day}`, one.state]));
  return asked.map(({ sessions, ...pair }) => {
    const counts = new Map<CoverageState | 'never', number>();
    for (const session of sessions) {
      const state = best.get(`${pairName(pair)} ${session}`) ?? 'never';
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
  });
}

/** Reads what is known about the access key of the settings. */
export async function readKeyStatus(context: Context): Promise<KeyStatus> {
  const { EOD_ACCESS_KEY: key } = context.config;
  if (key === undefined) return { quota: null, keyRefused: null };
  const [quota, keyRefused] = await Promise.all([
    quotaStatus(context),
    readKeyRefusal(context.db.drizzle, keyHash(key)),
  ]);
  return { quota, keyRefused };
}

export interface QuotaStatus {
  /** Start of the clock hour, ISO 8601. */
  readonly hour: string;
  readonly calls: number;
  readonly limit: number;
  /** The part of the limit that backfills may use. */
  readonly backfillLimit: number;
  /** Until when backfills wait, ISO 8601; null if they need not wait. */
  readonly backfillsWaitUntil: string | null;
  /** The same for nightly runs. */
  readonly nightsWaitUntil: string | null;
}

/** Reads how much of the key's hour is used, and which runs wait for the next hour. */
export async function quotaStatus({ config, clock, db }: Context): Promise<QuotaStatus> {
  const callLimit = callLimitOf(config, clock);
  const hour = await readHour(db.drizzle, callLimit);
  const next = new Date(callLimit.hour + 3_600_000).toISOString();
  const spent = (limit: number) => hour.refused !== null || hour.calls >= limit;
  return {
    hour: new Date(callLimit.hour).toISOString(),
    calls: hour.calls,
    limit: callLimit.limit,
    backfillLimit: callLimit.backfillLimit,
    backfillsWaitUntil: spent(callLimit.backfillLimit) ? next : null,
    nightsWaitUntil: spent(callLimit.limit) ? next : null,
  };
}

/** Until when a run of this kind waits with its calls, ISO 8601; null if it need not wait. */
export function waitsUntil(quota: QuotaStatus, kind: RunKind): string | null {
  return queueOf(kind) === 'nightly' ? quota.nightsWaitUntil : quota.backfillsWaitUntil;
}

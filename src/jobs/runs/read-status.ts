import { today } from '../../core/clock.ts';
import { addDays } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { countFound, type FoundState } from '../../load/state/coverage/completeness.ts';
import { lastRequests } from '../../load/state/coverage/coverage.ts';
import {
  type Freshness,
  type ImportedList,
  isUnused,
  readFreshness,
  readLists,
} from '../../load/state/coverage/freshness.ts';
import { countIssues } from '../../load/state/issues.ts';
import { countOpenRejects } from '../../load/state/rejects.ts';
import type { RunKind } from '../../load/state/request.ts';
import { type OpenRunProgress, openRunsProgress } from '../../load/state/runs/reports.ts';
import { readObservedSessions, type SessionRow } from '../../load/state/sessions.ts';
import { readKeyRefusal } from '../../load/state/source/access-keys.ts';
import { readHour } from '../../load/state/source/call-budget.ts';
import { countSuspiciousWindows } from '../../load/state/windows/suspicious.ts';
import { readWorkers } from '../../load/state/workers.ts';
import { isQuarterly } from '../../operations/operation.ts';
import { hasSessions, isRequested, operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { callLimitOf, keyHash } from '../policy/quota.ts';
import { queueOf } from '../queue/queue.ts';

/** How many sessions the status reports on … */
export const RECENT_SESSIONS = 10;

/** … or, for operations with figures of quarters, how many quarters. */
const RECENT_QUARTERS = 4;
const DAYS_OF_QUARTER = 92;

/** So many days have RECENT_SESSIONS sessions, whatever the holidays. */
const RECENT_DAYS = 30;

interface OperationStatus extends Freshness {
  /** True if it was ever requested; false if only files have filled it. */
  readonly hasBeenRequested: boolean;
  /** False if files alone fill it. */
  readonly isRequested: boolean;
  /** Number of recent sessions or quarters by the best response to them. */
  readonly recent: Readonly<Partial<Record<FoundState, number>>>;
  /** Rejected records that are not resolved. */
  readonly openRejects: number;
  /** Windows that lacked too many rows, and no good response since: a person should look at them. */
  readonly suspiciousWindows: number;
  /** The run that last requested the newest day that was requested, and when, or null. */
  readonly lastRun: number | null;
  readonly lastRequestedAt: string | null;
}

/** What is known about the access key. */
interface KeyStatus {
  /** Its budget of this clock hour; null if no key is set. */
  readonly quota: QuotaStatus | null;
  /** The line with which the source refused it, or null. */
  readonly keyRefused: string | null;
}

export interface Status extends KeyStatus {
  /** True if nothing was ever requested or imported. */
  readonly isUnused: boolean;
  readonly queue: 'redis' | 'postgres';
  readonly database: 'DATABASE_URL' | 'private';
  /** Number of workers seen within the last minute, and when one was last seen. */
  readonly workers: Awaited<ReturnType<typeof readWorkers>>;
  readonly operations: readonly OperationStatus[];
  /** The newest list of each data set that is imported as lists. */
  readonly lists: readonly ImportedList[];
  /** How many issues need a person. */
  readonly issues: number;
  readonly openRuns: readonly OpenRunProgress[];
  /** Sessions that no calendar file lists, known because there is data for them. */
  readonly observedSessions: readonly Pick<SessionRow, 'exchange' | 'day'>[];
}

/** Reads what is loaded, what is missing, and what is being worked on. */
export async function readStatus(context: Context): Promise<Status> {
  const { config, db } = context;
  const pairs = await readFreshness(context);
  const lists = await readLists(context, pairs);
  const rejects = await countOpenRejects(db.drizzle);
  const suspicious = await countSuspiciousWindows(db.drizzle);
  const openRuns = await openRunsProgress(db.drizzle);
  const recent = await recentSessions(context, pairs);
  const requests = await lastRequests(db.drizzle);
  const statuses = pairs.map((pair): OperationStatus => {
    const same = (one: Pair) => pairName(one) === pairName(pair);
    const last = requests.find(same);
    return {
      ...pair,
      hasBeenRequested: last !== undefined,
      isRequested: isRequested(pair.operation),
      recent: recent.get(pairName(pair)) ?? {},
      openRejects: rejects.find(same)?.rejects ?? 0,
      suspiciousWindows: suspicious.find(same)?.windows ?? 0,
      lastRun: last?.runId ?? null,
      lastRequestedAt: last === undefined ? null : new Date(last.requestedAt).toISOString(),
    };
  });
  return {
    isUnused: isUnused(pairs, lists),
    queue: config.REDIS_URL === undefined ? 'postgres' : 'redis',
    workers: await readWorkers(db.drizzle),
    database: config.DATABASE_URL === undefined ? 'private' : 'DATABASE_URL',
    operations: statuses,
    lists,
    issues: (await countIssues(db.drizzle)).reduce((sum, one) => sum + one.issues, 0),
    openRuns,
    ...(await readKeyStatus(context)),
    observedSessions: (await readObservedSessions(db.drizzle)).map(({ exchange, day }) => ({
      exchange,
      day,
    })),
  };
}

/**
 * Counts the recent sessions of each pair by the best response to them. Data without days has none.
 *
 * @returns the counts by the name of the pair.
 */
async function recentSessions(
  context: Context,
  pairs: readonly Pair[],
): Promise<ReadonlyMap<string, OperationStatus['recent']>> {
  const now = today(context.clock, context.config.EOD_TIMEZONE);
  const operationOf = ({ operation }: Pair) => operationNamed(operation);
  const dated = pairs.filter((pair) => hasSessions(operationOf(pair)));
  const counts = await Promise.all([
    countFound(context, {
      pairs: dated.filter((pair) => !isQuarterly(operationOf(pair))),
      from: addDays(now, -RECENT_DAYS),
      sessions: RECENT_SESSIONS,
    }),
    countFound(context, {
      pairs: dated.filter((pair) => isQuarterly(operationOf(pair))),
      from: addDays(now, -RECENT_QUARTERS * DAYS_OF_QUARTER),
      sessions: RECENT_QUARTERS,
    }),
  ]);
  const recent = new Map<string, Partial<Record<FoundState, number>>>();
  for (const { found, sessions, ...pair } of counts.flat()) {
    recent.set(pairName(pair), { ...recent.get(pairName(pair)), [found]: sessions });
  }
  return recent;
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

import { type Pair, pairName } from '../../core/exchanges.ts';
import { listLastRequests } from '../../state/coverage/coverage.ts';
import {
  type Freshness,
  type ImportedList,
  isUnused,
  readFreshness,
  readLists,
} from '../../state/coverage/freshness.ts';
import { countUnderived } from '../../state/derived.ts';
import { countIssues } from '../../state/issues.ts';
import { countOpenRejects } from '../../state/rejects.ts';
import type { RunKind } from '../../state/request.ts';
import { type OpenRunProgress, readOpenRunsProgress } from '../../state/runs/reports.ts';
import { readObservedTradingDays, type TradingDayRow } from '../../state/sessions.ts';
import { readHour } from '../../state/source/call-budget.ts';
import { readKeyRefusal } from '../../state/source/source-state.ts';
import { countSuspiciousWindows } from '../../state/windows/suspicious.ts';
import { readWorkers } from '../../state/workers.ts';
import type { Context } from '../context.ts';
import { computeCallLimit, keyHash } from '../policy/quota.ts';
import { chooseQueue } from '../queue/queue.ts';
import { type AdvisedState, readPipelineState } from './pipeline-state.ts';

interface OperationStatus extends CurrentSet {
  /** True if it was ever requested; false if only files have filled it. */
  readonly hasBeenRequested: boolean;
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
  /** The line with which the source refused it, and when it first did, ISO 8601; or null. */
  readonly keyRefused: string | null;
  readonly keyRefusedSince: string | null;
}

/** The state of a data set. */
interface CurrentSet extends Freshness {
  /** Rejected records that are not resolved. */
  readonly openRejects: number;
}

/** How things stand now. */
export interface Current extends KeyStatus {
  /** True if nothing was ever requested or imported. */
  readonly isUnused: boolean;
  /** By operation and exchange. */
  readonly operations: readonly CurrentSet[];
  /** The newest list of each data set that is imported as lists. */
  readonly lists: readonly ImportedList[];
  readonly openRuns: readonly OpenRunProgress[];
  /** The worst that is true now. */
  readonly pipeline: AdvisedState;
  /** Number of workers seen within the last minute, and when one was last seen. */
  readonly workers: Awaited<ReturnType<typeof readWorkers>>;
}

export interface Status extends Current {
  readonly queue: 'redis' | 'postgres';
  readonly database: 'DATABASE_URL' | 'private';
  readonly operations: readonly OperationStatus[];
  /** How many issues need a person. */
  readonly issues: number;
  /** Loads that names, corporate events, price factors and price bands do not include yet. */
  readonly underivedLoads: number;
  /** Trading days that no calendar file lists, known because there is data for them. */
  readonly observedSessions: readonly Pick<TradingDayRow, 'exchange' | 'day'>[];
}

/** Reads how things stand, with the same few queries however long the history is. */
export async function readCurrent(context: Context): Promise<Current> {
  const db = context.db.drizzle;
  const [pairs, rejects, openRuns, workers, key] = await Promise.all([
    readFreshness(context),
    countOpenRejects(db),
    readOpenRunsProgress(db),
    readWorkers(db),
    readKeyStatus(context),
  ]);
  const lists = await readLists(context, pairs);
  const rejectsOf = new Map(rejects.map((count) => [pairName(count), count.rejects]));
  const operations = pairs.map((pair) => ({ ...pair, openRejects: rejectsOf.get(pairName(pair)) ?? 0 }));
  const facts = { isUnused: isUnused(pairs, lists), workers, operations, lists, openRuns, ...key };
  return { ...facts, pipeline: await readPipelineState(context, facts) };
}

/** Reads what is loaded, what is missing, and what is being worked on. */
export async function readStatus(context: Context): Promise<Status> {
  const { config, db } = context;
  const current = await readCurrent(context);
  const suspicious = await countSuspiciousWindows(db.drizzle);
  const requests = await listLastRequests(db.drizzle);
  const operations = current.operations.map((pair): OperationStatus => {
    const isSame = (other: Pair) => pairName(other) === pairName(pair);
    const last = requests.find(isSame);
    return {
      ...pair,
      hasBeenRequested: last !== undefined,
      suspiciousWindows: suspicious.find(isSame)?.windows ?? 0,
      lastRun: last?.runId ?? null,
      lastRequestedAt: last === undefined ? null : new Date(last.requestedAt).toISOString(),
    };
  });
  return {
    ...current,
    queue: config.REDIS_URL === undefined ? 'postgres' : 'redis',
    database: config.DATABASE_URL === undefined ? 'private' : 'DATABASE_URL',
    operations,
    issues: (await countIssues(db.drizzle)).reduce((sum, count) => sum + count.issues, 0),
    underivedLoads: await countUnderived(db.drizzle),
    observedSessions: (await readObservedTradingDays(db.drizzle)).map(({ exchange, day }) => ({
      exchange,
      day,
    })),
  };
}

/** Reads what is known about the access key of the settings. */
export async function readKeyStatus(context: Context): Promise<KeyStatus> {
  const { EOD_ACCESS_KEY: key } = context.config;
  if (key === undefined) return { quota: null, keyRefused: null, keyRefusedSince: null };
  const [quota, refusal] = await Promise.all([
    quotaStatus(context),
    readKeyRefusal(context.db.drizzle, keyHash(key)),
  ]);
  return { quota, keyRefused: refusal?.diagnostic ?? null, keyRefusedSince: refusal?.since ?? null };
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
  const callLimit = computeCallLimit(config, clock);
  const hour = await readHour(db.drizzle, callLimit);
  const next = new Date(callLimit.hour + 3_600_000).toISOString();
  const spent = (limit: number) => hour.closingDiagnostic !== null || hour.calls >= limit;
  return {
    hour: new Date(callLimit.hour).toISOString(),
    calls: hour.calls,
    limit: callLimit.limit,
    backfillLimit: callLimit.backfillLimit,
    backfillsWaitUntil: spent(callLimit.backfillLimit) ? next : null,
    nightsWaitUntil: spent(callLimit.limit) ? next : null,
  };
}

/**
 * How many calls are left in this hour, how many of them backfills may make, and how many are reserved for nights; none
 * if the source has closed it.
 */
export function callsLeft({ calls, limit, backfillLimit, nightsWaitUntil }: QuotaStatus) {
  const left = nightsWaitUntil === null ? Math.max(0, limit - calls) : 0;
  const forBackfills = Math.min(left, Math.max(0, backfillLimit - calls));
  return { left, forBackfills, reserved: left - forBackfills };
}

/** What is used up while a run of this kind waits: nights may still make calls that backfills may not. */
export const usedUpText = (quota: QuotaStatus, kind: RunKind): string =>
  chooseQueue(kind) !== 'nightly' && quota.nightsWaitUntil === null
    ? "the backfills' share of this hour is used up"
    : 'the calls of this hour are used up';

/** Until when a run of this kind waits with its calls, ISO 8601; null if it need not wait. */
export function waitsUntil(quota: QuotaStatus, kind: RunKind): string | null {
  return chooseQueue(kind) === 'nightly' ? quota.nightsWaitUntil : quota.backfillsWaitUntil;
}

import { today } from '../../../core/clock.ts';
import { addDays, type Day } from '../../../core/days.ts';
import { type Pair, pairName } from '../../../core/pair.ts';
import {
  type CompletenessContext,
  type CompletenessScope,
  type GapReason,
  readCompleteness,
  type SessionState,
  scheduledPairs,
} from './completeness.ts';
import { listAskedPairs } from './days.ts';

/** How recent and how complete the data of an operation and exchange is. */
export interface Freshness extends Pair {
  /** Was it ever asked for or imported, with whatever result? */
  readonly hasBeenAsked: boolean;
  /** The last complete session; null if there is none. */
  readonly lastComplete: Day | null;
  /** The last session whose data should be stored by now. */
  readonly lastDue: Day | null;
  /** Is that session missing? */
  readonly isLate: boolean;
  /** Why it is missing, and what the source or the failure said; null if it is not. */
  readonly reason: GapReason | null;
  readonly detail: string | null;
  /** How many of the last MISSING_OF sessions that should be stored are missing. */
  readonly missingSessions: number;
  /** Records of the last complete session. */
  readonly lastRecords: number | null;
  /** Median over the twenty complete sessions before it; null if there are none. */
  readonly medianRecords: number | null;
}

/** What the sessions of an operation and exchange say. */
export interface PairSummary {
  readonly freshness: Omit<Freshness, 'hasBeenAsked'>;
  /** All of them, those that are complete, and those that should be stored and are not, by day. */
  readonly sessions: readonly SessionState[];
  readonly complete: readonly SessionState[];
  readonly missing: readonly SessionState[];
  /** How many in a row, up to the last session that should be stored, are missing. */
  readonly missingInARow: number;
  /** Would older sessions leave its freshness as it is? */
  readonly isDecided: boolean;
}

/** How many sessions are looked at for missing ones. */
export const MISSING_OF = 30;

/** The usual number of records is the median over this many complete sessions. */
const USUAL_OVER = 20;

/** So many days have MISSING_OF sessions, whatever the holidays. */
const RECENT_DAYS = 60;

/** Summarizes the sessions of each of these pairs, in the order of the pairs; those of a pair are in the order of days (pure). */
export function summarizePairs(pairs: readonly Pair[], sessions: readonly SessionState[]): PairSummary[] {
  const byPair = new Map<string, SessionState[]>(pairs.map((pair) => [pairName(pair), []]));
  for (const session of sessions) byPair.get(pairName(session))?.push(session);
  return pairs.map((pair) => summarize(pair, byPair.get(pairName(pair)) ?? []));
}

function summarize({ operation, exchange }: Pair, sessions: readonly SessionState[]): PairSummary {
  const due = sessions.filter(({ state }) => state !== 'pending');
  const complete = due.filter(({ state }) => state === 'complete');
  const missing = due.filter(({ state }) => state === 'missing');
  const [first, last] = [complete[0], complete.at(-1)];
  const latest = due.at(-1);
  const isLate = latest?.state === 'missing';
  const records = complete.slice(-USUAL_OVER - 1, -1).map((one) => one.records);
  return {
    freshness: {
      operation,
      exchange,
      lastComplete: last?.day ?? null,
      lastDue: latest?.day ?? null,
      isLate,
      reason: isLate ? latest.reason : null,
      detail: isLate ? latest.detail : null,
      missingSessions: due.slice(-MISSING_OF).filter(({ state }) => state === 'missing').length,
      lastRecords: last?.records ?? null,
      medianRecords: median(records),
    },
    sessions,
    complete,
    missing,
    missingInARow: last === undefined ? missing.length : due.length - 1 - due.lastIndexOf(last),
    // Sessions before the first complete one of all are not expected, so those before the first complete one of these
    // may or may not be.
    isDecided:
      first !== undefined && complete.length > USUAL_OVER && due.length - due.indexOf(first) >= MISSING_OF,
  };
}

function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

/**
 * The freshness of each operation and exchange that is scheduled, was ever asked for or was imported, by their names.
 * The status and the dashboard both say what this says. Only where the last days do not decide it is the whole history
 * read, for those alone, so that it is quick on years of history.
 */
export async function readFreshness(context: CompletenessContext): Promise<Freshness[]> {
  const expected = scheduledPairs(context.config);
  const asked = new Map((await listAskedPairs(context.db.drizzle)).map((pair) => [pairName(pair), pair]));
  const since = addDays(today(context.clock, context.config.EOD_TIMEZONE), -RECENT_DAYS);
  const read = async (pairs: readonly Pair[], scope: CompletenessScope) =>
    summarizePairs(pairs, await readCompleteness(context, scope));
  const recent = await read(expected, { expected, others: false, from: since, since });
  const decided = recent.filter(({ isDecided }) => isDecided);
  const rest = recent.filter(({ isDecided }) => !isDecided).map(({ freshness }) => freshness);
  const scheduled = new Set(expected.map(pairName));
  const others = [...asked.values()].filter((pair) => !scheduled.has(pairName(pair)));
  const undecided = await read([...rest, ...others], { expected: rest, others });
  return [...decided, ...undecided]
    .map(({ freshness }) => ({ ...freshness, hasBeenAsked: asked.has(pairName(freshness)) }))
    .sort((a, b) => (pairName(a) < pairName(b) ? -1 : 1));
}

/** Was nothing ever loaded, imported or answered in vain? */
export function isUnused(sets: readonly Pick<Freshness, 'hasBeenAsked'>[]): boolean {
  return sets.every(({ hasBeenAsked }) => !hasBeenAsked);
}

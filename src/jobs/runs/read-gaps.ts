import type { Day, DayRange } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { groupBy, lastItem } from '../../core/iterables.ts';
import type { DataSet } from '../../declaration/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import {
  type CompletenessScope,
  type GapReason,
  listExpectedPairs,
  readCompleteness,
  readRequestedNames,
  type TradingDayState,
} from '../../state/coverage/completeness.ts';
import type { RunRequest, Target } from '../../state/request.ts';
import { readObservedTradingDays, type TradingDayRow } from '../../state/sessions.ts';
import { listFilteredRequests } from '../../state/windows/read-windows.ts';
import type { Context } from '../context.ts';
import { syncTradingDays, unknownYears } from '../responses/sync-sessions.ts';

/** Consecutive trading days that are missing for the same reason. */
export interface Gap extends Pair, DayRange {
  readonly sessions: number;
  readonly reason: GapReason;
  /** The source's line or the error of the newest of them, or null. */
  readonly detail: string | null;
}

export interface Gaps {
  /** First and last trading day of the report; null if there is none. */
  readonly from: Day | null;
  readonly to: Day | null;
  readonly gaps: readonly Gap[];
  /** Number of missing trading days in all gaps. */
  readonly total: number;
  /** False if the range has no trading day, so that nothing can be missing. */
  readonly hasTradingDay: boolean;
  /** The first and last trading day of each data set, which is not compared outside of them. */
  readonly ranges: readonly (Pair & DayRange)[];
  /** Trading days whose data cannot be expected yet; they are not gaps. */
  readonly pending: readonly Gap[];
  /** Trading days of the range that no calendar file lists, known because there is data for them. */
  readonly observed: readonly Pick<TradingDayRow, 'exchange' | 'day'>[];
  /** Years without calendar data, e.g. `NSE 2013 to 2014`: Monday to Friday was assumed. */
  readonly unknownYears: readonly string[];
}

/** What to report on; by default everything that is scheduled or was ever loaded. */
export interface GapScope {
  readonly operations?: readonly DataSet[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
}

/** Reads every trading day that should be loaded and is not, with the reason. */
export async function readGaps(context: Context, scope: GapScope): Promise<Gaps> {
  await syncTradingDays(context, scope.from);
  const names = scope.operations?.map((operation) => operation.name);
  const isNamed = ({ operation, exchange }: Pair) =>
    (names?.includes(operation) ?? true) && (scope.exchanges?.includes(exchange) ?? true);
  const expected = await readCompleteness(context, await completenessScope(context, scope, isNamed));
  const tradingDays = await nameFilters(context, expected.filter(isNamed));
  const due = tradingDays.filter(({ state }) => state !== 'pending');
  const ordered = due.map(({ day }) => day).sort();
  const from = scope.from ?? ordered[0] ?? null;
  const to = scope.to ?? ordered.at(-1) ?? null;
  const gaps = groupGaps(tradingDays, 'missing');
  const exchanges = [...new Set(tradingDays.map(({ exchange }) => exchange))];
  const inRange = (day: Day) => from !== null && to !== null && from <= day && day <= to;
  return {
    from,
    to,
    gaps,
    total: gaps.reduce((sum, gap) => sum + gap.sessions, 0),
    hasTradingDay:
      from === null ||
      to === null ||
      (scope.exchanges ?? context.config.EOD_EXCHANGES).some(
        (exchange) => context.calendar.tradingDays(exchange, from, to).length > 0,
      ),
    ranges: [...groupBy(due, pairName).values()].map((ofPair) => {
      const [{ operation, exchange, day }] = ofPair;
      return { operation, exchange, from: day, to: lastItem(ofPair).day };
    }),
    pending: groupGaps(tradingDays, 'pending'),
    observed: (await readObservedTradingDays(context.db.drizzle))
      .filter(({ exchange, day }) => inRange(day) && exchanges.includes(exchange))
      .map(({ exchange, day }) => ({ exchange, day })),
    unknownYears:
      from === null || to === null
        ? []
        : unknownYears(
            context.calendar,
            exchanges.map((exchange) => ({ exchange, from, to })),
          ),
  };
}

/** Says of trading days without coverage that they were requested with a filter, if they were. */
async function nameFilters(
  { db }: Context,
  tradingDays: readonly TradingDayState[],
): Promise<TradingDayState[]> {
  if (tradingDays.every(({ reason }) => reason !== 'not_requested')) return [...tradingDays];
  const filtered = groupBy(await listFilteredRequests(db.drizzle), pairName);
  return tradingDays.map((tradingDay) => {
    const { reason, day } = tradingDay;
    const isFiltered = filtered.get(pairName(tradingDay))?.some(({ from, to }) => from <= day && day <= to);
    return reason === 'not_requested' && isFiltered === true
      ? { ...tradingDay, detail: 'requested with a filter' }
      : tradingDay;
  });
}

async function completenessScope(
  context: Context,
  { operations, exchanges, from, to }: GapScope,
  isNamed: (pair: Pair) => boolean,
): Promise<CompletenessScope> {
  const all = { expected: 'scheduled' as const, others: true };
  if (operations === undefined) return { ...all, from, to };
  const known = (await listExpectedPairs(context, all)).filter(isNamed);
  const requested = await readRequestedNames(context.db.drizzle);
  const isEachRequested = operations.every(({ name }) => requested.has(name));
  // What is known of these pairs has the same range whether an exchange is named or not.
  if (known.length > 0 && to === undefined) return { ...all, from, to };
  if (exchanges === undefined && isEachRequested) return { ...all, from, to };
  // Of what files alone fill, a day that is named is missing also if it is after the last one.
  if (exchanges === undefined || !isEachRequested) return { expected: known, others: false, from, to };
  // The user names both: all combinations are expected, whether they are scheduled or not.
  const expected = operations.flatMap(({ name }) =>
    exchanges.map((exchange) => ({ operation: name, exchange })),
  );
  return { expected, others: false, from, to };
}

/** Joins trading days of one state to gaps: consecutive ones of one operation, exchange and reason (pure). */
export function groupGaps(
  tradingDays: readonly TradingDayState[],
  state: Exclude<TradingDayState['state'], 'complete'>,
): Gap[] {
  const gaps: Gap[] = [];
  let open = false;
  for (const tradingDay of tradingDays) {
    const { operation, exchange, day, reason, detail } = tradingDay;
    if (tradingDay.state !== state || reason === null) {
      open = false;
      continue;
    }
    const last = gaps.at(-1);
    const continues =
      open &&
      last !== undefined &&
      last.operation === operation &&
      last.exchange === exchange &&
      last.reason === reason &&
      (reason !== 'not_requested' || last.detail === detail);
    if (continues) {
      gaps[gaps.length - 1] = {
        ...last,
        to: day,
        sessions: last.sessions + 1,
        detail: detail ?? last.detail,
      };
    } else {
      gaps.push({ operation, exchange, from: day, to: day, sessions: 1, reason, detail });
    }
    open = true;
  }
  return gaps;
}

/**
 * The request that requests exactly these gaps (pure). The gaps of an operation and exchange become one target, so that
 * one call may get several of them: trading days between them are complete and are not requested. Where instruments are
 * requested one by one, each gap is a target of its own, because between gaps some instruments may be missing.
 */
export function gapRequest(gaps: readonly Gap[]): RunRequest {
  const targets = new Map<string, Target>();
  gaps.forEach((gap, index) => {
    const { operation, exchange, from, to } = gap;
    const isSeparate = operationNamed(operation).windows.per === 'instrument';
    const key = `${operation} ${exchange} ${isSeparate ? index : ''}`;
    const before = targets.get(key);
    targets.set(key, { operation, exchange, from: before?.from ?? from, to, refetchFrom: null });
  });
  return { kind: 'gap_fill', targets: [...targets.values()], instruments: [], options: {}, live: false };
}

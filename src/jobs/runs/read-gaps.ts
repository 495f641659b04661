import type { Day } from '../../core/days.ts';
import {
  type CompletenessScope,
  type GapReason,
  type Pair,
  readCompleteness,
  type SessionState,
  scheduledPairs,
} from '../../load/state/completeness.ts';
import type { RunRequest, Target } from '../../load/state/run-request.ts';
import { readObservedSessions, type SessionRow } from '../../load/state/sessions.ts';
import type { Operation } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { syncSessions, unknownYears } from './sync-sessions.ts';

/** Sessions in a row that are not there for the same reason. */
export interface Gap extends Pair {
  readonly from: Day;
  readonly to: Day;
  readonly sessions: number;
  readonly reason: GapReason;
  /** What the source or the failure said of the newest of them, or null. */
  readonly detail: string | null;
}

export interface Gaps {
  /** First and last session looked at; null where there is none. */
  readonly from: Day | null;
  readonly to: Day | null;
  readonly gaps: readonly Gap[];
  /** Sessions missing, over all gaps. */
  readonly total: number;
  /** Sessions it is too early for: no gaps. */
  readonly pending: readonly Gap[];
  /** Sessions of the range that no calendar file lists: data came for them. */
  readonly observed: readonly Pick<SessionRow, 'exchange' | 'day'>[];
  /** `<exchange> <year>` without calendar data: Monday to Friday was assumed. */
  readonly unknownYears: readonly string[];
}

/** What to look at; everything scheduled and everything ever loaded when nothing is named. */
export interface GapScope {
  readonly operations?: readonly Operation[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
}

/** Every session that should be there and is not, and why. */
export async function readGaps(context: Context, scope: GapScope): Promise<Gaps> {
  await syncSessions(context, scope.from);
  const names = scope.operations?.map((operation) => operation.name);
  const sessions = (await readCompleteness(context, completenessScope(context, scope))).filter(
    ({ operation, exchange }) =>
      (names?.includes(operation) ?? true) && (scope.exchanges?.includes(exchange) ?? true),
  );
  const days = sessions.filter(({ state }) => state !== 'pending').map(({ day }) => day);
  const ordered = days.sort();
  const from = scope.from ?? ordered[0] ?? null;
  const to = scope.to ?? ordered.at(-1) ?? null;
  const gaps = groupGaps(sessions, 'missing');
  const exchanges = [...new Set(sessions.map(({ exchange }) => exchange))];
  const inRange = (day: Day) => from !== null && to !== null && from <= day && day <= to;
  return {
    from,
    to,
    gaps,
    total: gaps.reduce((sum, gap) => sum + gap.sessions, 0),
    pending: groupGaps(sessions, 'pending'),
    observed: (await readObservedSessions(context.db.drizzle))
      .filter(({ exchange, day }) => inRange(day) && exchanges.includes(exchange))
      .map(({ exchange, day }) => ({ exchange, day })),
    unknownYears: from === null || to === null ? [] : unknownYears(context, exchanges, { from, to }),
  };
}

function completenessScope({ config }: Context, scope: GapScope): CompletenessScope {
  const { operations, exchanges, from, to } = scope;
  if (operations === undefined || exchanges === undefined)
    return { expected: scheduledPairs(config), others: true, from, to };
  // Both named by hand: expected together, scheduled or not.
  const expected = operations.flatMap(({ name }) =>
    exchanges.map((exchange) => ({ operation: name, exchange })),
  );
  return { expected, others: false, from, to };
}

/** Sessions of one state in ranges: neighbours of one operation and exchange with one reason (pure). */
export function groupGaps(
  sessions: readonly SessionState[],
  state: Exclude<SessionState['state'], 'complete'>,
): Gap[] {
  const gaps: Gap[] = [];
  let open = false;
  for (const session of sessions) {
    const { operation, exchange, day, reason, detail } = session;
    if (session.state !== state || reason === null) {
      open = false;
      continue;
    }
    const last = gaps.at(-1);
    const goesOn =
      open &&
      last !== undefined &&
      last.operation === operation &&
      last.exchange === exchange &&
      last.reason === reason;
    if (goesOn) {
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
 * The run that asks for exactly these gaps (pure). Whole sessions of an operation are one target,
 * so that one call may cover several gaps: what lies between is complete and is not asked for.
 * Where instruments are asked one by one each gap is its own: sessions between them count as there,
 * though some instrument may be missing.
 */
export function gapRequest(gaps: readonly Gap[]): RunRequest {
  const targets = new Map<string, Target>();
  gaps.forEach((gap, place) => {
    const { operation, exchange, from, to } = gap;
    const apart = operationNamed(operation).windows.per === 'instrument';
    const key = `${operation} ${exchange} ${apart ? place : ''}`;
    const before = targets.get(key);
    targets.set(key, { operation, exchange, from: before?.from ?? from, to, refetchFrom: null });
  });
  return { kind: 'gap_fill', targets: [...targets.values()], instruments: [], options: {}, live: false };
}

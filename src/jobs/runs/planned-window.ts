import { type Day, type DayRange, eachDay } from '../../core/days.ts';
import { messageOf } from '../../core/errors.ts';
import { CANNOT_BE_PLANNED } from '../../core/wording.ts';
import { MOST_ROW_REQUESTS, type RowRequests, rowVariant } from '../../load/market/row-requests.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import {
  furtherParam,
  furtherParams,
  MAX_INSTRUMENTS_PER_CALL,
  type Operation,
} from '../../operations/operation.ts';
import { spanLimits, spanOf } from '../../operations/spans.ts';
import type { Covered } from './covered.ts';

// What every way of planning windows shares: what it depends on, and how a window is made of it.

export interface PlanInput extends DayRange {
  readonly operation: Operation;
  readonly exchange: string;
  /** Sessions of the exchange from `from` to `to`. */
  readonly sessions: readonly Day[];
  /** Instruments to request; empty: the whole exchange, if the operation can do that. */
  readonly instruments: readonly string[];
  /** True if there are instruments that other nights of the week request. */
  readonly hasOtherNights?: boolean;
  /** Request options that the user has set, by the source's parameter name. */
  readonly options: Readonly<Record<string, string>>;
  /** What is already covered and need not be requested, by `requestKey`. */
  readonly covered: ReadonlyMap<string, Covered>;
  /** From this day on, what is covered is requested again. */
  readonly refetchFrom: Day | null;
  readonly today: Day;
  /** The only day that the source serves (EOD_TRIAL_DAY); undefined: it serves any. */
  readonly trialDay?: Day | undefined;
  /** True for today's nightly run. */
  readonly live: boolean;
  /** Longest range of a window in days; by default that of the operation. */
  readonly windowDays?: number | undefined;
  /** Values of parts that the operation does not declare, and that stored rows have. */
  readonly seenParts?: readonly string[];
  /** What the stored rows of another operation leave to be requested, if this one is about them. */
  readonly rows?: RowRequests | undefined;
  /** Why its declaration cannot be planned; null if it can. */
  readonly problem?: string | null;
}

/** Says that a function of a declaration failed, which must not keep the other operations from being planned. */
export const declarationProblem = (error: unknown): string => `${CANNOT_BE_PLANNED}: ${messageOf(error)}`;

export const COVERED = 'loaded already';

/** Divides symbols into those of one call each: up to 25, a single one, or none for the whole exchange. */
export function instrumentBatches(operation: Operation, instruments: readonly string[]): string[][] {
  const size = { none: 0, one: 1, many: MAX_INSTRUMENTS_PER_CALL }[operation.request.instruments];
  if (size === 0 || instruments.length === 0) return [[]];
  const batches: string[][] = [];
  for (let at = 0; at < instruments.length; at += size) batches.push(instruments.slice(at, at + size));
  return batches;
}

/** The options that the operation declares; the others belong to other operations of the run. */
export function ownOptions(input: Pick<PlanInput, 'operation' | 'options'>): Record<string, string> {
  return { ...declaredOptions(input), ...furtherOptions(input) };
}

export function declaredOptions({
  operation,
  options,
}: Pick<PlanInput, 'operation' | 'options'>): Record<string, string> {
  const declared = new Set(operation.request.options.map((option) => option.param));
  return Object.fromEntries(Object.entries(options).filter(([param]) => declared.has(param)));
}

/** The options that no operation declares: they are sent as they are. */
export function furtherOptions({ options }: Pick<PlanInput, 'options'>): Record<string, string> {
  return Object.fromEntries(furtherParams(options).map(([name, value]) => [furtherParam(name), value]));
}

/** True if options narrow the responses. It is not known what those do that no operation declares. */
function isFiltered({ operation, options }: PlanInput): boolean {
  return (
    furtherParams(options).length > 0 ||
    operation.request.options.some(
      (option) =>
        option.isFilter && options[option.param] !== undefined && options[option.param] !== option.fallback,
    )
  );
}

/** The fields that all windows of a target share. */
export function sharedFields(input: PlanInput): Pick<PlannedWindow, 'operation' | 'exchange' | 'filtered'> {
  return { operation: input.operation.name, exchange: input.exchange, filtered: isFiltered(input) };
}

/** A range that one call requests, or that is skipped; it may be the same for many instruments. */
export type PlannedRange = Pick<PlannedWindow, 'from' | 'to' | 'params' | 'variant' | 'state' | 'reason'>;

/** Copies field by field, which is several times faster than spreading: there may be millions of windows. */
export function windowOf(
  { operation, exchange, filtered }: ReturnType<typeof sharedFields>,
  { from, to, params, variant, state, reason }: PlannedRange,
  instruments: readonly string[],
): PlannedWindow {
  return { operation, exchange, from, to, instruments, params, variant, filtered, state, reason };
}

export const KNOWN = { state: 'skipped', reason: COVERED } as const;
export const REQUESTED = { state: 'pending', reason: null } as const;

/** The whole range as one window that needs no request. */
export function skipAll(input: PlanInput, reason: string): PlannedWindow {
  const { from, to } = input;
  const range = { from, to, params: ownOptions(input), variant: '', state: 'skipped', reason } as const;
  return windowOf(sharedFields(input), range, []);
}

/** The days of the range that a named span reaches from today. */
export function reachableDays(input: PlanInput): PlanInput {
  const { operation, today } = input;
  const reaches = (day: Day) => spanOf(operation, { from: day, to: day }, today) !== undefined;
  const days = eachDay(input.from, input.to).filter(reaches);
  return {
    ...input,
    from: days[0] ?? input.from,
    to: days.at(-1) ?? input.to,
    sessions: input.sessions.filter(reaches),
  };
}

/** One window for the days that no span reaches: nothing is requested. */
export function outOfReach(requested: PlanInput, { sessions }: PlanInput): PlannedWindow {
  const left = requested.sessions.filter((day) => !sessions.includes(day));
  const { name } = requested.operation;
  const range = { from: left[0] ?? requested.from, to: left.at(-1) ?? requested.to };
  return skipAll(
    { ...requested, ...range },
    `the source serves ${name} only for ${spanLimits(requested.operation)}`,
  );
}

/** True if one request can be for the whole range. */
export const isOneSpan = ({ operation, today }: PlanInput, range: DayRange) =>
  operation.request.dates !== 'spans' || spanOf(operation, range, today) !== undefined;

const NO_ROWS: RowRequests = { requests: [], more: false, hasRows: false };

/** One window for each request that the stored rows of another operation leave to be requested. */
export function* planRows(input: PlanInput): Generator<PlannedWindow> {
  const { windows, name } = input.operation;
  if (windows.per !== 'row') return;
  const { requests, more, hasRows, problem } = input.rows ?? NO_ROWS;
  if (problem !== undefined) {
    yield skipAll(input, problem);
    return;
  }
  if (!hasRows) {
    const whose = input.instruments.length === 0 ? '' : ' about these instruments';
    const reason = `it is about the rows of ${windows.of}, and none${whose} is stored for ${input.exchange}: load ${windows.of} first`;
    yield skipAll(input, reason);
    return;
  }
  if (requests.length === 0) {
    yield skipAll(input, COVERED);
    return;
  }
  const names = Object.keys(windows.params);
  // What a row gives is not a filter, even if the user has chosen among the rows by it.
  const others = Object.entries(ownOptions(input)).filter(([param]) => !names.includes(param));
  const options = Object.fromEntries(others);
  const shared = sharedFields({ ...input, options });
  for (const { instrument, values, day } of requests) {
    const own = Object.fromEntries(names.map((param, at) => [param, values[at] as string]));
    const variant = rowVariant(values);
    yield windowOf(shared, { from: day, to: day, params: { ...options, ...own }, variant, ...REQUESTED }, [
      instrument,
    ]);
  }
  if (more) {
    yield skipAll(
      input,
      `a run makes at most ${MOST_ROW_REQUESTS} requests of ${name}: the next one requests the others`,
    );
  }
}

import type { Reach } from '../../core/clock.ts';
import { commonDays, type Day, type DayRange } from '../../core/days.ts';
import {
  furtherParam,
  furtherParams,
  MAX_INSTRUMENTS_PER_CALL,
  type Operation,
} from '../../declaration/operation.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import { type Covered, requestKey } from './covered.ts';

// What every way of planning windows shares: what it depends on, and how a window is made of it.

export interface PlanInput extends DayRange {
  readonly operation: Operation;
  readonly exchange: string;
  /** Trading days of the exchange from `from` to `to`. */
  readonly tradingDays: readonly Day[];
  /** Instruments to request; empty: the whole exchange, if the operation can do that. */
  readonly instruments: readonly string[];
  /** Request options that the user has set, by the source's parameter name. */
  readonly options: Readonly<Record<string, string>>;
  /** What is already covered and need not be requested, by `requestKey`. */
  readonly covered: ReadonlyMap<string, Covered>;
  /** From this day on, what is covered is requested again. */
  readonly refetchFrom: Day | null;
  readonly today: Day;
  /** The only days that can be requested; undefined: any. */
  readonly reach?: Reach | undefined;
  /** True for today's nightly run. */
  readonly live: boolean;
  /** Longest range of a window in days; by default that of the operation. */
  readonly windowDays?: number | undefined;
  /** Values of parts that the operation does not declare, and that stored rows have. */
  readonly seenParts?: readonly string[];
}

/**
 * Plans the windows of one kind.
 *
 * @param repeated the requests that several targets make, by `nameRequest`: each keeps a window of its own.
 */
export type Planner = (input: PlanInput, repeated: ReadonlySet<string>) => Iterable<PlannedWindow>;

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
export function buildWindow(
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
  return buildWindow(sharedFields(input), range, []);
}

/** The key of a request; an operation without variants has one key for all of its requests about an exchange. */
export const nameRequest = ({
  operation,
  exchange,
  variant,
  from,
  to,
}: Pick<PlannedWindow, 'operation' | 'exchange' | 'variant' | 'from' | 'to'>) =>
  variant === '' ? `${exchange}|${operation}` : `${exchange}|${variant}|${from}|${to}`;

/** The instruments for which a request about a day is covered; undefined: none, or the request is requested again. */
export function coveredFor(
  { covered, refetchFrom }: PlanInput,
  day: Day,
  variant: string,
): Covered | undefined {
  return refetchFrom === null || day < refetchFrom ? covered.get(requestKey(day, variant)) : undefined;
}

/** True if some requests are covered for only some instruments. If not, all instruments have the same windows. */
export const instrumentsDiffer = (extents: Iterable<Covered | undefined>) =>
  [...extents].some((extent) => extent !== undefined && extent !== 'all');

export function noTradingDay(input: PlanInput): PlannedWindow {
  const { reach, exchange } = input;
  const isOutOfReach = reach !== undefined && commonDays(input, reach) === null;
  return skipAll(input, isOutOfReach ? reach.reason : `${exchange} had no trading day in this range`);
}

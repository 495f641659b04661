import { type Day, daysBetween } from '../../core/days.ts';
import { isByInstrument, type Operation, type ScheduleValue } from '../../operations/operation.ts';

// The order in which the calls of nights are made (pure). BullMQ gives workers the job with the lowest priority number
// first, and of equal ones the job that was added first, so that the whole order is one number.

/** What windows are worth, the most first. */
const VALUES: readonly ScheduleValue[] = ['prices', 'lists', 'details'];

/** How new the days of a window are, the newest first: the night's own, those of the lookback, and older gaps. */
const RECENCIES = ['newest', 'lookback', 'older'] as const;
export type Recency = (typeof RECENCIES)[number];

/** What the order depends on. */
export interface Turn {
  readonly value: ScheduleValue;
  readonly recency: Recency;
  /** When what it is about was last requested; null: never, as far as is known. */
  readonly requestedOn: Day | null;
}

/** The priorities of one class lie between two multiples of this. */
const CLASS_SIZE = 2 ** 16;

/** Days are counted from here, so that those of 179 years fit into a class. */
const FIRST_DAY = '2000-01-01';

/** The class of a turn: whatever is in a lower one comes first, however long anything else has waited. */
export function classOf({ value, recency }: Pick<Turn, 'value' | 'recency'>): number {
  return VALUES.indexOf(value) * RECENCIES.length + RECENCIES.indexOf(recency);
}

/** True if details of single instruments have this class. */
export const isDetailClass = (found: number): boolean =>
  found >= VALUES.indexOf('details') * RECENCIES.length;

/**
 * The priority of a window of a night: first by value, then newer days before older ones, then what was requested
 * longest ago or never. Above all windows that go before the order (`PRIORITY`), and at most 2^21 - 1, which is
 * BullMQ's limit.
 */
export function nightPriority(turn: Turn): number {
  const age = turn.requestedOn === null ? 0 : 1 + daysBetween(FIRST_DAY, turn.requestedOn);
  return (1 + classOf(turn)) * CLASS_SIZE + Math.min(CLASS_SIZE - 1, Math.max(0, age));
}

/** What an operation's windows are worth: what it declares, or else details if it is about instruments. */
export function worthOf(operation: Pick<Operation, 'schedule' | 'windows'>): ScheduleValue {
  return operation.schedule.value ?? (isByInstrument(operation) ? 'details' : 'lists');
}

/**
 * How new the days of a window are.
 *
 * @param sessions the last sessions up to the night's day: its own and those of the lookback, in their order.
 */
export function recencyOf(
  { windows }: Pick<Operation, 'windows'>,
  to: Day,
  sessions: readonly Day[],
): Recency {
  if (windows.per === 'once' || isUndated(windows)) return 'newest';
  const [first = to] = sessions;
  if (to >= (sessions.at(-1) ?? to)) return 'newest';
  return to >= first ? 'lookback' : 'older';
}

/** True if its requests are about no session. Those about quarters are about the last one, which ended weeks ago. */
const isUndated = (windows: Operation['windows']) =>
  windows.per === 'instrument' && windows.days !== 'sessions';

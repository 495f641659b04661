import type { Day, DayRange } from '../core/days.ts';
import type { Exchange } from '../core/exchanges.ts';
import type { Operation } from '../declaration/operation.ts';

/** A request that passed every check. */
export interface CheckedRequest {
  readonly operation: Operation;
  readonly exchange: Exchange;
  /** The requested range of days; null if the request has none. */
  readonly range: DayRange | null;
  /** The requested day, of an operation that takes a single one; null if the request has none. */
  readonly day: Day | null;
  readonly instruments: readonly string[];
  /** Further parameters of the operation, as sent. */
  readonly options: Readonly<Record<string, string>>;
  readonly format: 'Json' | 'Xml' | 'Csv' | 'CsvContent';
}

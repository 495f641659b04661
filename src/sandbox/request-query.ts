import type { Day, DayRange } from '../core/days.ts';
import type { Exchange } from '../core/exchanges.ts';
import type { Operation } from '../declaration/operation.ts';

/** A request that passed every check. */
export interface Query {
  readonly operation: Operation;
  readonly exchange: Exchange;
  /** The requested range of days; null if the request has none. */
  readonly range: DayRange | null;
  /** The requested single day. */
  readonly day: Day | null;
  readonly instruments: readonly string[];
  /** Further parameters of the operation, as sent. */
  readonly options: Readonly<Record<string, string>>;
  readonly format: 'Json' | 'Xml' | 'Csv' | 'CsvContent';
}

/** A problem to which the service responds with a line of plain text and status 200. */
export class Diagnostic extends Error {
  constructor(line: string) {
    super(line);
    this.name = 'Diagnostic';
  }
}

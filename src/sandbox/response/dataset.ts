import type { Market } from '../market/market.ts';
import type { Query } from '../request-query.ts';
import type { SourceRecord } from './record.ts';

/** Records of one form: their table, and how they are made. */
export interface DataSet {
  /** Name of the table whose fields the records have. */
  readonly table: string;
  /** Whether the response is a single object without an envelope, as for ratios. */
  readonly bare?: boolean;
  /**
   * True if it is in the form of the published sample where that is not the declared one, which then is the other
   * reading.
   */
  readonly published?: boolean;
  records(market: Market, query: Query): SourceRecord[] | Promise<SourceRecord[]>;
}

/** The two forms of an operation's records: that of its documented sample, and the declared one if it differs. */
export interface OperationDataSets {
  readonly sample: DataSet;
  readonly declared?: DataSet;
}

/** Paise as rupees. */
export const rupees = (paise: number) => paise / 100;

/** Two decimals, as the exchanges round. */
export const round2 = (value: number) => Math.round(value * 100) / 100;

/** The published sessions in the requested range. */
export function sessionsOf(market: Market, query: Query): string[] {
  return query.range === null ? [] : market.sessions(query.exchange, query.range.from, query.range.to);
}

import type { SourceRecord } from '../answer/record.ts';
import type { Market } from '../market/market.ts';
import type { Query } from '../query.ts';

/** Records of one shape: the table they belong to and how they are made. */
export interface DataSet {
  /** Name of the table whose fields the records carry. */
  readonly table: string;
  /** The answer is one object without an envelope, as ratios are. */
  readonly bare?: boolean;
  records(market: Market, query: Query): SourceRecord[] | Promise<SourceRecord[]>;
}

/** The two shapes of an operation's records: that of its sample, and the declared one where it differs. */
export interface OperationDataSets {
  readonly sample: DataSet;
  readonly declared?: DataSet;
}

/** Paise as rupees. */
export const rupees = (paise: number) => paise / 100;

/** Two decimals, as the exchanges round. */
export const round2 = (value: number) => Math.round(value * 100) / 100;

/** Published sessions of the range asked for. */
export function sessionsOf(market: Market, query: Query): string[] {
  return query.range === null ? [] : market.sessions(query.exchange, query.range.from, query.range.to);
}

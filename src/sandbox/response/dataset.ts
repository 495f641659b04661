import type { ResponseField } from '../../declaration/fields.ts';
import type { CheckedRequest } from '../checked-request.ts';
import type { Market } from '../market/market.ts';
import type { SourceRecord } from './record.ts';

/** What an operation responds with: records of a table. */
export interface DataSet {
  /** Name of the table whose fields the records have. */
  readonly table: string;
  /** Whether the response is a single object without an envelope, as for ratios. */
  readonly bare?: boolean;
  /** Fields that responses name or write in another way than declared, by their declared names. */
  readonly written?: Readonly<Record<string, Partial<Pick<ResponseField, 'source' | 'kind'>>>>;
  /** By the declared names. */
  records(market: Market, request: CheckedRequest): SourceRecord[];
}

/** Paise as rupees. */
export const rupees = (paise: number) => paise / 100;

/** Two decimals, as the exchanges round. */
export const round2 = (value: number) => Math.round(value * 100) / 100;

/** The published trading days in the requested range. */
export function listTradingDays(market: Market, request: CheckedRequest): string[] {
  return request.range === null
    ? []
    : market.tradingDays(request.exchange, request.range.from, request.range.to);
}

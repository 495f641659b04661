import { type ClientBase, escapeIdentifier, type Pool } from 'pg';
import type { DayRange } from '../core/days.ts';
import type { TableDefinition } from '../declaration/table.ts';

// What planning, imports, replays and pages look up in `market`.

/** The symbols with the largest turnover in the newest bhav copy of an exchange until a day, the largest first. */
export async function largestSymbols(
  pool: Pool,
  exchange: string,
  limit: number,
  until = 'infinity',
): Promise<string[]> {
  const result = await pool.query<{ symbol: string }>(
    `select symbol from market.bhavcopy_cm
      where exchange = $1
        and trade_date = (select max(trade_date) from market.bhavcopy_cm where exchange = $1 and trade_date <= $3)
      group by symbol order by sum(turnover) desc nulls last, symbol limit $2`,
    [exchange, limit, until],
  );
  return result.rows.map((row) => row.symbol);
}

/**
 * The symbols that names have in the newest stored bhav copy of an exchange, whose upper and lower case may differ, by
 * name. A symbol that is spelled like the name comes before others.
 */
export async function symbolsOfNames(
  pool: Pool,
  exchange: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const result = await pool.query<{ name: string; symbol: string }>(
    `select distinct on (name) name, symbol from unnest($2::text[]) name join market.bhavcopy_cm on upper(symbol) = upper(name)
      where exchange = $1
        and trade_date = (select max(trade_date) from market.bhavcopy_cm where exchange = $1)
      order by name, symbol = name desc, symbol`,
    [exchange, names],
  );
  return new Map(result.rows.map(({ name, symbol }) => [name, symbol]));
}

/** The different values that the stored rows of an exchange have in a column. */
export async function storedValues(
  pool: Pool,
  { name, column, exchange }: { readonly name: string; readonly column: string; readonly exchange: string },
): Promise<string[]> {
  const result = await pool.query<{ value: string }>(
    `select distinct ${escapeIdentifier(column)} as value from market.${escapeIdentifier(name)}
      where exchange = $1 and ${escapeIdentifier(column)} is not null order by 1`,
    [exchange],
  );
  return result.rows.map(({ value }) => value);
}

/** A trading day of a share with its close as printed and as adjusted for later events. */
interface AdjustedClose {
  readonly day: string;
  readonly printed: number;
  readonly adjusted: number;
}

/** The trading days of a share on an exchange, the oldest first, in the series in which it was traded most. */
export async function adjustedCloses(
  pool: Pool,
  { exchange, symbol, from, to }: DayRange & { readonly exchange: string; readonly symbol: string },
): Promise<AdjustedClose[]> {
  const { rows } = await pool.query<AdjustedClose>(
    `select distinct on (trade_date) to_char(trade_date, 'YYYY-MM-DD') as day,
            unadjusted_close_price::float8 as printed, close_price::float8 as adjusted
       from market.prices_adjusted
      where exchange = $1 and symbol = $2 and trade_date between $3 and $4 and close_price is not null
      order by trade_date, traded_quantity desc nulls last`,
    [exchange, symbol, from, to],
  );
  return rows;
}

/** The first and last stored day on which a scrip code had a ticker. */
export interface TickerPeriod extends DayRange {
  readonly symbol: string;
}

/** Tickers by scrip code. */
export type Tickers = ReadonlyMap<string, readonly TickerPeriod[]>;

/** The tickers under which rows of BSE's scrip codes are stored, without rows that have the code itself as symbol. */
export async function readTickers(pool: Pool): Promise<Tickers> {
  const result = await pool.query<TickerPeriod & { code: string }>(
    `select exchange_instrument_id::text as code, symbol, to_char(min(trade_date), 'YYYY-MM-DD') as "from",
       to_char(max(trade_date), 'YYYY-MM-DD') as "to"
     from market.bhavcopy_cm where exchange = 'BSE' and exchange_instrument_id is not null and symbol <> exchange_instrument_id::text
     group by 1, 2 order by 1, 2`,
  );
  const tickers = new Map<string, TickerPeriod[]>();
  for (const { code, ...period } of result.rows) {
    const periods = tickers.get(code);
    if (periods === undefined) tickers.set(code, [period]);
    else periods.push(period);
  }
  return tickers;
}

/** BSE's symbols that are stored for a day, by scrip code. */
export async function readSymbolsOfDay(pool: Pool, day: string): Promise<ReadonlyMap<string, string>> {
  const result = await pool.query<{ code: string; symbol: string }>(
    `select exchange_instrument_id::text as code, min(symbol) as symbol from market.bhavcopy_cm
      where exchange = 'BSE' and trade_date = $1 and exchange_instrument_id is not null group by 1`,
    [day],
  );
  return new Map(result.rows.map(({ code, symbol }) => [code, symbol]));
}

/**
 * True if a table of `market` has no row of an exchange, and its history has a revision that was replaced, but not the
 * one that replaced it: somebody has deleted the rows.
 */
export async function isEmptied(
  client: Pick<ClientBase, 'query'>,
  { name, key }: TableDefinition,
  exchange: string,
): Promise<boolean> {
  const same = key.map((column) => `n."${column}" = h."${column}"`).join(' and ');
  const result = await client.query(
    `select where not exists (select from market."${name}" where exchange = $1)
        and exists (select from market_history."${name}" h where exchange = $1 and not withdrawn and not exists (
          select from market_history."${name}" n where ${same} and n.revision > h.revision))`,
    [exchange],
  );
  return (result.rowCount ?? 0) > 0;
}

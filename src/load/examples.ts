import type { Pool } from 'pg';

type Cell = string | number | null;
type Row = Readonly<Record<string, Cell>>;

interface Example {
  readonly title: string;
  readonly sql: string;
}

/** First queries for somebody who has just loaded a week. */
export const EXAMPLES: readonly Example[] = [
  {
    title: 'The five most traded shares of the last trading day on NSE',
    sql: `select symbol, series, close_price, traded_quantity, round(turnover / 1e7, 2) as turnover_crore
  from market.bhavcopy_cm
 where exchange = 'NSE' and trade_date = (select max(trade_date) from market.bhavcopy_cm where exchange = 'NSE')
 order by turnover desc limit 5;`,
  },
  {
    title: 'Who moved most over these trading days, on either exchange; adjusted for splits',
    sql: `with week as (
  select exchange, symbol, series, (array_agg(close_price order by trade_date))[1] as first,
         (array_agg(close_price order by trade_date desc))[1] as last
    from market.prices_adjusted where trade_date > current_date - 10
   group by exchange, symbol, series)
select exchange, symbol, series, round(first, 2) as first, last, round(100 * (last / first - 1), 2) as move_percent
  from week where first > 0
 order by abs(last / first - 1) desc limit 5;`,
  },
  {
    title: "The last trading day's top gainers on BSE, with their prices",
    sql: `select g.rank, b.symbol, g.close_price, g.change_percent, b.traded_quantity, b.trade_count
  from market.top_gainers_losers g
  join market.bhavcopy_cm b on b.exchange = g.exchange and b.trade_date = g.trade_date
                           and b.exchange_instrument_id = g.scrip_code
 where not g.is_loser and g.trade_date = (select max(trade_date) from market.top_gainers_losers)
 order by g.rank;`,
  },
];

/** One-line statements for the help. */
export const SHORT_EXAMPLES = {
  few: 'select * from market.instruments limit 5',
  many: 'select * from market.prices_adjusted',
};

/** An example with its result. */
export interface ExampleResult extends Example {
  readonly rows: readonly Row[];
}

/** Runs the examples. @returns each with its rows. */
export async function runExamples(pool: Pool): Promise<ExampleResult[]> {
  const results: ExampleResult[] = [];
  for (const example of EXAMPLES) {
    const { rows } = await pool.query<Row>(example.sql);
    results.push({ ...example, rows: rows.map(withNumbers) });
  }
  return results;
}

/** node-postgres returns numeric and bigint as text; as numbers they are precise enough to be shown. */
function withNumbers(row: Row): Row {
  const entries = Object.entries(row).map(([name, value]): [string, Cell] => [
    name,
    typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value,
  ]);
  return Object.fromEntries(entries);
}

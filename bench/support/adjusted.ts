import { EXCHANGES } from '../../src/core/exchanges.ts';
import { updateEventSessions, updateHitBands, updatePriceFactors } from '../../src/load/price-tables.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { ALL_DAYS } from '../../src/state/derived.ts';
import { check, type Figures, type Site } from './bench.ts';
import { median } from './figures.ts';
import { explainAnalyze, withClient } from './postgres.ts';

/** Every third share has a split and a bonus somewhere in the trading days, every second a dividend a year. */
const EVENTS = `
  insert into market.corporate_events (exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, amount, status,
                                       first_loaded_at, last_changed_at, revision, run_id, load_id)
  select a.exchange, a.symbol, $1::date + 1 + e.day % ($2::date - $1::date), e.kind, coalesce(e.amount::text, ''), a.instrument_id,
         e.ratio_new, e.ratio_old, e.amount, 'applied', now(), now(), 1, 1, 1
    from (select *, (row_number() over (order by exchange, symbol))::int as nr from market.series_aliases) a
   cross join lateral (
     select a.nr * 37 as day, 'split' as kind, 5 as ratio_new, 1 as ratio_old, null::numeric as amount where a.nr % 3 = 0
     union all select a.nr * 53, 'bonus', 3, 2, null where a.nr % 3 = 0
     union all select a.nr * 17 % 300 + year * 365, 'dividend', null, null, 1 + a.nr % 9
       from generate_series(0, ($2::date - $1::date) / 365 - 1) as year where a.nr % 2 = 0) e
      on conflict do nothing`;

/** One row in thirty hit a price band. */
const HITS = `
  insert into market.circuit_breakers (exchange, trade_date, scrip_id, series, band, symbol, first_loaded_at, last_changed_at, revision, run_id, load_id)
  select exchange, trade_date, symbol, series, 'H', symbol, now(), now(), 1, 1, 1 from market.bhavcopy_cm where hashtext(symbol || trade_date) % 30 = 0
      on conflict do nothing`;

const SHARES = 9;

/**
 * What is queried from the views, by the figure of each query. $1: a symbol of NSE, $2: the first day, $3: the
 * last.
 */
const VIEWS = {
  pricesMs: `select * from market.prices where exchange = 'NSE' and symbol = $1 and trade_date between $2 and $3 order by trade_date`,
  pricesOfDayMs: `select * from market.prices where exchange = 'NSE' and trade_date = $3::date and $1::text <> '' and $2::date < $3`,
  candlesMs: `select * from market.candles('week', $3::date, $2::date) where exchange = 'NSE' and symbol = $1 order by period_start`,
  universeMs: `select * from market.universe_on($3::date, 'NSE') where $1::text <> '' and $2::date < $3`,
} as const;

/**
 * Queries of a whole market from the views, and the same from the table itself, which they are compared with. $1: the
 * first day of the last year, $2: the last day.
 */
export const WHOLE = {
  months: [
    `select date_trunc('month', trade_date), sum(turnover) from market.prices group by 1`,
    `select date_trunc('month', trade_date), sum(turnover) from market.bhavcopy_cm group by 1`,
  ],
  bands: [
    'select count(*) from market.prices where band_hit is not null',
    'select count(*) from market.bhavcopy_cm where session_id is not null',
  ],
  returns: [
    `select symbol, return_percent from market.prices where series = 'EQ' and trade_date between $1 and $2 order by return_percent desc nulls last limit 20`,
    `select symbol, round((close_price / nullif(previous_close_price, 0) - 1) * 100, 4) as r from market.bhavcopy_cm where series = 'EQ' and trade_date between $1 and $2 order by r desc nulls last limit 20`,
  ],
  averages: [
    `select max(a) from (select avg(close_price) over (partition by instrument_id order by trade_date rows 199 preceding) as a from market.prices_adjusted where series = 'EQ') x`,
    `select max(a) from (select avg(close_price) over (partition by symbol order by trade_date rows 199 preceding) as a from market.bhavcopy_cm where series = 'EQ') x`,
  ],
  closes: [
    'select sum(close_price) from market.prices_adjusted',
    'select sum(close_price) from market.bhavcopy_cm',
  ],
  highs: [
    'select symbol, max(high_price) from market.prices_adjusted where trade_date between $1 and $2 group by symbol',
    'select symbol, max(high_price) from market.bhavcopy_cm where trade_date between $1 and $2 group by symbol',
  ],
  asOf: [
    'select sum(close_price) from market.adjusted_prices($2::date) where trade_date >= $1',
    'select sum(close_price) from market.bhavcopy_cm where trade_date between $1 and $2',
  ],
} as const;

/** Of each query the milliseconds from the view and how many times those of the table; the second time counts. */
async function timeWhole(
  timeQuery: (sql: string, values: readonly unknown[]) => Promise<{ readonly ms: number }>,
  year: readonly unknown[],
): Promise<Record<string, number>> {
  const figures: Record<string, number> = {};
  for (const [name, [view, table]] of Object.entries(WHOLE)) {
    const timed = async (sql: string) => {
      const values = sql.includes('$1') ? year : [];
      await timeQuery(sql, values);
      return (await timeQuery(sql, values)).ms;
    };
    figures[`${name}Ms`] = await timed(view);
    figures[`${name}Times`] = (figures[`${name}Ms`] as number) / (await timed(table));
  }
  return figures;
}

/** As the end of a run does. */
async function updatePriceTables(url: string): Promise<void> {
  const database = openDatabase({ url, connections: 1 });
  await updatePriceFactors(database.drizzle);
  for (const exchange of EXCHANGES) await updateEventSessions(database.drizzle, exchange);
  await updateHitBands(database.drizzle, ALL_DAYS);
  await database.close();
}

/**
 * Queries the adjusted prices of a share by its symbol and by its id, with and without dividends, those of the
 * whole market in the last year, and what the other views make of the table; keeps the plans of the first round.
 */
export async function timeAdjusted(
  site: Site,
  url: string,
  days: readonly string[],
  round: number,
): Promise<Figures> {
  const [first = '', last = ''] = [days[0], days.at(-1)];
  const from = days[Math.max(0, days.length - 250)];
  return withClient(url, async (client) => {
    await client.query(EVENTS, [first, last]);
    await client.query(HITS);
    await updatePriceTables(url);
    await client.query(
      'vacuum analyze market.corporate_events, market.circuit_breakers, etl.price_factors, etl.event_sessions, etl.hit_bands',
    );
    const { rows: shares } = await client.query<{ symbol: string; id: string }>(
      `select symbol, instrument_id as id from market.series_aliases where exchange = 'NSE' order by symbol limit $1`,
      [site.small ? 2 : SHARES],
    );
    const timeQuery = async (sql: string, values: readonly unknown[]) => {
      const start = performance.now();
      const { rows, rowCount } = await client.query<{ rows?: string }>(sql, [...values]);
      return { ms: performance.now() - start, rows: Number(rows[0]?.rows ?? rowCount) };
    };
    const ofShares = async (column: 'symbol' | 'id', isTotal = false) => {
      const times: number[] = [];
      for (const share of shares) {
        const condition = column === 'symbol' ? "exchange = 'NSE' and symbol = $2" : 'instrument_id = $2';
        const result = await timeQuery(
          `select * from market.adjusted_prices($1${isTotal ? ', true' : ''}) where ${condition} order by trade_date`,
          [last, share[column]],
        );
        check('adjusted', { rows: [result.rows, days.length] });
        times.push(result.ms);
      }
      return median(times);
    };
    const year = `select count(*) as rows, sum(close_price), sum(traded_quantity) from market.adjusted_prices($1) where trade_date >= $2`;
    const whole = await timeQuery(year, [last, from]);
    check('adjusted', {
      rows: [whole.rows, 2 * site.source.recordsPerDay * Math.min(250, days.length)],
    });
    const keepPlan = async (figure: string, sql: string, values: readonly unknown[]) => {
      if (round === 0) site.note('adjusted', await explainAnalyze(client, figure, sql, values));
    };
    await keepPlan('yearSeconds', year, [last, from]);
    const views: Record<string, number> = {};
    for (const [figure, sql] of Object.entries(VIEWS)) {
      const times: number[] = [];
      for (const share of shares) {
        const values = [share.symbol, first, last];
        const result = await timeQuery(sql, values);
        if (result.rows === 0) throw new Error(`adjusted: no row of ${figure}`);
        times.push(result.ms);
      }
      await keepPlan(figure, sql, [shares.at(-1)?.symbol, first, last]);
      views[figure] = median(times);
    }
    for (const [name, [view]] of Object.entries(WHOLE)) {
      await keepPlan(`${name}Ms`, view, view.includes('$1') ? [from, last] : []);
    }
    const figures = {
      ...views,
      ...(await timeWhole(timeQuery, [from, last])),
      symbolMs: await ofShares('symbol'),
      instrumentMs: await ofShares('id'),
      totalReturnMs: await ofShares('symbol', true),
      yearSeconds: whole.ms / 1000,
      yearRows: whole.rows,
    };
    // No load wrote them.
    await client.query('truncate market.circuit_breakers');
    return figures;
  });
}

import type { Pool } from 'pg';
import { daysBetween } from '../../core/days.ts';
import type { Row } from '../../operations/table.ts';

/** When a scrip code was known by a ticker, in what is stored. */
interface Spell {
  readonly symbol: string;
  readonly from: string;
  readonly to: string;
}

/** Tickers by scrip code. */
export type Tickers = ReadonlyMap<string, readonly Spell[]>;

/** Nobody is known by any. */
export const NO_TICKERS: Tickers = new Map();

/**
 * The tickers BSE's scrip codes are stored under; rows stored under the code itself say nothing.
 *
 * @param before only rows first loaded before this moment; all where it is null.
 */
export async function knownTickers(pool: Pool, before: string | null = null): Promise<Tickers> {
  const found = await pool.query<Spell & { code: string }>(
    `select instrument_id::text as code, symbol, to_char(min(trade_date), 'YYYY-MM-DD') as "from",
       to_char(max(trade_date), 'YYYY-MM-DD') as "to"
     from market.bhavcopy_cm where exchange = 'BSE' and instrument_id is not null and symbol <> instrument_id::text
       and ($1::timestamptz is null or first_loaded_at < $1)
     group by 1, 2 order by 1, 2`,
    [before],
  );
  const tickers = new Map<string, Spell[]>();
  for (const { code, ...spell } of found.rows) {
    const spells = tickers.get(code);
    if (spells === undefined) tickers.set(code, [spell]);
    else spells.push(spell);
  }
  return tickers;
}

/** The server's time: told before the tickers are looked up, it says later which ones those were. */
export async function tickerMoment(pool: Pool): Promise<string> {
  const found = await pool.query<{ moment: string }>("select to_json(clock_timestamp())#>>'{}' as moment");
  return found.rows[0]?.moment ?? '';
}

/** Symbols that are stored for this very day, by scrip code: a file read again must find its own rows. */
export async function symbolsOfDay(pool: Pool, day: string): Promise<ReadonlyMap<string, string>> {
  const found = await pool.query<{ code: string; symbol: string }>(
    `select instrument_id::text as code, min(symbol) as symbol from market.bhavcopy_cm
      where exchange = 'BSE' and trade_date = $1 and instrument_id is not null group by 1`,
    [day],
  );
  return new Map(found.rows.map(({ code, symbol }) => [code, symbol]));
}

/**
 * Gives rows that carry only a scrip code the ticker an analyst would look for: the one stored for
 * that day, else the one stored for the nearest session, else the code stays (pure). A ticker that
 * passed from one company to another goes to the one that bore it nearer to the day.
 */
export function nameRows(
  rows: readonly Row[],
  day: string,
  stored: ReadonlyMap<string, string>,
  tickers: Tickers,
): Row[] {
  const named = rows.map((row) => {
    const code = String(row.instrument_id);
    const own = stored.get(code);
    if (own !== undefined) return { row, code, symbol: own, distance: -1 };
    const nearest = nearestSpell(tickers.get(code) ?? [], day);
    return { row, code, symbol: nearest?.symbol ?? code, distance: nearest?.distance ?? -1 };
  });
  const bearers = new Map<string, (typeof named)[number]>();
  for (const one of named) {
    const other = bearers.get(one.symbol);
    if (other === undefined || one.distance < other.distance) bearers.set(one.symbol, one);
  }
  return named.map(({ row, code, symbol }) => ({
    ...row,
    symbol: bearers.get(symbol)?.code === code ? symbol : code,
  }));
}

function nearestSpell(spells: readonly Spell[], day: string): { symbol: string; distance: number } | null {
  let best: { symbol: string; distance: number } | null = null;
  for (const { symbol, from, to } of spells) {
    const distance = day < from ? daysBetween(day, from) : day > to ? daysBetween(to, day) : 0;
    if (best === null || distance < best.distance) best = { symbol, distance };
  }
  return best;
}

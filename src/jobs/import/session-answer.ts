import type { Pool } from 'pg';
import { daysBetween } from '../../core/days.ts';
import type { FileSession } from '../../extract/files/read-file.ts';
import type { Extracted } from '../../extract/types.ts';
import { readSymbolsOfDay, type TickerPeriod, type Tickers } from '../../load/market/lookups.ts';
import type { PreservedColumns } from '../../load/market/merge.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import type { Row } from '../../operations/table.ts';

/** The table in which the rows of a session are stored. */
const tableOf = ({ dataSet }: Pick<FileSession, 'dataSet'>) => dataSetNamed(dataSet).shapes[0].table;

/** The tables in which rows of a session are stored, and how many records it has for each. */
export function recordsOf(session: Pick<FileSession, 'dataSet' | 'rows' | 'also'>) {
  const { also } = session;
  const first = { table: tableOf(session), rows: session.rows.length };
  return also === null ? [first] : [first, { table: also.table, rows: also.rows.length }];
}

/** For files whose rows have tickers. */
export const NO_TICKERS: Tickers = new Map();

/** What was read of an answer, or of a session of a file. */
export interface ReadAnswer {
  readonly extracted: Extracted;
  /** May it lack rows of its day? Then no stored row is withdrawn. */
  readonly partial?: boolean;
  /** The columns whose stored values are kept, because this answer does not have them. */
  readonly preserved?: PreservedColumns;
}

/**
 * Converts a session of a file to an answer that can be stored.
 *
 * @param tickers are used only if the rows of the file have none.
 */
export async function sessionAnswer(pool: Pool, session: FileSession, tickers: Tickers): Promise<ReadAnswer> {
  const { also, day, rejects, warnings } = session;
  const rows = session.withoutTickers
    ? setTickers([...session.rows], day, await readSymbolsOfDay(pool, day), tickers)
    : session.rows;
  return {
    extracted: {
      batches: [{ table: tableOf(session), rows }, ...(also === null ? [] : [also])],
      rejects,
      // Rows of the further table are not counted: they would lower the share of rejects.
      fetched: rows.length + rejects.length,
      warnings,
      unknownFields: [],
    },
    partial: !session.complete,
    preserved: { columns: session.unknown, rounded: session.rounded, sometimesBlank: session.sometimesBlank },
  };
}

/**
 * Sets the ticker of rows that have only a scrip code (pure): the one stored for that day, or for the nearest session,
 * or the code itself. If two companies have used a ticker, the one that used it nearer to the day gets it.
 */
function setTickers(
  rows: readonly Row[],
  day: string,
  stored: ReadonlyMap<string, string>,
  tickers: Tickers,
): Row[] {
  const named = rows.map((row) => {
    const code = String(row.exchange_instrument_id);
    const own = stored.get(code);
    if (own !== undefined) return { row, code, symbol: own, distance: -1 };
    const nearest = nearestPeriod(tickers.get(code) ?? [], day);
    return { row, code, symbol: nearest?.symbol ?? code, distance: nearest?.distance ?? -1 };
  });
  const owners = new Map<string, (typeof named)[number]>();
  for (const one of named) {
    const other = owners.get(one.symbol);
    if (other === undefined || one.distance < other.distance) owners.set(one.symbol, one);
  }
  return named.map(({ row, code, symbol }) => ({
    ...row,
    symbol: owners.get(symbol)?.code === code ? symbol : code,
  }));
}

function nearestPeriod(
  periods: readonly TickerPeriod[],
  day: string,
): { symbol: string; distance: number } | null {
  let best: { symbol: string; distance: number } | null = null;
  for (const { symbol, from, to } of periods) {
    const distance = day < from ? daysBetween(day, from) : day > to ? daysBetween(to, day) : 0;
    if (best === null || distance < best.distance) best = { symbol, distance };
  }
  return best;
}

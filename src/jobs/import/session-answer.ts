import type { Pool } from 'pg';
import { daysBetween } from '../../core/days.ts';
import type { FileSession } from '../../extract/files/read-file.ts';
import type { Extracted } from '../../extract/types.ts';
import { readSymbolsOfDay, type TickerPeriod, type Tickers } from '../../load/market/lookups.ts';
import type { PreservedColumns } from '../../load/market/merge.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import type { Row } from '../../operations/table.ts';

/** The table that stores the rows of a session. */
export const tableOf = ({ dataSet }: Pick<FileSession, 'dataSet'>) => dataSetNamed(dataSet).shapes[0].table;

/** All tables that a session fills. */
export const tablesOf = (session: Pick<FileSession, 'dataSet' | 'also'>) =>
  session.also === null ? [tableOf(session)] : [tableOf(session), session.also.table];

/** Tickers for files whose rows have their own. */
export const NO_TICKERS: Tickers = new Map();

/** An answer, or a session of a file, as it was read. */
export interface ReadAnswer {
  readonly extracted: Extracted;
  /** May lack rows of its day although nothing was left out on purpose: none is withdrawn. */
  readonly partial?: boolean;
  /** Stored values that stand, because this answer knows less. */
  readonly preserved?: PreservedColumns;
}

/**
 * Makes an answer that can be stored from a session of a file, whether it was read just now or kept.
 *
 * @param tickers used only if the file has none of its own.
 */
export async function sessionAnswer(pool: Pool, session: FileSession, tickers: Tickers): Promise<ReadAnswer> {
  const { also, day, rejects, warnings } = session;
  const rows = session.withoutTickers
    ? nameRows([...session.rows], day, await readSymbolsOfDay(pool, day), tickers)
    : session.rows;
  return {
    extracted: {
      batches: [{ table: tableOf(session), rows }, ...(also === null ? [] : [also])],
      rejects,
      // What its rows tell besides is no record more: it must not make rejects look few.
      fetched: rows.length + rejects.length,
      warnings,
      unknownFields: [],
    },
    partial: !session.complete,
    preserved: { columns: session.unknown, rounded: session.rounded, sometimesBlank: session.sometimesBlank },
  };
}

/**
 * Gives rows that have only a scrip code the ticker an analyst would look for (pure): the one stored for
 * that day, else the one stored for the nearest session, else the code itself. A ticker that two
 * companies have used goes to the one that used it nearer to the day.
 */
function nameRows(
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

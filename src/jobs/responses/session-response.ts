import type { Pool } from 'pg';
import { daysBetween } from '../../core/days.ts';
import type { Row } from '../../declaration/table.ts';
import { joinedRowsDoubt } from '../../extract/doubts.ts';
import type { FilePart } from '../../extract/files/read-file.ts';
import type { Extracted } from '../../extract/types.ts';
import type { PreservedColumns } from '../../load/merge/fill-from-stored.ts';
import { readSymbolsOfDay, type TickerPeriod, type Tickers } from '../../load/stored-values.ts';
import { dataSetNamed } from '../../operations/registry.ts';

/** The table in which the rows of a part are stored. */
const tableOf = ({ dataSet }: Pick<FilePart, 'dataSet'>) => dataSetNamed(dataSet).shapes[0].table;

/** The tables in which rows of a part are stored, and how many records it has for each. */
export function countRecordsByTable(part: Pick<FilePart, 'dataSet' | 'rows' | 'also'>) {
  const { also } = part;
  const first = { table: tableOf(part), rows: part.rows.length };
  return also === null ? [first] : [first, { table: also.table, rows: also.rows.length }];
}

/** Symbols by scrip code, as they were given to the rows of a file without tickers; other codes are their own symbol. */
type GivenSymbols = Readonly<Record<string, string>>;

/** What was read of a response, or of a part of a file. */
export interface ReadResponse {
  readonly extracted: Extracted;
  /** The columns whose stored values are kept, because this response does not have them. */
  readonly preserved?: PreservedColumns;
}

/** What to do about a file in which ends of lines are missing. */
const REPAIR = 'put the ends of lines back, and import the file again';

/**
 * Converts a part of a file to a response that can be stored (pure).
 *
 * @param symbols the symbols of its rows, if the file has no tickers.
 */
export function partResponse(part: FilePart, symbols: GivenSymbols): ReadResponse {
  const { also, rejects, joined, warnings } = part;
  const rows = part.withoutTickers
    ? Array.from(part.rows, (row) => ({ ...row, symbol: symbols[codeOf(row)] ?? codeOf(row) }))
    : part.rows;
  return {
    extracted: {
      batches: [{ table: tableOf(part), rows }, ...(also === null ? [] : [also])],
      rejects,
      // Rows of the further table are not counted: they would lower the share of rejects.
      fetched: rows.length + rejects.length,
      doubts: joined === 0 ? [] : [joinedRowsDoubt(joined, REPAIR)],
      listsAll: part.complete,
      warnings,
      unknownFields: [],
    },
    preserved: { columns: part.unknown, rounded: part.rounded, sometimesBlank: part.sometimesBlank },
  };
}

const codeOf = (row: Row) => String(row.exchange_instrument_id);

/**
 * The symbols for the rows of a file without tickers: the one stored for that day, of a T+0 line the one that the file
 * has, else the one stored for the nearest trading day. If two companies have used a ticker, the one that used it
 * nearer to the day gets it. They are kept with the file, so that it is always read in the same way.
 */
export async function symbolsFor(
  pool: Pool,
  { rows, day, withoutTickers }: FilePart,
  tickers: Tickers,
): Promise<GivenSymbols> {
  if (!withoutTickers) return {};
  const stored = await readSymbolsOfDay(pool, day);
  const own = new Map(Array.from(rows, (row) => [codeOf(row), String(row.symbol)]));
  const named = Array.from(own, ([code, read]) => {
    const symbol = stored.get(code) ?? (read === code ? undefined : read);
    if (symbol !== undefined) return { code, symbol, distance: -1 };
    const nearest = nearestPeriod(tickers.get(code) ?? [], day);
    return { code, symbol: nearest?.symbol ?? code, distance: nearest?.distance ?? -1 };
  });
  const owners = new Map<string, (typeof named)[number]>();
  for (const ticker of named) {
    const other = owners.get(ticker.symbol);
    if (other === undefined || ticker.distance < other.distance) owners.set(ticker.symbol, ticker);
  }
  return Object.fromEntries(
    [...owners].flatMap(([symbol, { code }]) => (symbol === code ? [] : [[code, symbol]])),
  );
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

import type { Pool } from 'pg';
import { daysBetween } from '../../core/days.ts';
import { rowsOf } from '../../declaration/rows.ts';
import type { RowOf } from '../../declaration/table.ts';
import { joinedRowsDoubt } from '../../extract/doubts.ts';
import type { FilePart } from '../../extract/files/read-file.ts';
import type { Extracted } from '../../extract/types.ts';
import type { PreservedColumns } from '../../load/merge/fill-from-stored.ts';
import { readSymbolsOfDay, type TickerPeriod, type Tickers } from '../../load/stored-values.ts';
import { bhavcopy } from '../../operations/GetBhavCopyCM.ts';

/** The tables in which rows of a part are stored, and how many records it has for each. */
export function countRecordsByTable(part: Pick<FilePart, 'table' | 'rows' | 'also'>) {
  const { table, also } = part;
  const first = { table, rows: part.rows.length };
  return also === null ? [first] : [first, { table: also.table, rows: also.rows.length }];
}

/** Symbols by scrip code, as they were given to the rows of a file without tickers; other codes are their own symbol. */
type SymbolsByCode = Readonly<Record<string, string>>;

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
export function partResponse(part: FilePart, symbols: SymbolsByCode): ReadResponse {
  const { table, also, rejects, joined, warnings } = part;
  const rows =
    pricesWithoutTickers(part)?.map((row) => ({ ...row, symbol: symbols[codeOf(row)] ?? codeOf(row) })) ??
    part.rows;
  return {
    extracted: {
      batches: [{ table, rows }, ...(also === null ? [] : [also])],
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

/** The prices of a part whose file has no tickers; null for any other. */
const pricesWithoutTickers = (part: FilePart) => (part.withoutTickers ? rowsOf(part, bhavcopy) : null);

const codeOf = (row: RowOf<typeof bhavcopy>) => String(row.exchange_instrument_id);

/**
 * The symbols for the rows of a file without tickers: the one stored for that day, of a T+0 line the one that the file
 * has, else the one stored for the nearest trading day. If two companies have used a ticker, the one that used it
 * nearer to the day gets it. They are kept with the file, so that it is always read in the same way.
 */
export async function symbolsFor(pool: Pool, part: FilePart, tickers: Tickers): Promise<SymbolsByCode> {
  const rows = pricesWithoutTickers(part);
  if (rows === null) return {};
  const { day } = part;
  const stored = await readSymbolsOfDay(pool, day);
  const symbolsInFile = new Map(rows.map((row) => [codeOf(row), row.symbol]));
  const namedTickers = Array.from(symbolsInFile, ([code, read]) => {
    const symbol = stored.get(code) ?? (read === code ? undefined : read);
    if (symbol !== undefined) return { code, symbol, distance: -1 };
    const nearest = nearestPeriod(tickers.get(code) ?? [], day);
    return { code, symbol: nearest?.symbol ?? code, distance: nearest?.distance ?? -1 };
  });
  const owners = new Map<string, (typeof namedTickers)[number]>();
  for (const ticker of namedTickers) {
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

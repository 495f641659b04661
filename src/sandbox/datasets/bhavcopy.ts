import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { type Day, isDay } from '../../core/days.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import type { Exchange } from '../../core/exchanges.ts';
import { UDIFF_COLUMNS } from '../../operations/udiff.ts';
import { Lru, type Market } from '../market/market.ts';
import type { TradeLine } from '../market/session.ts';
import { type DataSet, rupees, sessionsOf } from '../response/dataset.ts';
import { responseFields, type SourceRecord, type Value } from '../response/record.ts';

function record(line: TradeLine, market: Market, exchange: Exchange, day: string): SourceRecord {
  const { receivedAt, savedAt } = market.audit('bhavcopy', exchange, day, line.revision);
  return {
    // These are always blank in the cash market.
    expiry: null,
    finInstrmActlXpryDt: null,
    strikePrice: null,
    optionType: null,
    underlyingPrice: null,
    oi: null,
    oiChng: null,
    instrumentName: null,
    sgmt: 'CM',
    src: exchange,
    finInstrmTp: 'STK',
    finInstrmId: line.id,
    isin: line.instrument.isin,
    symbol: line.instrument.symbol,
    sctySrs: line.series,
    finInstrmNm: line.instrument.name,
    ssnId: 'F1',
    tradDt: day,
    bizDt: day,
    openPrice: rupees(line.open),
    highPrice: rupees(line.high),
    lowPrice: rupees(line.low),
    closePrice: rupees(line.close),
    lastPrice: rupees(line.last),
    prevClosePrice: rupees(line.lastClose),
    sttlmPric: line.settlement === null ? null : rupees(line.settlement),
    ttq: line.quantity,
    ttlTrfVal: rupees(line.turnover),
    totalTradesNo: line.trades,
    newBrdLotQty: line.series === 'SM' || line.series === 'M' ? 1_000 : 1,
    receivedAt,
    savedAt,
  };
}

/** Records of a trade file, cached as long as the market keeps the file. */
const recordsByLines = new WeakMap<readonly TradeLine[], readonly SourceRecord[]>();

function recordsOf(lines: readonly TradeLine[], market: Market, exchange: Exchange, day: string) {
  let records = recordsByLines.get(lines);
  if (records === undefined) {
    records = lines.map((line) => record(line, market, exchange, day));
    recordsByLines.set(lines, records);
  }
  return records;
}

export const bhavcopy: DataSet = {
  table: 'bhavcopy_cm',
  records(market, query) {
    const { exchange, instruments } = query;
    return sessionsOf(market, query).flatMap((day) => {
      const lines = market.lines(exchange, day);
      if (instruments.length === 0) return recordsOf(lines, market, exchange, day);
      return lines
        .filter((line) => instruments.includes(line.instrument.symbol))
        .map((line) => record(line, market, exchange, day));
    });
  },
};

// The bhav copies of the exchanges, from files.

const HEAD_BYTES = 4_096;
const REMEMBERED_FILES = 8;

/** The files of real bhav copies by `<exchange> <day>`. */
type BhavcopyFiles = ReadonlyMap<string, string>;

function parseRows(path: string, text: string): Record<string, string>[] {
  try {
    return parse(text, { columns: true, bom: true, trim: true, skip_empty_lines: true });
  } catch (error) {
    throw usageError(`${path} cannot be read as CSV: ${messageOf(error)}`);
  }
}

function head(path: string): string {
  const buffer = Buffer.alloc(HEAD_BYTES);
  const file = openSync(path, 'r');
  try {
    const length = readSync(file, buffer, 0, HEAD_BYTES, 0);
    // Of a longer file only complete lines are used: the last one may be cut, even within a character.
    const end = length < HEAD_BYTES ? length : buffer.lastIndexOf('\n');
    return buffer.subarray(0, Math.max(0, end)).toString('utf8');
  } finally {
    closeSync(file);
  }
}

function keyOf(path: string, row: Record<string, string> | undefined): string {
  if (row?.TradDt === undefined || row.Src === undefined || row.TckrSymb === undefined) {
    throw usageError(`${path} is not a UDiFF bhav copy: it has no row with TradDt, Src and TckrSymb`);
  }
  if (!isDay(row.TradDt)) throw usageError(`${path} has a TradDt that is not a date: "${row.TradDt}"`);
  return `${row.Src} ${row.TradDt}`;
}

/**
 * Finds the UDiFF bhav copies in a folder. Exchange and day are taken from the first row of a file, not from its name.
 *
 * @throws PipelineError `usage` that names an unreadable file, or two files with the same day.
 */
export function findBhavcopies(directory: string): BhavcopyFiles {
  const files = new Map<string, string>();
  let names: string[];
  try {
    names = readdirSync(directory).sort();
  } catch (error) {
    throw usageError(`the folder ${directory} of bhav copies cannot be read: ${messageOf(error)}`);
  }
  for (const name of names) {
    const path = join(directory, name);
    if (/\.zip$/i.test(name)) throw usageError(`${path} is a zip archive; unpack it first`);
    if (!/\.csv$/i.test(name) || !statSync(path).isFile()) continue;
    const key = keyOf(path, parseRows(path, head(path))[0]);
    const other = files.get(key);
    if (other !== undefined) throw usageError(`${path} and ${other} both hold ${key}`);
    files.set(key, path);
  }
  return files;
}

/**
 * Makes a record of a row. Numbers stay text, so that no digit changes on the way into the response.
 *
 * @param others the fields that are not in the files.
 */
function recordOfRow(row: Record<string, string>, others: SourceRecord): SourceRecord {
  const values: Record<string, Value> = { ...others };
  for (const [column, source] of Object.entries(UDIFF_COLUMNS)) {
    const text = row[column];
    values[source] = text === undefined || text === '' ? null : text;
  }
  return values;
}

function readFile(path: string, key: string, others: SourceRecord): SourceRecord[] {
  const rows = parseRows(path, readFileSync(path, 'utf8'));
  const stray = rows.find((row) => keyOf(path, row) !== key);
  if (stray !== undefined) throw usageError(`${path} holds ${key} and also ${keyOf(path, stray)}`);
  return rows.map((row) => recordOfRow(row, others));
}

/** Serves GetBhavCopyCM only from real files: a day without a file is empty. */
export function realBhavcopy(files: BhavcopyFiles): DataSet {
  const parsed = new Lru<SourceRecord[]>(REMEMBERED_FILES);
  const days = [...files.keys()].sort();
  return {
    table: 'bhavcopy_cm',
    records(market, query) {
      const { range, exchange, operation } = query;
      if (range === null) return [];
      const empty = responseFields(operation.shapes[0].table).map(({ source }) => [source, null]);
      const published = market.publishedUntil();
      const inRange = (day: Day) => day >= range.from && day <= range.to && day <= published;
      const wanted = new Set(query.instruments);
      return days.flatMap((key) => {
        const [source, day = ''] = key.split(' ');
        if (source !== exchange || !inRange(day)) return [];
        const others = { ...Object.fromEntries(empty), ...market.audit('bhavcopy', exchange, day) };
        const rows = parsed.get(key, () => readFile(files.get(key) as string, key, others));
        return rows.filter((row) => wanted.size === 0 || wanted.has(String(row.symbol)));
      });
    },
  };
}

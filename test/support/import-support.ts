import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test as base } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { systemClock } from '../../src/core/clock.ts';
import { loadConfig } from '../../src/core/config.ts';
import { createLog } from '../../src/core/log.ts';
import { unzip } from '../../src/extract/files/unpack.ts';
import type { Context } from '../../src/jobs/context.ts';
import { type ImportOptions, type ImportReport, importFiles } from '../../src/jobs/import/import-files.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { closeAfterFile } from './closing.ts';
import { testDatabase } from './database.ts';
import { temporaryFolder } from './temporary-folder.ts';

export const fixture = (path: string) => fileURLToPath(new URL(`../fixtures/${path}`, import.meta.url));

/** Bhav copies of one day each. */
export const NSE_UDIFF = fixture('bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv');
export const BSE_UDIFF = fixture('bhavcopy/BhavCopy_BSE_CM_0_0_0_20250909_F_0000.CSV');

/** What an import needs, on a database of its own or the one given. */
export async function openStore(
  databaseUrl?: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Context> {
  const url = databaseUrl ?? (await testDatabase()).url;
  const config = loadConfig({
    DATABASE_URL: url,
    EOD_LOG_LEVEL: 'silent',
    EOD_CONCURRENCY: '3',
    ...settings,
  });
  const log = createLog(config);
  const db = openDatabase({ url, connections: 9, log });
  closeAfterFile(() => db.close());
  return { config, log, db, calendar: loadCalendar(), clock: systemClock };
}

/** A test that may use a store of its own. */
export const test = base.extend('context', () => openStore());

export function importInto(
  context: Context,
  paths: readonly string[],
  options: Partial<ImportOptions> = {},
): Promise<ImportReport> {
  return importFiles(context, { paths, force: false, ...options });
}

export interface Sums {
  readonly rows: number;
  readonly quantity: bigint;
  /** In hundredths of a paisa, so that no fraction is lost. */
  readonly turnover: bigint;
}

/** What is stored of one trading day. */
export async function storedSums({ db }: Context, exchange: string, day: string): Promise<Sums> {
  const result = await db.pool.query<{ rows: number; quantity: string; turnover: string }>(
    `select count(*)::int as rows, coalesce(sum(traded_quantity), 0)::text as quantity,
       trim_scale(coalesce(sum(turnover), 0) * 10000)::text as turnover
     from market.bhavcopy_cm where exchange = $1 and trade_date = $2`,
    [exchange, day],
  );
  const row = result.rows[0];
  return { rows: row?.rows ?? 0, quantity: BigInt(row?.quantity ?? 0), turnover: BigInt(row?.turnover ?? 0) };
}

/** Names of the columns for quantity and turnover in each kind of file, and the latter's unit in rupees. */
const COLUMNS: readonly (readonly [quantity: string, turnover: string, rupees: bigint])[] = [
  ['TtlTradgVol', 'TtlTrfVal', 1n],
  ['TOTTRDQTY', 'TOTTRDVAL', 1n],
  ['TTL_TRD_QNTY', 'TURNOVER_LACS', 100_000n],
  ['NO_OF_SHRS', 'NET_TURNOV', 1n],
];

/** A csv file, or the first one in a zip archive. */
export async function csvOf(path: string): Promise<Buffer> {
  const bytes = readFileSync(path);
  if (!/\.zip$/i.test(path)) return bytes;
  for await (const { data } of unzip(bytes, () => true)) return data;
  throw new Error(`${path} is empty`);
}

/** What a file says, added up by other means than the import's own. */
export async function fileSums(path: string): Promise<Sums> {
  const text = (await csvOf(path)).toString('latin1');
  const [header = '', ...lines] = text.split(/\r?\n/).filter((line) => line !== '');
  const names = header.split(',').map((name) => name.trim());
  const [quantity, turnover, rupees] = COLUMNS.find(([name]) => names.includes(name)) ?? ['', '', 1n];
  const sums = { rows: lines.length, quantity: 0n, turnover: 0n };
  for (const line of lines) {
    const cells = line.split(',').map((cell) => cell.trim());
    sums.quantity += BigInt(cells[names.indexOf(quantity)] ?? '');
    sums.turnover += tenThousandths(cells[names.indexOf(turnover)] ?? '') * rupees;
  }
  return sums;
}

function tenThousandths(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(4, '0'));
}

export const linesOf = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n');

/** Lines of a file, each as its cells. */
export const cellsOf = (path: string) => linesOf(path).map((line) => line.split(','));

/** The rows of a UDiFF file as NSE's full bhav copy would print them. */
export function asFullBhavcopy(path: string): string[] {
  const [header = [], ...rows] = cellsOf(path);
  const at = (row: readonly string[], name: string) => row[header.indexOf(name)] ?? '';
  const lakhs = (rupees: string) => (Number(rupees) / 100_000).toFixed(2);
  return [
    'SYMBOL, SERIES, DATE1, PREV_CLOSE, OPEN_PRICE, HIGH_PRICE, LOW_PRICE, LAST_PRICE, CLOSE_PRICE, AVG_PRICE, TTL_TRD_QNTY, TURNOVER_LACS, NO_OF_TRADES, DELIV_QTY, DELIV_PER',
    ...rows.map((row) =>
      [
        at(row, 'TckrSymb'),
        at(row, 'SctySrs'),
        '29-Aug-2025',
        at(row, 'PrvsClsgPric'),
        at(row, 'OpnPric'),
        at(row, 'HghPric'),
        at(row, 'LwPric'),
        at(row, 'LastPric'),
        at(row, 'ClsPric'),
        '1.00',
        at(row, 'TtlTradgVol'),
        lakhs(at(row, 'TtlTrfVal')),
        at(row, 'TtlNbOfTxsExctd'),
        '-',
        '-',
      ].join(', '),
    ),
  ];
}

/** A file of its own. */
export function newFile(name: string, lines: readonly string[]): string {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

/** The rows of one statement. */
export async function query<Row extends object>({ db }: Context, text: string): Promise<Row[]> {
  return (await db.pool.query<Row>(text)).rows;
}

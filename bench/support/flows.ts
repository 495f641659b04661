import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportPartitions } from '../../src/export/export-partitions.ts';
import { exportTable } from '../../src/export/export-table.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { check, type Figures } from './bench.ts';
import { measured, withClient } from './postgres.ts';

// What flows on from a filled database: files and folders of Parquet.

/** A table and a view. */
const TABLES = ['bhavcopy_cm', 'prices_adjusted'];

/** Writes the adjusted prices from a day on to Parquet, as doubles and with all digits, beside a COPY of them to nowhere. */
export async function exportPrices(url: string, from: string, rows: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'eod-bench-export-'));
  const database = openDatabase({ url, connections: 1 });
  const limits = { timeoutMs: 0, signal: new AbortController().signal };
  const write = async (doubles: boolean) => {
    const fileFor = () => join(folder, 'prices.parquet');
    const onPartial = () => undefined;
    const request = { table: 'prices_adjusted', format: 'parquet', doubles, from } as const;
    const { seconds, result } = await measured(url, () =>
      exportTable(database, { ...request, fileFor, onPartial }, limits),
    );
    check('exports', { rows: [result.rows, rows] });
    return seconds;
  };
  try {
    const copy = await withClient(url, (client) =>
      measured(url, () =>
        client.query(
          `copy (select * from market.prices_adjusted where trade_date >= '${from}' order by trade_date, exchange, symbol, series) to '/dev/null'`,
        ),
      ),
    );
    const [doubles, decimals] = [await write(true), await write(false)];
    return {
      doublesRowsPerSecond: rows / doubles,
      decimalsRowsPerSecond: rows / decimals,
      ratio: copy.seconds / doubles,
      copySeconds: copy.seconds,
    };
  } finally {
    await database.close();
    rmSync(folder, { recursive: true });
  }
}

/** Writes folders of a filled database by month, and brings them up to date after a night and after nothing. */
export async function keepFolders(url: string, loadNight: () => Promise<unknown>): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'eod-bench-folders-'));
  const database = openDatabase({ url, connections: 2 });
  const limits = { timeoutMs: 0, signal: new AbortController().signal };
  const request = {
    ...({ folder, tables: TABLES, format: 'parquet', by: 'month', doubles: true } as const),
    onPartial: () => undefined,
  };
  const update = async () => {
    const { seconds, result } = await measured(url, () => exportPartitions(database, request, limits));
    return { seconds, files: result.tables.map(({ written }) => written.length) };
  };
  try {
    const whole = await update();
    await loadNight();
    const night = await update();
    const nothing = await update();
    check('partitions', {
      'files of a night': [night.files.join(), '1,1'],
      'files of nothing': [nothing.files.join(), '0,0'],
    });
    return {
      ratio: whole.seconds / night.seconds,
      wholeSeconds: whole.seconds,
      nightSeconds: night.seconds,
      nothingSeconds: nothing.seconds,
    };
  } finally {
    await database.close();
    rmSync(folder, { recursive: true });
  }
}

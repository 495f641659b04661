import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'csv-parse/sync';
import { expect, test } from 'vitest';
import { backfill, openPipeline, runToEnd } from '../support/pipeline.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const REAL = join(root, '../shared/data/bhavcopy');
const folders = [join(root, 'test/fixtures/bhavcopy'), ...(existsSync(REAL) ? [REAL] : [])];
if (folders.length === 1)
  console.log('../shared/data/bhavcopy is not there: only the fixture files are tried');

/** A decimal as a whole number of its smallest unit, so that sums are exact. */
interface Exact {
  readonly units: bigint;
  readonly scale: number;
}

function exact(text: string): Exact {
  const [whole = '', fraction = ''] = text.trim().split('.');
  return { units: BigInt(`${whole}${fraction}`), scale: fraction.length };
}

function sum(texts: readonly string[]): string {
  const numbers = texts.filter((text) => text.trim() !== '').map(exact);
  const scale = Math.max(0, ...numbers.map((one) => one.scale));
  const units = numbers.reduce((total, one) => total + one.units * 10n ** BigInt(scale - one.scale), 0n);
  const digits = String(units).padStart(scale + 1, '0');
  const point = digits.length - scale;
  // The file prints 12.00 where the source sends 12: the same number.
  return `${digits.slice(0, point)}.${digits.slice(point)}`.replace(/\.?0*$/, '');
}

/** What each file of a folder says of its day, computed from its text alone. */
function daysOf(folder: string) {
  return readdirSync(folder)
    .filter((name) => /\.csv$/i.test(name))
    .map((name) => {
      const rows: Record<string, string>[] = parse(readFileSync(join(folder, name)), {
        columns: true,
        bom: true,
      });
      const all = (column: string) => rows.map((row) => row[column] ?? '');
      return {
        exchange: all('Src')[0] ?? '',
        day: all('TradDt')[0] ?? '',
        rows: rows.length,
        quantity: sum(all('TtlTradgVol')),
        turnover: sum(all('TtlTrfVal')),
        trades: sum(all('TtlNbOfTxsExctd')),
        closes: sum(all('ClsPric')),
      };
    })
    .sort((a, b) => (`${a.exchange}${a.day}` < `${b.exchange}${b.day}` ? -1 : 1));
}

test.each(folders.map((folder) => [relative(root, folder), folder]))(
  "real bhav copies, from the file through the source into the table %s: rows of each day and sums equal the files', to the digit",
  async (_name, folder) => {
    const files = daysOf(folder);
    const pipeline = await openPipeline({ sandbox: { dataDir: folder } });
    const request = backfill({
      from: '2025-08-29',
      to: '2025-09-11',
      operations: ['GetBhavCopyCM'],
      exchanges: ['BSE', 'NSE'],
    });
    const report = await runToEnd(pipeline, request);
    const rows = files.reduce((total, file) => total + file.rows, 0);
    expect(report).toMatchObject({ state: 'completed', failures: [] });
    expect(report).toMatchObject({ fetched: rows, inserted: rows, rejected: 0, duplicate: 0 });
    expect(report.windows).toMatchObject({ loaded: files.length, failed: 0 });

    const stored = await pipeline.db.pool.query(
      `select exchange, to_char(trade_date, 'YYYY-MM-DD') as day, count(*)::int as rows,
           sum(traded_quantity)::text as quantity, trim_scale(sum(turnover))::text as turnover,
           sum(trade_count)::text as trades, trim_scale(sum(close_price))::text as closes
         from market.bhavcopy_cm group by exchange, trade_date order by exchange, trade_date`,
    );
    expect(stored.rows).toEqual(files);
    const again = await runToEnd(pipeline, { ...request, targets: request.targets.map(force) });
    expect(again).toMatchObject({ state: 'completed', fetched: rows, unchanged: rows });
  },
);

const force = <T extends { readonly from: string }>(target: T) => ({ ...target, refetchFrom: target.from });

import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import type { ImportReport } from '../../../src/jobs/import/import-files.ts';
import type { FileReport } from '../../../src/jobs/import/import-sessions.ts';
import { copyResponses } from '../../support/copy-responses.ts';
import { fileSums, importInto, linesOf, openStore, query, storedSums } from '../../support/import-support.ts';
import { marketContents } from '../../support/pipeline.ts';
import { replay } from '../../support/replay-support.ts';

const DATA = fileURLToPath(new URL('../../../../shared/data/', import.meta.url));
const FOLDERS = ['bhavcopy', 'legacy_nse', 'legacy_bse', 'sec_bhavdata_full'].map((name) => join(DATA, name));
const present = existsSync(DATA);
if (!present) process.stdout.write('../shared/data is not here: the published files are not imported\n');

/** Cut in the middle of a row when it was downloaded. */
const CUT = 'sec_bhavdata_full_18112024.csv';
/** Downloaded for a holiday: the exchange gave the trading day before once more. */
const TWICE = ['sec_bhavdata_full_15112024.csv', 'sec_bhavdata_full_20112024.csv'];

const namesOf = (files: readonly FileReport[], state: FileReport['state']) =>
  files.filter((file) => file.state === state).map(({ file }) => basename(file));

const NAMED = `market.bhavcopy_cm b join market.instrument_aliases a on a.exchange = b.exchange and a.kind = 'series'
  and a.alias = b.symbol and a.series = b.series and b.trade_date >= a.valid_from and b.trade_date < a.valid_to`;

describe.runIf(present)('the exchanges’ own files, every one of them', () => {
  let context: Context;
  let first: ImportReport;
  beforeAll(async () => {
    context = await openStore();
    first = await importInto(context, FOLDERS);
  }, 240_000);

  test('are stored to the digit; bad ones are named; nothing is read a second time', async () => {
    expect(first.files).toHaveLength(FOLDERS.flatMap((folder) => readdirSync(folder)).length);
    expect(namesOf(first.files, 'failed')).toEqual([CUT]);
    expect(namesOf(first.files, 'skipped')).toEqual(TWICE);
    expect(first).toMatchObject({
      kind: 'import',
      state: 'failed',
      rejected: 0,
      updated: 0,
    });
    expect(first.error).toContain(CUT);

    for (const { file, sessions, rows, inserted } of first.files.filter(
      (report) => report.state === 'loaded',
    )) {
      const sums = await fileSums(file);
      // Each row of a full bhav copy holds the deliveries, too.
      const records = basename(file).startsWith('sec_bhavdata_full') ? 2 * sums.rows : sums.rows;
      expect({ file, rows, inserted }).toEqual({ file, rows: records, inserted: records });
      expect(sessions).toHaveLength(1);
      for (const { exchange, day } of sessions) {
        expect({ file, ...(await storedSums(context, exchange, day)) }).toEqual({ file, ...sums });
        if (!basename(file).startsWith('sec_bhavdata_full')) continue;
        const stored = await context.db.pool.query(
          `select count(*)::int as rows, count(delivered_quantity)::int as reported, sum(delivered_quantity)::text as shares
             from market.deliveries where exchange = $1 and trade_date = $2`,
          [exchange, day],
        );
        const delivered = linesOf(file)
          .slice(1)
          .flatMap((line) =>
            line.split(', ').at(-2) === '-' ? [] : [BigInt(line.split(', ').at(-2) ?? '')],
          );
        expect({ file, ...stored.rows[0] }).toEqual({
          file,
          rows: sums.rows,
          reported: delivered.length,
          shares: String(delivered.reduce((sum, quantity) => sum + quantity, 0n)),
        });
      }
    }
    // A file named for the holiday of 2024-10-02 holds the trading day before: the rows say so.
    const moved = first.files.find(({ file }) => basename(file) === 'sec_bhavdata_full_02102024.csv');
    expect(moved?.sessions).toEqual([{ exchange: 'NSE', day: '2024-10-01' }]);

    const again = await importInto(context, FOLDERS);
    expect(again.fetched).toBe(0);
    expect(namesOf(again.files, 'skipped')).toHaveLength(first.files.length - 1);

    // Into an empty database, without the files: the very same rows.
    const empty = await openStore();
    const copied = await copyResponses(context.db, empty.db);
    expect(copied).toBe(first.files.length - 1 - TWICE.length);
    expect(await replay(empty, {})).toMatchObject({
      state: 'completed',
      requests: 0,
      rejected: 0,
      fetched: first.fetched,
      inserted: first.inserted,
    });
    expect(await marketContents(empty)).toEqual(await marketContents(context));

    const forced = await importInto(context, [FOLDERS[1] as string, FOLDERS[2] as string], { force: true });
    expect(forced).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0, unchanged: forced.fetched });
    expect(forced.fetched).toBeGreaterThan(1_000);
    const history = await context.db.pool.query('select count(*)::int as n from market_history.bhavcopy_cm');
    expect(history.rows).toEqual([{ n: 0 }]);
  }, 240_000);

  test('name instruments: each line is one, each one a line a trading day; names follow renames, splits and moves', async () => {
    const firstRow = async <Row extends object>(text: string) => (await query<Row>(context, text))[0];

    const lines = await firstRow<{ n: number }>('select count(*)::int as n from market.bhavcopy_cm');
    expect(lines?.n).toBeGreaterThan(150_000);
    expect(await firstRow(`select count(*)::int as n from ${NAMED}`)).toEqual(lines);
    expect(
      await query(
        context,
        `select a.instrument_id, b.trade_date::text, array_agg(b.symbol || '.' || b.series) from ${NAMED}
          group by 1, 2 having count(*) > 1`,
      ),
    ).toEqual([]);

    // BSE's own number is the instrument.
    expect(
      await query(
        context,
        `select count(*)::int as n from ${NAMED}
          where b.exchange = 'BSE' and a.instrument_id <> 'BSE:' || b.exchange_instrument_id`,
      ),
    ).toEqual([{ n: 0 }]);

    const names = (symbol: string, exchange: string) =>
      query<{ kind: string; alias: string }>(
        context,
        `select kind, alias from market.instrument_aliases where kind in ('symbol', 'isin') and instrument_id = (
           select instrument_id from market.instruments where exchange = '${exchange}' and symbol = '${symbol}')
         order by 1, first_seen, 2`,
      );
    // Renames; a split; a fund that went to another house; a sister share with other voting rights, renamed.
    const symbolsOf = async (symbol: string, exchange: string) =>
      (await names(symbol, exchange)).filter(({ kind }) => kind === 'symbol').map(({ alias }) => alias);
    expect(await symbolsOf('BNAGROCHEM', 'BSE')).toEqual(['BNHOLDINGS', 'BNAGROCHEM']);
    expect(await symbolsOf('ZYDUSLIFE', 'NSE')).toEqual(['CADILAHC', 'ZYDUSLIFE']);
    expect(await names('NIFTYBEES', 'NSE')).toEqual([
      { kind: 'isin', alias: 'INF732E01011' },
      { kind: 'isin', alias: 'INF204KB14I2' },
      { kind: 'symbol', alias: 'NIFTYBEES' },
    ]);
    expect(await names('DIXON', 'NSE')).toEqual([
      { kind: 'isin', alias: 'INE935N01012' },
      { kind: 'isin', alias: 'INE935N01020' },
      { kind: 'symbol', alias: 'DIXON' },
    ]);
    expect(await names('GATECHDVR', 'NSE')).toEqual([
      { kind: 'isin', alias: 'INE224E01036' },
      { kind: 'symbol', alias: 'SCAPDVR' },
      { kind: 'symbol', alias: 'GATECHDVR' },
    ]);

    // No name in these files was used by two instruments, one after the other.
    expect(
      await query(
        context,
        "select kind, alias from market.instrument_aliases where valid_from <> '-infinity'",
      ),
    ).toEqual([]);

    // The same ticker on the two exchanges may be two companies: the ISIN decides.
    const tickers = await query<{ same: boolean }>(
      context,
      `select distinct left(n.isin, 7) = left(b.isin, 7) as same from market.instruments n
         join market.instruments b on b.symbol = n.symbol and b.exchange = 'BSE'
        where n.exchange = 'NSE' and n.series = 'EQ' and n.last_seen >= '2025-08-29' and b.last_seen >= '2025-09-05'`,
    );
    expect(tickers.map(({ same }) => same).sort()).toEqual([false, true]);
  });
});

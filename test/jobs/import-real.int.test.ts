import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { FileReport } from '../../src/jobs/import/import-sessions.ts';
import { copyAnswers } from '../../src/load/state/responses/copy.ts';
import { marketContents } from '../support/pipeline.ts';
import { fileSums, importInto, linesOf, openStore, storedSums } from './import-support.ts';
import { replay } from './replay-support.ts';

const DATA = fileURLToPath(new URL('../../../shared/data/', import.meta.url));
const FOLDERS = ['bhavcopy', 'legacy_nse', 'legacy_bse', 'sec_bhavdata_full'].map((name) => join(DATA, name));
const present = existsSync(DATA);
if (!present) process.stdout.write('../shared/data is not here: the published files are not imported\n');

/** Cut in the middle of a row when it was downloaded. */
const CUT = 'sec_bhavdata_full_18112024.csv';
/** Downloaded for a holiday: the exchange gave the session before once more. */
const TWICE = ['sec_bhavdata_full_15112024.csv', 'sec_bhavdata_full_20112024.csv'];

const named = (files: readonly FileReport[], state: FileReport['state']) =>
  files.filter((file) => file.state === state).map(({ file }) => basename(file));

describe.runIf(present)('the exchanges’ own files, every one of them', () => {
  test('are stored to the digit; bad ones are named; nothing is read a second time', async () => {
    const context = await openStore();
    const first = await importInto(context, FOLDERS);
    expect(first.files).toHaveLength(FOLDERS.flatMap((folder) => readdirSync(folder)).length);
    expect(named(first.files, 'failed')).toEqual([CUT]);
    expect(named(first.files, 'skipped')).toEqual(TWICE);
    expect(first).toMatchObject({
      kind: 'import',
      state: 'failed',
      rejected: 0,
      updated: 0,
      differences: [],
    });
    expect(first.error).toContain(CUT);

    for (const { file, sessions, rows, inserted } of first.files.filter((one) => one.state === 'loaded')) {
      const sums = await fileSums(file);
      // Each row of a full bhav copy holds the deliveries, too.
      const records = basename(file).startsWith('sec_bhavdata_full') ? 2 * sums.rows : sums.rows;
      expect({ file, rows, inserted }).toEqual({ file, rows: records, inserted: records });
      expect(sessions).toHaveLength(1);
      for (const { exchange, day } of sessions) {
        expect({ file, ...(await storedSums(context, exchange, day)) }).toEqual({ file, ...sums });
        if (!basename(file).startsWith('sec_bhavdata_full')) continue;
        const stored = await context.db.pool.query(
          `select count(*)::int as rows, count(delivered_quantity)::int as told, sum(delivered_quantity)::text as shares
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
          told: delivered.length,
          shares: String(delivered.reduce((sum, one) => sum + one, 0n)),
        });
      }
    }
    // A file named for the holiday of 2024-10-02 holds the session before: the rows say so.
    const moved = first.files.find(({ file }) => basename(file) === 'sec_bhavdata_full_02102024.csv');
    expect(moved?.sessions).toEqual([{ exchange: 'NSE', day: '2024-10-01' }]);

    const again = await importInto(context, FOLDERS);
    expect(again.fetched).toBe(0);
    expect(named(again.files, 'skipped')).toHaveLength(first.files.length - 1);

    // Into an empty database, without the files: the very same rows.
    const empty = await openStore();
    const copied = await copyAnswers(context.db.drizzle, empty.db, {}, new AbortController().signal);
    expect(copied).toBe(first.files.length - 1 - TWICE.length);
    expect(await replay(empty, {})).toMatchObject({
      state: 'completed',
      requests: 0,
      rejected: 0,
      fetched: first.fetched,
      inserted: first.inserted,
    });
    expect(await marketContents(empty)).toEqual(await marketContents(context));

    const forced = await importInto(context, FOLDERS, { force: true });
    expect(forced).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0, unchanged: first.inserted });
    const history = await context.db.pool.query('select count(*)::int as n from market_history.bhavcopy_cm');
    expect(history.rows).toEqual([{ n: 0 }]);
  }, 240_000);
});

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { Context } from '../../../src/jobs/context.ts';
import { bhavSource } from '../../support/bhav-source.ts';
import { testDatabase } from '../../support/database.ts';
import {
  asFullBhavcopy,
  BSE_UDIFF,
  csvOf,
  fixture,
  importInto,
  linesOf,
  NSE_UDIFF,
  newFile,
  openStore,
  query,
  storedSums,
  test,
} from '../../support/import-support.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { replay, replayedElsewhere, rowsOf } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const OLD_ZIP = fixture('files/cm01OCT2019bhav.csv.zip');

const FULL = fixture('files/sec_bhavdata_full_14112024.csv');

/** Values, revision and withdrawal of every row, and all that were replaced. */
const contents = async (context: Context) => ({
  market: await rowsOf(context, 'market'),
  history: await rowsOf(context, 'market_history'),
});

/** The lines of a UDiFF file with some cells changed. */
function edited(path: string, edits: readonly { row: number; column: string; value: string }[]): string[] {
  const lines = linesOf(path).map((line) => line.split(','));
  const [header = []] = lines;
  for (const { row, column, value } of edits) (lines[row] ?? [])[header.indexOf(column)] = value;
  return lines.map((cells) => cells.join(','));
}

describe('what an import read', () => {
  test('is kept with the rows, also the csv of an archive, and the same csv only once', async () => {
    const context = await openStore();
    await importInto(context, [OLD_ZIP, NSE_UDIFF, FULL]);
    const inside = await csvOf(OLD_ZIP);
    const plain = join(temporaryFolder(), 'again.csv');
    writeFileSync(plain, inside);
    const known = await query<{ file: string; type: string; hash: string; body: Buffer; day: string }>(
      context,
      `select r.params->>'file' as file, r.content_type as type, r.hash, b.body, r.from_date::text as day
         from etl.responses r join etl.response_bodies b using (hash) join etl.windows w on w.id = r.window_id
        where w.source_file is not null and w.state = 'loaded' order by 1`,
    );
    expect(known.map(({ file, type, day }) => [file, type, day])).toEqual([
      ['BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv', 'text/csv', '2025-08-29'],
      ['cm01OCT2019bhav.csv', 'text/csv', '2019-10-01'],
      ['sec_bhavdata_full_14112024.csv', 'text/csv', '2024-11-14'],
    ]);
    const bodies = known.map(({ body }) => brotliDecompressSync(body));
    expect(bodies).toEqual([readFileSync(NSE_UDIFF), inside, readFileSync(FULL)]);
    for (const [at, { hash }] of known.entries()) {
      expect(hash).toBe(
        createHash('sha256')
          .update(bodies[at] as Buffer)
          .digest('hex'),
      );
    }

    const counts =
      'select (select count(*) from etl.response_bodies)::int as bodies, count(hash)::int as kept from etl.responses';
    await importInto(context, [plain]);
    expect(await query(context, counts)).toEqual([{ bodies: 3, kept: 4 }]);
    await importInto(context, [OLD_ZIP, NSE_UDIFF], { force: true });
    expect(await query(context, counts)).toEqual([{ bodies: 3, kept: 6 }]);
    expect(await storedSums(context, 'NSE', '2025-08-29')).toMatchObject({ rows: 100 });
  });

  test('is kept once for all trading days of a csv, and each is found in it again', async ({ context }) => {
    const [header = '', ...nse] = linesOf(NSE_UDIFF);
    const next = nse.map((line) => line.replaceAll('2025-08-29', '2025-09-01'));
    const both = newFile('both.csv', [header, ...nse, ...next, ...linesOf(BSE_UDIFF).slice(1)]);
    expect(await importInto(context, [both])).toMatchObject({ inserted: 300, windows: { loaded: 3 } });
    expect(await query(context, 'select from etl.response_bodies')).toHaveLength(1);
    expect(await contents(await replayedElsewhere(context))).toEqual(await contents(context));
  });

  test('is not kept when a file loads nothing', async () => {
    const other = await openStore();
    await importInto(other, [fixture('files/sec_bhavdata_full_18112024.csv')]);
    expect(await query(other, 'select from etl.response_bodies')).toEqual([]);
  });
});

function pipelineOnFolder(databaseUrl: string): Promise<Pipeline> {
  return openPipeline({ databaseUrl, sandbox: bhavSource(fixture('bhavcopy')), clock: systemClock });
}

describe('files and responses of the service in turn', () => {
  test('fill an empty database in the order they were fetched: the same rows, history included', async () => {
    const { url } = await testDatabase();
    const service = await pipelineOnFolder(url);
    const files = await openStore(url);
    const ask = (from: string, exchange: string) =>
      runToEnd(
        service,
        backfill({ from, to: from, operations: ['GetBhavCopyCM'], exchanges: [exchange], force: true }),
      );

    // NSE: a poor file, the service, the poor one again, a corrected file that lists two rows fewer.
    const poor = asFullBhavcopy(NSE_UDIFF).map((line) => line.split(', '));
    (poor[1] ?? [])[8] = '77.70';
    (poor[2] ?? [])[11] = '999999.99';
    const full = (name: string) =>
      newFile(
        name,
        poor.map((row) => row.join(', ')),
      );
    await importInto(files, [full('first.csv')]);
    expect(await ask('2025-08-29', 'NSE')).toMatchObject({ inserted: 0, updated: 100 });
    (poor[5] ?? [])[8] = '55.50';
    expect(await importInto(files, [full('third.csv')])).toMatchObject({ updated: 3 });
    const corrected = edited(NSE_UDIFF, [{ row: 3, column: 'ClsPric', value: '123.45' }]);
    const fourth = await importInto(files, [newFile('fourth.csv', corrected.slice(0, -2))]);
    expect(fourth).toMatchObject({ updated: 4, withdrawn: 2 });
    // BSE: files of a day before and after the service, one of them without tickers.
    const bse = edited(BSE_UDIFF, [{ row: 2, column: 'ClsPric', value: '1.25' }]);
    await importInto(files, [newFile('bse.csv', bse), OLD_ZIP, fixture('files/EQ070421.CSV')]);
    expect(await ask('2025-09-09', 'BSE')).toMatchObject({ inserted: 0 });
    expect(await importInto(files, [BSE_UDIFF])).toMatchObject({ updated: 0 });

    const before = await contents(files);
    expect(before.history.bhavcopy_cm?.length).toBeGreaterThan(100);
    const empty = await replayedElsewhere(files);
    expect(await contents(empty)).toEqual(before);
    // Copied and replayed once more, the order is still that of the calls.
    expect(await contents(await replayedElsewhere(empty))).toEqual(before);
    const coverage =
      'select operation, exchange, day::text, state, records::int from etl.coverage order by 2, 3';
    const loaded = (rows: { state: string }[]) => rows.filter(({ state }) => state === 'loaded');
    expect(loaded(await query(empty, coverage))).toEqual(loaded(await query(files, coverage)));
  });

  test.runIf(isSlowLayer)(
    'read side by side for one day, are replayed in the order the day’s lock gave them',
    async () => {
      const original = await openStore();
      const versions = Array.from({ length: 12 }, (_, at) => {
        const close = { row: 1 + (at % 4), column: 'ClsPric', value: `${100 + at}.5` };
        const lines = edited(NSE_UDIFF, [close]).slice(0, 99 - (at % 3));
        // A full bhav copy comes before the others, whenever it is imported.
        return at < 4 ? asFullBhavcopy(newFile('version.csv', lines)) : lines;
      });
      const report = await importInto(
        original,
        versions.map((lines, at) => newFile(`version-${10 + at}.csv`, lines)),
      );
      expect(report).toMatchObject({ state: 'completed', windows: { loaded: 12 } });
      const before = await contents(original);
      expect(before.history.bhavcopy_cm?.length).toBeGreaterThan(5);
      expect(await contents(await replayedElsewhere(original))).toEqual(before);
    },
  );

  test.runIf(isSlowLayer)(
    'where they are loaded already, a replay ends with the same values and loses none',
    async () => {
      const { url } = await testDatabase();
      const service = await pipelineOnFolder(url);
      const files = await openStore(url);
      await runToEnd(
        service,
        backfill({ from: '2025-08-29', to: '2025-08-29', operations: ['GetBhavCopyCM'], exchanges: ['NSE'] }),
      );
      await importInto(files, [NSE_UDIFF]);
      const before = await contents(files);
      expect(await replay(files, {})).toMatchObject({
        inserted: 0,
        updated: 0,
        withdrawn: 0,
        unchanged: 100,
      });
      expect(await contents(files)).toEqual(before);

      // The response is not passed over for the newer file: only it knows the times of the source.
      const known = 'select from market.bhavcopy_cm where source_saved_at is not null';
      expect(await query(files, known)).toHaveLength(100);
      await files.db.pool.query('update market.bhavcopy_cm set source_saved_at = null');
      await replay(files, { from: '2025-08-29', to: '2025-08-29' });
      expect(await query(files, known)).toHaveLength(100);

      // A newer file that corrects a value.
      const corrected = edited(NSE_UDIFF, [{ row: 3, column: 'ClsPric', value: '123.45' }]);
      await importInto(files, [newFile('corrected.csv', corrected)]);
      const after = await rowsOf(files, 'market');
      const report = await replay(files, { operations: ['GetBhavCopyCM'] });
      expect(report).toMatchObject({ state: 'completed', updated: 0 });
      const values = (rows: Record<string, string[]>) =>
        rows.bhavcopy_cm?.map((row) => row.replace(/,\d+\)$/, ''));
      expect(values(await rowsOf(files, 'market'))).toEqual(values(after));
    },
  );
});

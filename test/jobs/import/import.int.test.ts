import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import type { Clock } from '../../../src/core/clock.ts';
import { cancelRun } from '../../../src/jobs/runs/run-control.ts';
import { bhavSource } from '../../support/bhav-source.ts';
import { testDatabase } from '../../support/database.ts';
import {
  asFullBhavcopy,
  BSE_UDIFF,
  fileSums,
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
import { backfill, openPipeline, runToEnd } from '../../support/pipeline.ts';
import { replayAnew } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const ACCEPTED = [
  NSE_UDIFF,
  BSE_UDIFF,
  fixture('files/cm01OCT2019bhav.csv.zip'),
  fixture('files/EQ070421.CSV'),
  fixture('files/sec_bhavdata_full_14112024.csv'),
];

describe('files of every format', () => {
  test('are stored to the digit, with the file and its hash; a second time they are skipped', async () => {
    const context = await openStore();
    const first = await importInto(context, ACCEPTED);
    expect(first).toMatchObject({
      kind: 'import',
      state: 'completed',
      requests: 0,
      left: 0,
    });
    expect(first.from).toBe('2019-10-01');
    expect(first.to).toBe('2025-09-09');
    for (const { file, sessions, state } of first.files) {
      expect({ file, state }).toEqual({ file, state: 'loaded' });
      for (const { exchange, day } of sessions) {
        expect({ file, ...(await storedSums(context, exchange, day)) }).toEqual({
          file,
          ...(await fileSums(file)),
        });
      }
    }
    const known = await query<{ file: string; hash: string }>(
      context,
      'select source_file as file, source_hash as hash from etl.windows order by source_file collate "C"',
    );
    expect(known.map(({ file }) => file)).toEqual([...ACCEPTED].sort());
    for (const { hash } of known) expect(hash).toMatch(/^[0-9a-f]{64}$/);
    const coverage = await query(context, "select from etl.coverage where state = 'loaded'");
    expect(coverage).toHaveLength(ACCEPTED.length);

    const again = await importInto(context, ACCEPTED);
    expect(again).toMatchObject({ state: 'completed', fetched: 0 });
    expect(again.files.map(({ state, error }) => [state, error])).toEqual(
      ACCEPTED.map(() => ['skipped', 'imported before']),
    );
    const forced = await importInto(context, ACCEPTED, { force: true });
    expect(forced).toMatchObject({ inserted: 0, updated: 0, unchanged: first.inserted, withdrawn: 0 });
    expect(await query(context, 'select from market_history.bhavcopy_cm')).toEqual([]);
  });

  test('bad ones are named and load nothing, copies are read once, the others are loaded', async () => {
    const context = await openStore();
    const folder = temporaryFolder();
    cpSync(fixture('files'), folder, { recursive: true });
    writeFileSync(
      join(folder, 'broken.ZIP'),
      readFileSync(fixture('files/cm01OCT2019bhav.csv.zip')).subarray(0, 900),
    );
    writeFileSync(join(folder, 'other.csv'), 'Name,Sector\nABC,Banks\n');
    writeFileSync(join(folder, 'notes.txt'), 'not looked at');
    writeFileSync(join(folder, '._other.csv'), 'nor this');
    writeFileSync(join(folder, 'picture.csv'), Buffer.from([0, 1, 0, 10, 0, 10]));
    const report = await importInto(context, [folder]);
    expect(report.state).toBe('failed');
    const outcomes = report.files.map(({ file, state, error }) => [
      basename(file),
      state,
      error?.replace(folder, '…'),
    ]);
    expect(outcomes).toEqual([
      ['EQ070421.CSV', 'loaded', undefined],
      ['broken.ZIP', 'failed', 'the zip archive is cut short: its directory is missing'],
      ['cm01OCT2019bhav.csv.zip', 'loaded', undefined],
      ['cm09OCT2019bhav.csv.zip', 'loaded', undefined],
      ['other.csv', 'unknown', 'is not a file of a known format; its header begins "Name,Sector"'],
      ['picture.csv', 'unknown', 'is not a file of a known format; it has no header'],
      ['sec_bhavdata_full_14112024.csv', 'loaded', undefined],
      ['sec_bhavdata_full_15112024.csv', 'skipped', 'the same content as …/sec_bhavdata_full_14112024.csv'],
      ['sec_bhavdata_full_18112024.csv', 'failed', 'cannot be read: the CSV breaks off inside its last row'],
    ]);
    expect(report.error).toContain('2 files were not imported');
    expect(await storedSums(context, 'NSE', '2024-11-18')).toMatchObject({ rows: 0 });
  });

  test('one that gzip has compressed has the same rows, and can be replayed', async ({ context }) => {
    const folder = temporaryFolder();
    const bytes = readFileSync(fixture('files/EQ070421.CSV'));
    writeFileSync(join(folder, 'EQ070421.CSV.gz'), gzipSync(bytes));
    const report = await importInto(context, [folder]);
    expect(report).toMatchObject({ state: 'completed', from: '2021-04-07', to: '2021-04-07' });
    const sums = await fileSums(fixture('files/EQ070421.CSV'));
    expect(await storedSums(context, 'BSE', '2021-04-07')).toEqual(sums);
    await replayAnew(context);
    expect(await storedSums(context, 'BSE', '2021-04-07')).toEqual(sums);
    // The day of this format is in the name only.
    expect(await importInto(context, [fixture('files/EQ070421.CSV')])).toMatchObject({
      inserted: 0,
      updated: 0,
      unchanged: report.inserted,
    });
  });

  test('too many bad rows fail a file as they fail a response; a few are rejected and kept', async () => {
    const context = await openStore();
    const [header = '', ...rows] = linesOf(fixture('files/sec_bhavdata_full_14112024.csv'));
    const spoil = (count: number) =>
      rows.map((row, at) => (at < count ? row.replace(/14-Nov-2024, [\d.]+/, '14-Nov-2024, n/a') : row));
    const few = await importInto(context, [newFile('few.csv', [header, ...spoil(2)])]);
    expect(few.files[0]).toMatchObject({ state: 'loaded', rows: 98, inserted: 96, rejected: 2 });
    const [reject] = await query<{ position: number; record: object; problems: object[] }>(
      context,
      'select position, record, problems from etl.rejects order by id limit 1',
    );
    expect(reject?.problems).toMatchObject([{ path: 'PREV_CLOSE' }]);
    expect(reject?.record).toMatchObject({ SERIES: expect.any(String), PREV_CLOSE: 'n/a' });
    // A better file resolves them.
    const better = await importInto(context, [newFile('better.csv', [header, ...rows])]);
    expect(better.files[0]).toMatchObject({ state: 'loaded', inserted: 4, unchanged: 96 });
    expect(await query(context, 'select from etl.rejects where resolved_at is null')).toEqual([]);
    const many = await importInto(context, [newFile('many.csv', [header, ...spoil(20)])]);
    expect(many).toMatchObject({ state: 'failed', inserted: 0 });
    expect(many.files[0]).toMatchObject({
      state: 'failed',
      rejected: 20,
      error: expect.stringContaining('NSE 2024-11-14: 20 of 50'),
    });
  });
});

describe('a file and what is stored of its day', () => {
  test('a service response and the official file agree; where they do not, the differences are listed', async () => {
    const { url } = await testDatabase();
    const ahead = Date.parse('2025-09-12T22:00:00+05:30') - Date.now();
    const clock: Clock = { now: () => Date.now() + ahead };
    const pipeline = await openPipeline({
      databaseUrl: url,
      sandbox: bhavSource(fixture('bhavcopy')),
      clock,
    });
    const range = { from: '2025-08-29', to: '2025-08-29', operations: ['GetBhavCopyCM'], exchanges: ['NSE'] };
    const loaded = await runToEnd(pipeline, backfill(range));
    expect(loaded.inserted).toBe(100);

    const agreed = await importInto(pipeline, [NSE_UDIFF]);
    expect(agreed).toMatchObject({ inserted: 0, updated: 0, unchanged: 100, withdrawn: 0 });

    const [header = '', ...rows] = linesOf(NSE_UDIFF);
    const names = header.split(',');
    const changed = rows.map((row, at) => {
      const cells = row.split(',');
      if (at === 1) cells[names.indexOf('ClsPric')] = '123.45';
      return cells.join(',');
    });
    // One corrected, two no longer listed.
    const file = newFile('corrected.csv', [header, ...changed.slice(0, -2)]);
    const report = await importInto(pipeline, [file]);
    expect(report).toMatchObject({ inserted: 0, updated: 1, unchanged: 97, withdrawn: 2 });
    const symbol = rows[1]?.split(',')[names.indexOf('TckrSymb')];
    const old = rows[1]?.split(',')[names.indexOf('ClsPric')];
    // As docs/import.md says: with the states of the report.
    const { rows: changes } = await pipeline.db.pool.query(
      `select change, symbol, close_price::text as close, (old ->> 'close_price')::numeric::text as old
         from market_history.bhavcopy_cm_changes($1, $2) order by change, symbol`,
      [report.states.before, report.states.after],
    );
    expect(changes).toEqual([
      { change: 'update', symbol, close: '123.45', old },
      expect.objectContaining({ change: 'withdraw' }),
      expect.objectContaining({ change: 'withdraw' }),
    ]);
    // The service's times stay where a file has none.
    const timeless = await query(pipeline, 'select from market.bhavcopy_cm where source_saved_at is null');
    expect(timeless).toEqual([]);
  });

  test('a format with fewer columns removes no values, and its rounding changes none', async () => {
    const context = await openStore();
    await importInto(context, [NSE_UDIFF]);
    const before = await query(context, 'select * from market.bhavcopy_cm order by symbol, series');
    const lines = asFullBhavcopy(NSE_UDIFF);
    const agreed = await importInto(context, [newFile('full.csv', lines)]);
    // What is new are the deliveries.
    expect(agreed).toMatchObject({ inserted: 100, updated: 0, unchanged: 100, withdrawn: 0 });
    expect(await query(context, 'select * from market.bhavcopy_cm order by symbol, series')).toEqual(before);

    // Fewer rows withdraw nothing. Of other values, also in the turnover, those of the richer format
    // count.
    const cells = lines.map((line) => line.split(', '));
    const [, first = [], second = []] = cells;
    first[8] = '77.70';
    second[11] = '999999.99';
    const report = await importInto(context, [
      newFile(
        'less.csv',
        cells.slice(0, 50).map((row) => row.join(', ')),
      ),
    ]);
    expect(report).toMatchObject({ inserted: 0, updated: 0, unchanged: 98, stale: 0, withdrawn: 0 });
    expect(await query(context, 'select * from market.bhavcopy_cm order by symbol, series')).toEqual(before);
    const bare = await query(
      context,
      'select from market.bhavcopy_cm where isin is null or board_lot_quantity is null',
    );
    expect(bare).toEqual([]);
    // The other way round the richer format fills what is missing.
    const other = await openStore();
    await importInto(other, [newFile('full.csv', lines)]);
    const filled = await importInto(other, [NSE_UDIFF]);
    expect(filled).toMatchObject({ inserted: 0, updated: 100 });
    expect(await query(other, 'select from market.bhavcopy_cm where isin is null')).toEqual([]);
  });
});

describe('an import that is interrupted', () => {
  test('is cancelled by a signal between two files, and goes on when run again', async ({ context }) => {
    const abort = new AbortController();
    const stopped = await importInto(context, ACCEPTED, {
      signal: abort.signal,
      onProgress(_, { ended }) {
        if (ended >= 1) abort.abort();
      },
    });
    expect(stopped.state).toBe('cancelled');
    expect(stopped.left).toBeGreaterThan(0);
    expect(stopped.windows.open).toBe(0);
    const rest = await importInto(context, ACCEPTED);
    expect(rest.state).toBe('completed');
    expect(rest.files.filter(({ state }) => state === 'skipped')).toHaveLength(
      ACCEPTED.length - stopped.left,
    );
    expect(rest.files.filter(({ state }) => state === 'loaded')).toHaveLength(stopped.left);
  });

  test('is cancelled like any other run', async ({ context }) => {
    let cancelled: Promise<void> | undefined;
    const report = await importInto(context, ACCEPTED, {
      onProgress(runId) {
        cancelled ??= cancelRun(context, runId);
      },
    });
    await cancelled;
    expect(report).toMatchObject({ state: 'cancelled', left: expect.any(Number) });
    expect(report.left).toBeGreaterThan(0);
    expect(report.windows.open).toBe(0);
  });

  test.runIf(isSlowLayer)(
    'by its process dying is ended by the next one, and its unfinished file is read again',
    async () => {
      const context = await openStore();
      await importInto(context, [NSE_UDIFF]);
      await context.db.pool.query("update etl.runs set state = 'running', finished_at = null");
      await context.db.pool.query("update etl.windows set state = 'running', finished_at = null");
      const next = await importInto(context, [NSE_UDIFF, BSE_UDIFF]);
      expect(next).toMatchObject({ state: 'completed', unchanged: 100, inserted: 100 });
      expect(await query(context, 'select state, error from etl.runs order by id limit 1')).toEqual([
        { state: 'cancelled', error: 'its process ended before it did' },
      ]);
    },
  );

  test.runIf(isSlowLayer)(
    'leaves statistics of the table whose partitions it has filled',
    async ({ context }) => {
      await importInto(context, [NSE_UDIFF]);
      expect(
        await query(
          context,
          "select reltuples::int as rows from pg_class where oid = 'market.bhavcopy_cm'::regclass",
        ),
      ).toEqual([{ rows: 100 }]);
    },
  );

  test('a path that does not exist is a usage error: nothing is imported', async ({ context }) => {
    await expect(importInto(context, [NSE_UDIFF, join(temporaryFolder(), 'none.csv')])).rejects.toMatchObject(
      { kind: 'usage' },
    );
    await expect(importInto(context, [temporaryFolder()])).rejects.toThrow(
      /no \.csv, \.dat, \.json or \.zip file/,
    );
    expect(await query(context, 'select from etl.runs')).toEqual([]);
  });
});

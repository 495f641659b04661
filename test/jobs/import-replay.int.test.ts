import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import type { Context } from '../../src/jobs/context.ts';
import { planReplay } from '../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../src/jobs/replay/work-replay.ts';
import { prune } from '../../src/load/state/answers/answers.ts';
import { copyAnswers } from '../../src/load/state/answers/copy.ts';
import { openRejectIds, openRejects, readReject, unkeptFiles } from '../../src/load/state/rejects.ts';
import { testDatabase } from '../support/database.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
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
} from './import-support.ts';
import { replay, rowsOf } from './replay-support.ts';

const OLD_ZIP = fixture('files/cm01OCT2019bhav.csv.zip');
const FULL = fixture('files/sec_bhavdata_full_14112024.csv');

/** A database that took over all kept answers and files of another one, and replayed them. */
async function replayedElsewhere(original: Context): Promise<Context> {
  const empty = await openStore();
  await copyAnswers(original.db.drizzle, empty.db, {}, new AbortController().signal);
  const report = await replay(empty, {});
  expect(report).toMatchObject({ kind: 'replay', state: 'completed', requests: 0 });
  return empty;
}

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
         from etl.answers r join etl.response_bodies b using (hash) join etl.windows w on w.id = r.window_id
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
      'select (select count(*) from etl.response_bodies)::int as bodies, count(hash)::int as kept from etl.answers';
    await importInto(context, [plain]);
    expect(await query(context, counts)).toEqual([{ bodies: 3, kept: 4 }]);
    await importInto(context, [OLD_ZIP, NSE_UDIFF], { force: true });
    expect(await query(context, counts)).toEqual([{ bodies: 3, kept: 6 }]);

    expect(await prune(context.db, new Date(Date.now() + 1_000))).toMatchObject({ answers: 6 });
    expect(await query(context, counts)).toEqual([{ bodies: 0, kept: 0 }]);
    expect(await storedSums(context, 'NSE', '2025-08-29')).toMatchObject({ rows: 100 });
  });

  test('is kept once for all sessions of a csv, and each is found in it again', async ({ context }) => {
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
  return openPipeline({ databaseUrl, sandbox: { dataDir: fixture('bhavcopy') }, clock: systemClock });
}

describe('files and answers of the service in turn', () => {
  test('fill an empty database in the order they were fetched: the same rows, history included', async () => {
    const { url } = await testDatabase();
    const service = await pipelineOnFolder(url);
    const files = await openStore(url);
    const ask = (from: string, exchange: string) =>
      runToEnd(
        service,
        backfill({ from, to: from, operations: ['GetBhavCopyCM'], exchanges: [exchange], force: true }),
      );

    // NSE: a poor file, the service, a corrected file that lists two less, the poor one again.
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
    const corrected = edited(NSE_UDIFF, [{ row: 3, column: 'ClsPric', value: '123.45' }]);
    const third = await importInto(files, [newFile('third.csv', corrected.slice(0, -2))]);
    expect(third).toMatchObject({ updated: 1, withdrawn: 2 });
    (poor[5] ?? [])[8] = '55.50';
    expect((await importInto(files, [full('fourth.csv')])).updated).toBeGreaterThan(3);
    // BSE: files of a day before and after the service, one of them without tickers.
    const bse = edited(BSE_UDIFF, [{ row: 2, column: 'ClsPric', value: '1.25' }]);
    await importInto(files, [newFile('bse.csv', bse), OLD_ZIP, fixture('files/EQ070421.CSV')]);
    expect(await ask('2025-09-09', 'BSE')).toMatchObject({ inserted: 0 });
    expect(await importInto(files, [BSE_UDIFF])).toMatchObject({ updated: 0, differences: [] });

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

  test('read side by side for one day, are replayed in the order the day’s lock gave them', async () => {
    const original = await openStore();
    const versions = Array.from({ length: 12 }, (_, at) => {
      const close = { row: 1 + (at % 4), column: 'ClsPric', value: `${100 + at}.5` };
      const lines = edited(NSE_UDIFF, [close]).slice(0, 99 - (at % 3));
      return at % 3 === 0 ? asFullBhavcopy(newFile('version.csv', lines)) : lines;
    });
    const report = await importInto(
      original,
      versions.map((lines, at) => newFile(`version-${at}.csv`, lines)),
    );
    expect(report).toMatchObject({ state: 'completed', windows: { loaded: 12 } });
    const before = await contents(original);
    expect(before.history.bhavcopy_cm?.length).toBeGreaterThan(5);
    expect(await contents(await replayedElsewhere(original))).toEqual(before);
  });

  test('where they are loaded already, a replay ends with the same values and loses none', async () => {
    const { url } = await testDatabase();
    const service = await pipelineOnFolder(url);
    const files = await openStore(url);
    await runToEnd(
      service,
      backfill({ from: '2025-08-29', to: '2025-08-29', operations: ['GetBhavCopyCM'], exchanges: ['NSE'] }),
    );
    await importInto(files, [NSE_UDIFF]);
    const before = await contents(files);
    expect(await replay(files, {})).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0, unchanged: 100 });
    expect(await contents(files)).toEqual(before);

    // The answer is not passed over for the newer file: only it knows the times of the source.
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
  });
});

describe('files without tickers', () => {
  const head =
    'SC_CODE,SC_NAME,SC_GROUP,SC_TYPE,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,NO_TRADES,NO_OF_SHRS,NET_TURNOV,TDCLOINDI';
  const old = (day: string) => newFile(`EQ${day}.CSV`, [head, `1001,OF ${day},A ,Q,1,1,1,1,1,1,1,1,1.00,`]);
  const named = (day: string, symbol: string) => {
    const [header = '', line = ''] = linesOf(BSE_UDIFF);
    const set: Record<string, string> = { TradDt: day, BizDt: day, FinInstrmId: '1001', TckrSymb: symbol };
    const names = header.split(',');
    return newFile(`${day}.csv`, [
      header,
      line
        .split(',')
        .map((cell, at) => set[names[at] ?? ''] ?? cell)
        .join(','),
    ]);
  };
  const symbols = (context: Context) =>
    query(context, 'select trade_date::text as day, symbol from market.bhavcopy_cm order by 1, 2');

  /** Is over after it was asked so many times, which a replay does before each window. */
  const stopAfter = (times: number): AbortSignal => {
    const { signal } = new AbortController();
    let asked = 0;
    return Object.defineProperty(signal, 'aborted', { get: () => asked++ >= times });
  };

  test('get the tickers that the import saw, also when a replay is interrupted', async () => {
    const original = await openStore();
    await importInto(original, [named('2022-12-30', 'FORMER'), named('2024-01-01', 'LATTER')]);
    // On 1 June the old ticker is nearer. Did that count in turn, it would be on 15 July.
    await importInto(original, [old('010623'), old('150723')]);
    await importInto(original, [named('2023-07-17', 'LATTER')]);
    await importInto(original, [old('300623')]);
    const before = await symbols(original);
    expect(before).toEqual([
      { day: '2022-12-30', symbol: 'FORMER' },
      { day: '2023-06-01', symbol: 'FORMER' },
      { day: '2023-06-30', symbol: 'LATTER' },
      { day: '2023-07-15', symbol: 'LATTER' },
      { day: '2023-07-17', symbol: 'LATTER' },
      { day: '2024-01-01', symbol: 'LATTER' },
    ]);

    const empty = await openStore();
    await copyAnswers(original.db.drizzle, empty.db, {}, new AbortController().signal);
    const runId = (await planReplay(empty, {})) ?? 0;
    // The four sessions of a month are two parts.
    for (const sessions of [1, 2, 3, 5, 6]) {
      await workReplay(empty, runId, stopAfter(1));
      expect(await symbols(empty)).toHaveLength(sessions);
    }
    expect(await symbols(empty)).toEqual(before);
    expect(await symbols(await replayedElsewhere(original))).toEqual(before);
  });
});

describe('a row of a file that is rejected', () => {
  const [header = '', ...rows] = linesOf(FULL);
  const spoilt = (count: number) =>
    newFile('spoilt.csv', [
      header,
      ...rows.map((row, at) => (at < count ? row.replace(/14-Nov-2024, /, '14-Nov-2024, about ') : row)),
    ]);
  /** What a fix of the reading code comes to. */
  const mend = async ({ db }: Context) => {
    const found = await db.pool.query<{ hash: string; body: Buffer }>(
      'select hash, body from etl.response_bodies',
    );
    for (const { hash, body } of found.rows) {
      const text = brotliDecompressSync(body).toString().replaceAll('about ', '');
      await db.pool.query('update etl.response_bodies set body = $2 where hash = $1', [
        hash,
        brotliCompressSync(text),
      ]);
    }
  };

  test('stays open under its number while the code cannot read it, then loads and is resolved', async () => {
    const context = await openStore();
    await importInto(context, [spoilt(2)]);
    const before = await openRejects(context.db.drizzle, {}, 10);
    expect(before).toMatchObject([
      { position: 1, problems: [{ path: 'PREV_CLOSE' }] },
      { position: 0, problems: [{ path: 'PREV_CLOSE' }] },
    ]);
    const same = await replay(context, {}, { rejectsOnly: true });
    expect(same).toMatchObject({ state: 'completed', requests: 0, unchanged: 96, rejected: 2 });
    expect(await openRejects(context.db.drizzle, {}, 10)).toEqual(before);
    const detail = await readReject(context.db.drizzle, before[0]?.id ?? 0);
    expect(detail).toMatchObject({
      file: expect.stringMatching(/spoilt\.csv$/),
      responseId: expect.any(Number),
    });

    await mend(context);
    const report = await replay(context, {}, { rejectsOnly: true });
    expect(report).toMatchObject({ state: 'completed', inserted: 4, unchanged: 96, rejected: 0 });
    expect(await openRejectIds(context.db.drizzle, {})).toEqual([]);
    expect(await rowsOf(context, 'market')).toEqual(
      await (async () => {
        const other = await openStore();
        await importInto(other, [FULL]);
        return rowsOf(other, 'market');
      })(),
    );
  });

  test('one of too many is loaded with its whole day once the code can read it', async ({ context }) => {
    expect(await importInto(context, [spoilt(20)])).toMatchObject({ state: 'failed', inserted: 0 });
    await mend(context);
    expect(await replay(context, {})).toMatchObject({ state: 'completed', inserted: 100, rejected: 0 });
    expect(await openRejectIds(context.db.drizzle, {})).toEqual([]);
  });

  test('stays as it is when its file is no longer kept, and the file is named', async ({ context }) => {
    const file = spoilt(2);
    await importInto(context, [file]);
    const open = await openRejectIds(context.db.drizzle, {});
    expect(await unkeptFiles(context.db.drizzle, open)).toEqual([]);
    await prune(context.db, new Date(Date.now() + 1_000));
    expect(await planReplay(context, {}, { rejectsOnly: true })).toBeNull();
    expect(await unkeptFiles(context.db.drizzle, open)).toEqual([{ file, rejects: 2 }]);
  });
});

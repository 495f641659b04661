import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { planReplay } from '../../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../../src/jobs/replay/work-replay.ts';
import { listOpenRejectIds, openRejects, readReject } from '../../../src/state/rejects.ts';
import { copyResponses } from '../../support/copy-responses.ts';
import {
  BSE_UDIFF,
  fixture,
  importInto,
  linesOf,
  newFile,
  openStore,
  query,
  test,
} from '../../support/import-support.ts';
import { replay, replayedElsewhere, rowsOf } from '../../support/replay-support.ts';

const FULL = fixture('files/sec_bhavdata_full_14112024.csv');

describe('files without tickers', () => {
  const head =
    'SC_CODE,SC_NAME,SC_GROUP,SC_TYPE,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,NO_TRADES,NO_OF_SHRS,NET_TURNOV,TDCLOINDI';
  const old = (day: string) => newFile(`EQ${day}.CSV`, [head, `1001,OF ${day},A ,Q,1,1,1,1,1,1,1,1,1.00,`]);
  const newer = (day: string, symbol: string) => {
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

  /** A signal that is aborted once it was looked at so many times, which a replay does before each window. */
  const stopAfter = (times: number): AbortSignal => {
    const { signal } = new AbortController();
    let reads = 0;
    return Object.defineProperty(signal, 'aborted', { get: () => reads++ >= times });
  };

  test('get the tickers that the import saw, also when a replay is interrupted', async () => {
    const original = await openStore();
    await importInto(original, [newer('2022-12-30', 'FORMER'), newer('2024-01-01', 'LATTER')]);
    // On 1 June the old ticker is nearer. If that row counted as well, it would be nearer on 15 July, too.
    await importInto(original, [old('010623'), old('150723')]);
    await importInto(original, [newer('2023-07-17', 'LATTER')]);
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
    await copyResponses(original.db, empty.db);
    const runId = (await planReplay(empty, {})) ?? 0;
    // The four trading days of a month are two parts.
    for (const tradingDays of [1, 2, 3, 5, 6]) {
      await workReplay(empty, runId, stopAfter(1));
      expect(await symbols(empty)).toHaveLength(tradingDays);
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
    const result = await db.pool.query<{ hash: string; body: Buffer }>(
      'select hash, body from etl.response_bodies',
    );
    for (const { hash, body } of result.rows) {
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
    expect(await listOpenRejectIds(context.db.drizzle, {})).toEqual([]);
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
    expect(await listOpenRejectIds(context.db.drizzle, {})).toEqual([]);
  });

  test('is read again from its file', async ({ context }) => {
    await importInto(context, [spoilt(2)]);
    await mend(context);
    const report = await replay(context, {}, { rejectsOnly: true });
    expect(report).toMatchObject({ state: 'completed', inserted: 4, rejected: 0 });
    expect(await listOpenRejectIds(context.db.drizzle, {})).toEqual([]);
  });
});

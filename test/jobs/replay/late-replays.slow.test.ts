import { describe, expect } from 'vitest';
import { planReplay } from '../../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../../src/jobs/replay/work-replay.ts';
import { buildFoldSettings } from '../../../src/jobs/responses/store-response.ts';
import { acceptWithdrawal } from '../../../src/load/accept-withdrawal.ts';
import { countSuspiciousWindows, listSuspiciousWindows } from '../../../src/state/windows/suspicious.ts';
import { listWithheldWithdrawals } from '../../../src/state/withdrawals.ts';
import { copyResponses } from '../../support/copy-responses.ts';
import { openStore, test } from '../../support/import-support.ts';
import {
  ALWAYS,
  acceptRefused,
  all,
  DAY,
  emptyTables,
  fetched,
  live,
  physicalRows,
  records,
  replay,
  replayAnew,
  rowsOf,
} from '../../support/replay-support.ts';

describe('a replay', () => {
  test('names the day of a withheld withdrawal also where it reads only this day of a response again', async () => {
    const context = await openStore();
    const [day, to] = ['2025-08-21', '2025-08-22'];
    await fetched(1, records(0, 20, { TradDt: '08-22-2025' }))(context, { day: to });
    const { suspicious } = await fetched(2, records(0, 20, { TradDt: '08-21-2025' }))(context, { day, to });
    expect(suspicious).toMatch(/20 of 20 rows of market\.bhavcopy_cm of 2025-08-22 were not listed/);
    const before = await physicalRows(context);
    await replay(context, {});
    expect(await physicalRows(context)).toEqual(before);
  });

  test('writes nothing where the withdrawals of two days were accepted, the later day first', async () => {
    const context = await openStore();
    const [day, to] = ['2025-08-21', '2025-08-22'];
    await fetched(1, records(0, 20, { TradDt: '08-21-2025' }))(context, { day });
    await fetched(2, records(0, 20, { TradDt: '08-22-2025' }))(context, { day: to });
    await fetched(3, [])(context, { day, to });
    const withheld = await listWithheldWithdrawals(context.db.drizzle, 10, 3);
    expect(withheld.map((withdrawal) => withdrawal.day).sort()).toEqual([day, to]);
    for (const { id } of withheld.sort((a, b) => ((a.day ?? '') < (b.day ?? '') ? 1 : -1))) {
      await acceptWithdrawal(context.db, id, { by: 'me', ...buildFoldSettings(context) });
    }
    expect(await live(context)).toEqual([]);
    const before = await physicalRows(context);
    await replay(context, {});
    expect(await physicalRows(context)).toEqual(before);
  });

  test('leaves to a person what it holds back again, counted and listed once', async ({ context }) => {
    await fetched(1, records(0, 40))(context);
    await fetched(2, records(0, 20))(context);
    const readSuspicious = async () => ({
      counted: await countSuspiciousWindows(context.db.drizzle),
      listed: await listSuspiciousWindows(context.db.drizzle, ALWAYS, 10),
    });
    const before = await readSuspicious();
    expect(before).toMatchObject({
      counted: [{ operation: 'GetBhavCopyCM', exchange: 'NSE', windows: 1 }],
      listed: [{ from: DAY, reason: expect.stringMatching(/^20 of 40 rows/) }],
    });
    await replay(context, {});
    expect(await readSuspicious()).toEqual(before);
    await replayAnew(context);
    expect(await readSuspicious()).toMatchObject(before);
    await acceptRefused(context);
    expect(await readSuspicious()).toEqual({ counted: [], listed: [] });
  });

  test('writes nothing about a reject that came again after it was resolved', async ({ context }) => {
    const bad = (at: number) => ({ ...records(at, at + 1)[0], ClosePrice: 'unknown' });
    await fetched(1, [...records(0, 20), bad(20)])(context);
    // It has a reject as well, so that it does not list the whole day, and the first one is replayed too.
    await fetched(2, [...records(0, 20), bad(21)])(context);
    await fetched(3, [...records(0, 20), bad(20)])(context);
    const before = await physicalRows(context);
    await replay(context, {});
    expect(await physicalRows(context)).toEqual(before);
  });

  test('of rejects that resolves nothing writes nothing', async () => {
    const context = await openStore();
    await fetched(1, [...records(0, 20), { ...records(20, 21)[0], ClosePrice: 'unknown' }])(context);
    await fetched(2, [...records(4, 20), { ...records(20, 21)[0], ClosePrice: 'unknown' }])(context);
    await fetched(3, records(4, 20))(context, { instruments: ['S004'] });
    const before = await physicalRows(context);
    await replay(context, {}, { rejectsOnly: true });
    expect(await physicalRows(context)).toEqual(before);
  });

  test('refuses tables that are empty beside their history, and fills them where that is empty too', async () => {
    const context = await openStore();
    await fetched(1, records(0, 20))(context);
    await fetched(2, records(2, 20, { ClosePrice: 3, SavedAt: '08-29-2025 21:10:00' }))(context);
    await fetched(3, records(0, 20))(context);
    const contents = async () => [await rowsOf(context, 'market'), await rowsOf(context, 'market_history')];
    const before = await contents();
    await context.db.pool.query('truncate market.bhavcopy_cm');
    await expect(replay(context, {})).rejects.toThrow(
      expect.objectContaining({
        message:
          'market.bhavcopy_cm holds no row of NSE, but market_history.bhavcopy_cm does: delete these rows too, and replay again',
      }),
    );
    const report = await replayAnew(context);
    expect(report).toMatchObject({ state: 'completed', inserted: 20 });
    expect(await contents()).toEqual(before);
    // Where nothing differs, nothing is written.
    const untouched = await physicalRows(context);
    await replay(context, {});
    expect(await physicalRows(context)).toEqual(untouched);
    await context.db.pool.query(
      'update etl.responses set hash = null where position < (select max(position) from etl.responses)',
    );
    expect(await replay(context, {})).toMatchObject({
      state: 'failed',
      failures: [{ error: expect.stringContaining('is not kept') }],
    });
    expect(await contents()).toEqual(before);
  });

  test('keeps to what a person has accepted, when all is loaded anew and when it is applied in place', async () => {
    const context = await openStore();
    await fetched(1, records(0, 40))(context);
    await fetched(2, records(0, 20))(context);
    await acceptRefused(context);
    expect(await live(context)).toHaveLength(20);
    const report = await replayAnew(context);
    expect(report).toMatchObject({ inserted: 20, withdrawn: 0 });
    expect(await live(context)).toHaveLength(20);
    expect(await listWithheldWithdrawals(context.db.drizzle, 1, 0)).toEqual([]);
    const before = await physicalRows(context);
    await replay(context, {});
    expect(await physicalRows(context)).toEqual(before);
    // Also in another database.
    const other = await openStore();
    await copyResponses(context.db, other.db);
    await replay(other, {});
    expect(await live(other)).toEqual(await live(context));
    expect(await all(other, "select from etl.withdrawals where state = 'accepted'")).toHaveLength(1);
  });

  test('keeps to it where it took all rows of a day, which does not count as loaded after a replay into emptied tables either', async () => {
    const context = await openStore();
    const day = '2025-08-22';
    await fetched(1, records(0, 20, { TradDt: '08-22-2025' }))(context, { day });
    await fetched(2, [])(context, { day });
    await acceptRefused(context);
    await replayAnew(context);
    expect(await live(context)).toEqual([]);
    expect(await all(context, 'select state, records::int from etl.coverage')).toEqual([
      { state: 'empty', records: 0 },
    ]);
  });

  test('reads a response whose withdrawal a person accepted among those fetched later', async () => {
    const context = await openStore();
    await fetched(1, records(0, 40))(context);
    await fetched(2, records(0, 20))(context);
    await acceptRefused(context);
    // It has a reject, so it does not list the whole day, and the one before it is replayed too.
    const bad = { ...records(30, 31)[0], ClosePrice: 'unknown' };
    await fetched(3, [...records(0, 20, { ClosePrice: 5 }), bad])(context);
    const before = await physicalRows(context);
    expect(await replay(context, {})).toMatchObject({ suspicious: [] });
    expect(await physicalRows(context)).toEqual(before);
  });

  test('into emptied tables leaves rows and names, also of a response that is loaded meanwhile', async () => {
    const context = await openStore();
    const readNames = async () =>
      (await all(context, 'select symbol from market.instruments order by 1')).map(({ symbol }) => symbol);
    await fetched(1, records(0, 20))(context);
    await emptyTables(context);
    const runId = (await planReplay(context, {})) ?? 0;
    await fetched(2, records(0, 19))(context);
    await workReplay(context, runId, new AbortController().signal);
    expect(await live(context)).toHaveLength(19);
    expect(await readNames()).toEqual(await live(context));
  });

  test('leaves the day on which a row was first loaded, if it is listed again later', async ({ context }) => {
    await fetched(1, records(0, 40))(context);
    await fetched(3, records(0, 39))(context);
    await fetched(2, records(0, 40, { ClosePrice: 7 }))(context);
    await fetched(4, records(0, 40))(context);
    const [row] = await all(
      context,
      `select t.first_loaded_at = (select min(first_loaded_at) from market_history.bhavcopy_cm h where h.symbol = t.symbol) as first
         from market.bhavcopy_cm t where t.symbol = 'S039'`,
    );
    expect(row).toEqual({ first: true });
  });
});

import { describe, expect, test } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { BSE_UDIFF, importInto, linesOf, newFile, openStore, query } from '../../support/import-support.ts';
import { replay, replayAnew } from '../../support/replay-support.ts';

describe('BSE scrip codes', () => {
  const head =
    'SC_CODE,SC_NAME,SC_GROUP,SC_TYPE,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,NO_TRADES,NO_OF_SHRS,NET_TURNOV,TDCLOINDI';
  const row = (code: string) => `${code},NAME ${code}  ,A ,Q,1,1,1,1,1,1,1,1,1.00,`;
  const symbols = async (context: Context, day: string) => {
    const rows = await query<{ code: string; symbol: string }>(
      context,
      `select exchange_instrument_id::text as code, symbol from market.bhavcopy_cm where exchange = 'BSE' and trade_date = '${day}' order by 1`,
    );
    return Object.fromEntries(rows.map(({ code, symbol }) => [code, symbol]));
  };

  test('get the ticker they are known by, also from a file of the same import; else the code stays', async () => {
    const context = await openStore();
    const old = newFile('EQ020119.CSV', [head, row('500008'), row('999999')]);
    const first = await importInto(context, [old, BSE_UDIFF]);
    expect(first.files.map(({ state }) => state)).toEqual(['loaded', 'loaded']);
    const symbolsByCode = await symbols(context, '2019-01-02');
    expect(symbolsByCode).toEqual({ 500008: 'ARE&M', 999999: '999999' });
    // Whatever becomes known later, a file finds its own rows again.
    const forced = await importInto(context, [old], { force: true });
    expect(forced).toMatchObject({ inserted: 0, updated: 0, unchanged: 2 });
  });

  test('keep the ticker that their import gave them, in replays, rebuilds and folds of a late file as well', async () => {
    const context = await openStore();
    const old = newFile('EQ020119.CSV', [head, row('500008'), row('999999')]);
    await importInto(context, [old]);
    const kept = { 500008: '500008', 999999: '999999' };
    expect(await symbols(context, '2019-01-02')).toEqual(kept);
    // From now on a ticker is known for one of them.
    await importInto(context, [BSE_UDIFF]);
    expect(await replay(context, {})).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0 });
    await replayAnew(context);
    expect(await symbols(context, '2019-01-02')).toEqual(kept);
    // A file of the same day that was imported, by its position, before the others.
    const corrected = newFile('EQ020119.CSV', [head, row('500008').replace(',Q,1,', ',Q,2,'), row('999999')]);
    await importInto(context, [corrected], { force: true });
    await context.db.pool.query(`
      with swapped as (select min(position) as first, max(position) as last from etl.responses where from_date = '2019-01-02')
      update etl.responses set position = position + interval '1 second' from swapped where position = first`);
    await replay(context, {});
    expect(await symbols(context, '2019-01-02')).toEqual(kept);
  });

  test('of a T+0 line is its ticker, as the files of its years have it, in replays as well', async () => {
    const context = await openStore();
    const columns =
      'ISIN,TckrSymb,FinInstrmId,FinInstrmNm,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TradDt,TtlNbOfTxsExctd,FftyTwWkHgh';
    const line = (ticker: string, code: number) =>
      `INE062A01020,${ticker},${code},STATE BANK OF INDIA,A ,791,791,791,793.85,791,782.15,10,7910,23-SEP-2024,1,`;
    const main = newFile('BSE_EQ_BHAVCOPY_23092024.CSV', [columns, line('SBIN', 500112)]);
    const sameDay = newFile('BSE_EQ_BHAVCOPY_23092024_T0.CSV', [columns, line('SBIN#', 100112)]);
    await importInto(context, [main, sameDay]);
    const expected = { 500112: '500112', 100112: 'SBIN#' };
    expect(await symbols(context, '2024-09-23')).toEqual(expected);
    await replayAnew(context);
    expect(await symbols(context, '2024-09-23')).toEqual(expected);
  });

  test('two that used the same ticker stay apart: it goes to the one that used it nearer to the day', async () => {
    const context = await openStore();
    const [header = '', line = ''] = linesOf(BSE_UDIFF);
    const names = header.split(',');
    const udiff = (day: string, code: string) => {
      const cells = line.split(',');
      const set: Record<string, string> = { TradDt: day, BizDt: day, FinInstrmId: code, TckrSymb: 'SAME' };
      for (const [name, value] of Object.entries(set)) cells[names.indexOf(name)] = value;
      return newFile(`${day}.csv`, [header, cells.join(',')]);
    };
    await importInto(context, [udiff('2020-06-01', '1001'), udiff('2024-12-02', '1002')]);
    await importInto(context, [newFile('EQ020120.CSV', [head, row('1001'), row('1002')])]);
    expect(await symbols(context, '2020-01-02')).toEqual({ 1001: 'SAME', 1002: '1002' });
  });
});

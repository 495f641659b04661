import { describe, expect } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { copyResponses } from '../../support/copy-responses.ts';
import { fixture, importInto, newFile, openStore, query, test } from '../../support/import-support.ts';
import { marketContents } from '../../support/pipeline.ts';
import { replay, replayAnew } from '../../support/replay-support.ts';

const FULL = fixture('files/sec_bhavdata_full_14112024.csv');
const HEADER =
  'SYMBOL, SERIES, DATE1, PREV_CLOSE, OPEN_PRICE, HIGH_PRICE, LOW_PRICE, LAST_PRICE, CLOSE_PRICE, AVG_PRICE, TTL_TRD_QNTY, TURNOVER_LACS, NO_OF_TRADES, DELIV_QTY, DELIV_PER';

const full = (...rows: string[]) => fullOf('14-Nov-2024', ...rows);

const fullOf = (day: string, ...rows: string[]) =>
  newFile('full.csv', [
    HEADER,
    ...rows.map((row) => {
      const [symbol, series, traded, ...delivered] = row.split(' ');
      return [
        symbol,
        series,
        day,
        10,
        10,
        11,
        9,
        10,
        10,
        10,
        traded,
        Number(traded) / 10_000,
        5,
        ...delivered,
      ].join(', ');
    }),
  ]);

/** Delivery positions, as NSE writes them. */
const positions = (...rows: string[]) =>
  newFile('anything.DAT', [
    'Security Wise Delivery Position - Compulsory Rolling Settlement',
    `10,MTO,14112024,1234,${String(rows.length).padStart(7, '0')}`,
    'Trade Date <14-NOV-2024>,Settlement Type <N>',
    'Record Type,Sr No,Name of Security,Quantity Traded,Deliverable Quantity(gross across client level),% of Deliverable Quantity to Traded Quantity',
    ...rows.map((row, at) => `20,${at + 1},${row.replaceAll(' ', ',')}`),
  ]);

const stored = (context: Context) =>
  query<object>(
    context,
    `select concat_ws(' ', symbol, series, trade_date, traded_quantity, coalesce(delivered_quantity::text, '-'),
       coalesce(delivered_percent::text, '-')) as row from market.deliveries order by symbol, series, trade_date`,
  ).then((rows) => rows.map((row) => (row as { row: string }).row));

describe('deliveries', () => {
  test('come with the full bhav copy, a row for each of its rows', async ({ context }) => {
    const report = await importInto(context, [FULL]);
    expect(report.files[0]).toMatchObject({ format: 'nse-full', rows: 100, inserted: 100, rejected: 0 });
    expect(report.files[0]?.tables).toEqual({ bhavcopy_cm: 50, deliveries: 50 });
    const rows = await stored(context);
    expect(rows).toHaveLength(50);
    expect(rows.slice(0, 3)).toEqual([
      '20MICRONS BE 2024-11-14 15271 - -',
      '21STCENMGM BE 2024-11-14 2261 - -',
      '360ONE EQ 2024-11-14 433088 201053 46.42',
    ]);
    // They carry the load that wrote them.
    expect(
      await query(context, 'select from market.deliveries join etl.loads l on l.id = load_id'),
    ).toHaveLength(50);
  });

  test('come with delivery positions, also under any name, and agree with the bhav copy', async () => {
    const context = await openStore();
    const report = await importInto(context, [
      full('AA EQ 100 60 60.00', 'BB BE 50 - -'),
      positions('AA EQ 100 60 60.00', 'CC N4 7 - -'),
    ]);
    expect(report).toMatchObject({ state: 'completed', inserted: 5, unchanged: 1 });
    expect(report.files.map(({ format }) => format).sort()).toEqual(['nse-deliveries', 'nse-full']);
    expect(await stored(context)).toEqual([
      'AA EQ 2024-11-14 100 60 60.00',
      'BB BE 2024-11-14 50 - -',
      'CC N4 2024-11-14 7 - -',
    ]);
    // Delivery positions say nothing of prices and of what is covered.
    expect(await query(context, 'select from market.bhavcopy_cm')).toHaveLength(2);
    expect(await query(context, 'select operation, records from etl.coverage')).toEqual([
      { operation: 'GetBhavCopyCM', records: '2' },
    ]);
  });

  test('where the two kinds of files differ, delivery positions count; a dash removes no value', async () => {
    const context = await openStore();
    await importInto(context, [full('AA EQ 100 61 61.00', 'BB EQ 50 - -')]);
    const report = await importInto(context, [
      positions('AA EQ 100 60 60.00', 'BB EQ 50 50 100.00', 'CC EQ 7 7 100.00'),
    ]);
    expect(report).toMatchObject({ inserted: 1, updated: 2, unchanged: 0, withdrawn: 0 });
    expect(await stored(context)).toEqual([
      'AA EQ 2024-11-14 100 60 60.00',
      'BB EQ 2024-11-14 50 50 100.00',
      'CC EQ 2024-11-14 7 7 100.00',
    ]);
    // Both files once more, elsewhere, in their order: the same, history included.
    const empty = await openStore();
    await copyResponses(context.db, empty.db);
    await replay(empty, {});
    expect(await marketContents(empty)).toEqual(await marketContents(context));
  });

  test('of files that an older version imported come by a replay, also behind newer files of the day', async () => {
    const context = await openStore();
    await importInto(context, [full('AA EQ 100 60 60.00', 'BB BE 50 - -')]);
    await importInto(context, [
      newFile('udiff.csv', [
        'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty',
        ...['AA,EQ', 'BB,BE'].map(
          (name) => `2024-11-14,2024-11-14,CM,NSE,STK,1,INE1,${name},10,11,9,10,10,10,100,1000,5,F1,1`,
        ),
      ]),
    ]);
    const before = await stored(context);
    const prices = 'select * from market.bhavcopy_cm order by symbol';
    const priced = await query(context, prices);
    // As that version left it: the tables of deliveries were not there.
    await context.db.pool.query('delete from market.deliveries');
    expect(await replay(context, {})).toMatchObject({ state: 'completed', inserted: 2, updated: 0 });
    expect(await stored(context)).toEqual(before);
    expect(await query(context, prices)).toEqual(priced);
    expect(await replay(context, {})).toMatchObject({ state: 'completed', inserted: 0, updated: 0 });
    await replayAnew(context);
    expect(await stored(context)).toEqual(before);
  });

  test('are replayed by their name from files of both kinds, and from bhav copies alone', async () => {
    const context = await openStore();
    await importInto(context, [fullOf('13-Nov-2024', 'AA EQ 90 45 50.00')]);
    const emptied = async () => {
      await context.db.pool.query('delete from market.deliveries');
      return replay(context, { operations: ['Deliveries'] });
    };
    expect(await emptied()).toMatchObject({ state: 'completed', inserted: 1, updated: 0 });
    await importInto(context, [positions('AA EQ 100 60 60.00')]);
    const before = await stored(context);
    expect(before).toHaveLength(2);
    expect(await emptied()).toMatchObject({ state: 'completed', inserted: 2, updated: 0 });
    expect(await stored(context)).toEqual(before);
    // Elsewhere, too.
    const empty = await openStore();
    await copyResponses(context.db, empty.db);
    await replay(empty, { operations: ['Deliveries'] });
    expect(await stored(empty)).toEqual(before);
  });

  test('that cannot be read are rejected, and the prices beside them are stored', async ({ context }) => {
    const rows = Array.from({ length: 30 }, (_, at) => `S${at} EQ 100 60 60.00`);
    const report = await importInto(context, [full(...rows, 'ZZ EQ 100 many 60.00')]);
    expect(report).toMatchObject({ state: 'completed', inserted: 61, rejected: 1 });
    expect(await query(context, 'select position, problems from etl.rejects')).toMatchObject([
      { position: 30, problems: [{ path: 'DELIV_QTY' }] },
    ]);
  });
});

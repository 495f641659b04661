import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { decideEvent } from '../../../src/jobs/events/decide-event.ts';
import { importInto, openStore } from '../../support/import-support.ts';
import { replayAnew } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { zip } from '../../support/zip.ts';

const CF_CA =
  '\uFEFF"SYMBOL \n","COMPANY NAME","SERIES","PURPOSE","FACE VALUE","EX-DATE","RECORD DATE","BOOK CLOSURE START DATE","BOOK CLOSURE END DATE"\n';
const BC = 'SERIES,SYMBOL,SECURITY,RECORD_DT,BC_STRT_DT,BC_END_DT,EX_DT,ND_STRT_DT,ND_END_DT,PURPOSE\n';
const BSE =
  'Security Code,Security Name,Company Name,Ex Date,Purpose,Record Date,BC Start Date, BC End Date\t,ND Start Date,ND End Date,Actual Payment Date\n';

/** NSE's bhav copy with closes of symbols in series EQ. */
const bhavCopy = (day: string, closes: Readonly<Record<string, number>>) =>
  `SYMBOL,SERIES,DATE1,PREV_CLOSE,OPEN_PRICE,HIGH_PRICE,LOW_PRICE,LAST_PRICE,CLOSE_PRICE,AVG_PRICE,TTL_TRD_QNTY,TURNOVER_LACS,NO_OF_TRADES,DELIV_QTY,DELIV_PER\n${Object.entries(
    closes,
  )
    .map(
      ([symbol, close]) =>
        `${symbol}, EQ, ${day}, ${close}, ${close}, ${close}, ${close}, ${close}, ${close}, ${close}, 600, 0.06, 3, 60, 10`,
    )
    .join('\n')}\n`;

describe('lists of corporate actions', () => {
  const folder = temporaryFolder();
  let context: Awaited<ReturnType<typeof openStore>>;
  const write = (name: string, content: string | Buffer) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  const query = async (sql: string, values: unknown[] = []) =>
    (await context.db.pool.query(sql, values)).rows;
  const events = (where = 'true') =>
    query(`select event_id as id, ratio_new || '/' || ratio_old as ratio, amount::text, status from market.corporate_events
            where ${where} order by event_id`).then((rows) =>
      rows.map(({ id, ratio, amount, status }) =>
        [id, ratio, amount, status].filter((part) => part !== null).join(' '),
      ),
    );
  const closes = (through: string, symbol: string) =>
    query(
      `select p.trade_date::text as day, p.symbol, trim_scale(p.close_price)::text as close, trim_scale(p.traded_quantity)::text as quantity,
              p.unadjusted_close_price::text as before from market.adjusted_prices($1) p join market.instruments i using (exchange, instrument_id)
        where exchange = 'NSE' and i.symbol = $2 order by 1`,
      [through, symbol],
    ).then((rows) =>
      rows.map((row) => `${row.day} ${row.symbol} ${row.close} ${row.quantity} ${row.before}`),
    );

  beforeAll(async () => {
    context = await openStore();
  });

  test('are known by their headers, whatever the files are called, in folders and archives', async () => {
    mkdirSync(join(folder, 'lists'));
    write(
      'lists/a.csv',
      `${CF_CA}"NEWNAME","New Name Ltd","EQ"," Bonus 1:1/Dividend- Rs 2 Per Share","10","03-Jan-2024","04-Jan-2024","-","-"\n"NEWNAME","New Name Ltd","BE"," Bonus 1:1/Dividend- Rs 2 Per Share","10","03-Jan-2024","04-Jan-2024","-","-"\n"PLAIN","Plain Ltd","EQ","Demerger","10","04-Jan-2024","-","-","-"\n`,
    );
    write(
      'lists/b.csv',
      `${BSE}500001,TEN,Ten Ltd,03 Jan 2024,Stock  Split From Rs.10/- to Rs.1/-,04 Jan 2024,-,-,03 Jan 2024,03 Jan 2024,-\n`,
    );
    write('lists/c.csv', ' Old, New & Sons Ltd,OLDNAME,NEWNAME,03-JAN-2024\n');
    write(
      'lists/d.csv',
      'exchange,symbol,ex_date,kind,ratio,note\nNSE,PLAIN,2024-01-03,split,1:5,from the annual report\nBSE,TEN,2024-01-05,consolidation,10:1,\n',
    );
    const ofPage = (
      symbol: string,
      comp: string,
      series: string,
      subject: string,
      exDate: string,
      recDate: string,
    ) => ({
      bcEndDate: '-',
      bcStartDate: '-',
      caBroadcastDate: null,
      comp,
      exDate,
      faceVal: '10',
      ind: '-',
      isin: 'INE000A01011',
      ndEndDate: '-',
      ndStartDate: '-',
      recDate,
      series,
      subject,
      symbol,
    });
    write(
      'lists/e.json',
      JSON.stringify([
        ofPage(
          'NEWNAME',
          'New Name Ltd',
          'EQ',
          ' Bonus 1:1/Dividend- Rs 2 Per Share',
          '03-Jan-2024',
          '04-Jan-2024',
        ),
        ofPage(
          'PAGE',
          'Page Ltd',
          'EQ',
          'Face Value Split (Sub-Division) - From Rs 10/- Per Share To Rs 2/- Per Share',
          '05-Jan-2024',
          '-',
        ),
      ]),
    );
    write(
      'lists/PR030124.zip',
      zip([
        {
          name: 'Bc030124.csv',
          text: `${BC}EQ,NEWNAME,New Name Ltd, , , ,03/01/2024, , ,BONUS 1:1   \nN1,BOND,Bond, , , ,03/01/2024, , ,INTEREST PAYMENT\n\u001A\n`,
        },
        { name: 'Pd030124.csv', text: 'MKT,SERIES,SYMBOL\nN,EQ,NEWNAME\n' },
        { name: 'Readme.txt', text: 'nothing' },
      ]),
    );
    const report = await importInto(context, [join(folder, 'lists')]);
    expect(
      report.files.map(({ format, state, rows, rejected, error }) => [format, state, rows, rejected, error]),
    ).toEqual([
      ['nse-actions-daily', 'loaded', 2, 0, null],
      ['nse-actions', 'loaded', 3, 0, null],
      ['bse-actions', 'loaded', 1, 0, null],
      ['symbol-changes', 'loaded', 1, 0, null],
      ['actions', 'loaded', 2, 0, null],
      ['nse-actions', 'loaded', 2, 0, null],
    ]);
    expect(report).toMatchObject({ updated: 0 });
    expect(await events()).toEqual([
      'BSE:TEN:2024-01-03:split 10/1 applied',
      'BSE:TEN:2024-01-05:consolidation 1/10 applied',
      'NSE:BOND:2024-01-03:interest ignored',
      'NSE:NEWNAME:2024-01-03:bonus 2/1 applied',
      'NSE:NEWNAME:2024-01-03:dividend:2 2 applied',
      'NSE:PAGE:2024-01-05:split 5/1 applied',
      'NSE:PLAIN:2024-01-03:split 5/1 applied',
      'NSE:PLAIN:2024-01-04:demerger needs_review',
    ]);
    // The state after the import is that after the events, which are loads of their own.
    const { rows } = await context.db.pool.query('select market.state()::int as state');
    expect(report.states.after).toBe(rows[0].state);
  });

  test('adjust prices as of a day, through a change of the symbol', async () => {
    await importInto(context, [
      write('01.csv', bhavCopy('01-Jan-2024', { OLDNAME: 100, PLAIN: 50 })),
      write('02.csv', bhavCopy('02-Jan-2024', { OLDNAME: 102, PLAIN: 50 })),
      write('03.csv', bhavCopy('03-Jan-2024', { NEWNAME: 51, PLAIN: 10 })),
    ]);
    expect(await closes('2024-01-03', 'NEWNAME')).toEqual([
      '2024-01-01 OLDNAME 50 1200 100',
      '2024-01-02 OLDNAME 51 1200 102',
      '2024-01-03 NEWNAME 51 600 51',
    ]);
    expect(await closes('2024-01-02', 'NEWNAME')).toEqual([
      '2024-01-01 OLDNAME 100 600 100',
      '2024-01-02 OLDNAME 102 600 102',
    ]);
    expect(await closes('2024-01-03', 'PLAIN')).toEqual([
      '2024-01-01 PLAIN 10 3000 50',
      '2024-01-02 PLAIN 10 3000 50',
      '2024-01-03 PLAIN 10 600 10',
    ]);
  });

  test('change nothing when they are imported again', async () => {
    const state = async () => query('select ctid::text, * from market.corporate_events order by event_id');
    const before = await state();
    await importInto(context, [join(folder, 'lists')], { force: true });
    expect(await state()).toEqual(before);
  });

  test('a decision is kept by a later import, has a past, and can be taken back', async () => {
    const id = 'NSE:PLAIN:2024-01-04:demerger';
    const [{ state }] = await query('select market.state() as state');
    expect(await decideEvent(context, id, { new: 5, old: 4 })).toMatchObject({
      ratio: '5:4',
      priceFactor: '0.8',
      status: 'applied',
    });
    expect((await closes('2024-01-04', 'PLAIN'))[2]).toBe('2024-01-03 PLAIN 8 750 10');
    await importInto(context, [join(folder, 'lists')], { force: true });
    expect(await events("kind = 'demerger'")).toEqual([`${id} 5/4 applied`]);
    const past = await query(
      `select status from market_history.corporate_events_at($1) where event_id = $2`,
      [state, id],
    );
    expect(past).toEqual([{ status: 'needs_review' }]);
    expect(await decideEvent(context, id, null)).toMatchObject({ ratio: null, status: 'ignored' });
    expect(await decideEvent(context, id, 'reset')).toMatchObject({ ratio: null, status: 'needs_review' });
    await expect(decideEvent(context, id, 'reset')).rejects.toThrow(/nothing was decided about NSE:PLAIN/);
    expect(await decideEvent(context, 'NSE:NOBODY:2024-01-04:split', null)).toBeNull();
  });

  test('a revised purpose replaces what was announced before', async () => {
    await importInto(context, [
      write(
        'revised.csv',
        `${CF_CA}"NEWNAME","New Name Ltd","EQ","Bonus 1:2 (Purpose Revised)","10","03-Jan-2024","-","-","-"\n`,
      ),
    ]);
    expect(await events("symbol = 'NEWNAME'")).toEqual([
      'NSE:NEWNAME:2024-01-03:bonus 3/2 applied',
      'NSE:NEWNAME:2024-01-03:dividend:2 2 applied',
    ]);
  });

  test('lines that cannot be read are rejects; the others are loaded', async () => {
    const report = await importInto(context, [
      write(
        'bad.csv',
        `exchange,symbol,ex_date,kind,ratio,note\n${Array.from({ length: 30 }, (_, at) => `NSE,OK${at},2024-02-01,split,2:1,`).join('\n')}\nNSE,X,2024-02-30,split,2:1,\nNSE,Y,2024-02-01,stock split,2:1,\nNSE,Z,2024-02-01,rights,1:2,\n`,
      ),
    ]);
    expect(report.files).toMatchObject([{ state: 'loaded', rows: 33, inserted: 30, rejected: 3 }]);
    const rejects = await query(
      `select problems from etl.rejects where resolved_at is null order by position`,
    );
    expect(rejects.map(({ problems }) => problems)).toMatchObject([
      [{ path: 'ex_date', message: expect.stringContaining('a date that exists') }],
      [{ path: 'kind', message: expect.stringContaining('must be one of split, consolidation') }],
      [{ path: 'ratio', message: expect.stringContaining('must be empty') }],
    ]);
  });

  test('a replay of the kept files into emptied tables ends in the same events', async () => {
    const all = () =>
      query(
        'select event_id, instrument_id, ratio_new, ratio_old, amount, status, purpose from market.corporate_events order by 1',
      );
    const before = await all();
    await replayAnew(context);
    expect(await all()).toEqual(before);
    const lost = await query(
      'select count(*)::int as lost from market.corporate_action_notices where load_id not in (select id from etl.loads)',
    );
    expect(lost).toEqual([{ lost: 0 }]);
    expect(await decideEvent(context, 'NSE:PLAIN:2024-01-04:demerger', null)).toMatchObject({
      status: 'ignored',
    });
  });

  test('an event listed under two symbols of one share counts once, and not where a person has ignored it', async () => {
    await importInto(context, [
      write('twice.csv', `${CF_CA}"OLDNAME","Old","EQ","Bonus 1:2","10","03-Jan-2024","-","-","-"\n`),
    ]);
    expect((await closes('2024-01-03', 'NEWNAME'))[0]).toMatch(/^2024-01-01 OLDNAME 66\.66/);
    await decideEvent(context, 'NSE:OLDNAME:2024-01-03:bonus', null);
    expect((await closes('2024-01-03', 'NEWNAME'))[0]).toBe('2024-01-01 OLDNAME 100 600 100');
  });

  test('a list of one’s own may have several kinds under one note, in capitals or not; an export may name its columns otherwise', async () => {
    await importInto(context, [
      write(
        'kinds.csv',
        'exchange,symbol,ex_date,kind,ratio,note\nnse,kinds,2020-01-01,Split,2:1,x\nNSE,KINDS,2020-01-01,bonus,1:1,x\n',
      ),
      write(
        'older.csv',
        `${CF_CA.replace('FACE VALUE', 'Face Value(Rs.)')}"KINDS","Kinds Ltd","EQ","Rights 1:1 @ Premium Rs 10","10","03-Jan-2021","-","-","-"\n`,
      ),
    ]);
    expect(
      await query(
        `select e.kind, ratio_new || '/' || ratio_old as ratio, trim_scale(price_factor)::text as factor, n.face_value::text as face
           from market.corporate_events e join market.corporate_action_notices n using (exchange, symbol, ex_date)
          where symbol = 'KINDS' and stated_kind in ('', e.kind) order by 1`,
      ),
    ).toEqual([
      { kind: 'bonus', ratio: '2/1', factor: '0.5', face: null },
      { kind: 'rights', ratio: '2/1', factor: null, face: '10' },
      { kind: 'split', ratio: '2/1', factor: '0.5', face: null },
    ]);
  });

  test('a decision counts also where the clock of its machine stands still, or is behind', async () => {
    const at = (ms: number) => ({ ...context, clock: { now: () => ms } });
    const now = Date.now();
    await importInto(at(now), [
      write('still.csv', 'exchange,symbol,ex_date,kind,ratio,note\nNSE,STILL,2024-01-03,split,3:1,\n'),
    ]);
    const status = async () =>
      (await query("select status from market.corporate_events where symbol = 'STILL'"))[0]?.status;
    expect(await status()).toBe('applied');
    await decideEvent(at(now), 'NSE:STILL:2024-01-03:split', null);
    expect(await status()).toBe('ignored');
    await decideEvent(at(now - 60_000), 'NSE:STILL:2024-01-03:split', 'reset');
    expect(await status()).toBe('applied');
  });

  test('the T+0 and block deal lines of a share are adjusted with it', async () => {
    const lines = ['EQ', 'BL', 'T0'].map(
      (series) => `LINED, ${series}, 01-Jan-2024, 90, 90, 90, 90, 90, 90, 90, 600, 0.06, 3, 60, 10`,
    );
    await importInto(context, [
      write('lines.csv', `${bhavCopy('01-Jan-2024', {})}${lines.join('\n')}\n`),
      write('lined.csv', 'exchange,symbol,ex_date,kind,ratio,note\nNSE,LINED,2024-01-03,split,3:1,\n'),
    ]);
    const adjusted = await query(
      `select series, instrument_id as id, trim_scale(close_price)::text as close from market.adjusted_prices('2024-01-03')
        where symbol = 'LINED' order by 1`,
    );
    expect(adjusted).toEqual([
      { series: 'BL', id: 'NSE:LINED/BL', close: '30' },
      { series: 'EQ', id: 'NSE:LINED', close: '30' },
      { series: 'T0', id: 'NSE:LINED/T0', close: '30' },
    ]);
  });

  test('a daily list means by a symbol who had it that day, an export who had it last', async () => {
    const isins = (day: string, line: string) =>
      write(
        `${day}-isins.csv`,
        `SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN,\n${line.replace('DAY', day)}\n`,
      );
    const price = 'EQ,10,10,10,10,10,10,100,1000,DAY,5';
    await importInto(context, [
      isins(
        '01-JUN-2018',
        `REUSED,${price},INE00FIRST11,\nOTHER,${price.replace('DAY', '01-JUN-2018')},INE00LATER11,`,
      ),
      isins('01-JUN-2022', `REUSED,${price},INE00LATER11,`),
      write(
        'daily.csv',
        `${BC}EQ,REUSED,First Ltd, , , ,04/06/2018, , ,BONUS 1:1\nGS,GS2018,Bond,09/06/2018, , , , , ,REDEMPTION\n`,
      ),
      write('export.csv', `${CF_CA}"REUSED","Later Ltd","EQ","Bonus 1:2","10","05-Jun-2018","-","-","-"\n`),
    ]);
    expect(
      await query(
        "select ex_date::text as day, instrument_id as id from market.corporate_events where symbol = 'REUSED' order by 1",
      ),
    ).toEqual([
      { day: '2018-06-04', id: 'NSE:INE00FIRST11' },
      { day: '2018-06-05', id: 'NSE:INE00LATER11' },
    ]);
  });

  test('lines of a daily list without an ex-date are reported, and are no rejects', async () => {
    const report = await importInto(context, [
      write(
        'undated.csv',
        `${BC}EQ,DATED,D, , , ,04/06/2019, , ,BONUS 1:1\nGS,GS2019,Bond,09/06/2019, , , , , ,REDEMPTION\n`,
      ),
    ]);
    expect(report.files).toMatchObject([{ state: 'loaded', rows: 1, rejected: 0 }]);
    expect(
      await query(
        "select warnings from etl.windows where warnings::text like '%ex-date%' order by id desc limit 1",
      ),
    ).toEqual([
      {
        warnings: [
          'lines skipped: 1; they have no ex-date: redemptions and calls, mostly of bonds and funds',
        ],
      },
    ]);
    const bonds = ['GS2019A', 'GS2019B'].map((id) => `GS,${id},Bond,10/06/2019, , , , , ,REDEMPTION\n`);
    const { warnings } = await importInto(context, [
      write('undated-1.csv', `${BC}EQ,DATED,D, , , ,05/06/2019, , ,BONUS 1:1\n${bonds.join('')}`),
      write('undated-2.csv', `${BC}EQ,DATED,D, , , ,06/06/2019, , ,BONUS 1:1\n${bonds[0]}`),
    ]);
    expect(warnings).toEqual([
      {
        operation: 'CorporateActionLists',
        warning: 'lines skipped: 3; they have no ex-date: redemptions and calls, mostly of bonds and funds',
        windows: 2,
      },
    ]);
  });
});

import { expect, test } from 'vitest';
import { decideEvent } from '../../src/jobs/events/decide-event.ts';
import { importInto, newFile, openStore } from './import-support.ts';

const HEADER =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty';

/** A session of one exchange with its own line of the same share, and another share. */
const session = (exchange: string, [id, symbol, series]: readonly [number, string, string]) =>
  newFile(`${exchange}.csv`, [
    HEADER,
    `2024-01-01,2024-01-01,CM,${exchange},STK,${id},INE467B01029,${symbol},${series},TCS LTD,100,100,100,100,100,100,10,1000,3,F1,1`,
    `2024-01-01,2024-01-01,CM,${exchange},STK,${id + 1},INE0${exchange}01011,ONLY${exchange},${series},ONLY LTD,100,100,100,100,100,100,10,1000,3,F1,1`,
  ]);

/** Opens a store with a session of both exchanges and a list of events. */
async function storeWith(events: readonly string[]) {
  const context = await openStore();
  await importInto(context, [
    session('NSE', [11_536, 'TCS', 'EQ']),
    session('BSE', [532_540, 'TCSLTD', 'A']),
    newFile('events.csv', ['exchange,symbol,ex_date,kind,ratio,note', ...events]),
  ]);
  return context;
}

test('market.share_events have one row an event, whichever exchanges list it, so that dividends add up', async () => {
  const context = await storeWith([
    'NSE,TCS,2024-01-19,dividend,27,',
    'NSE,TCS,2024-05-16,dividend,28,',
    'BSE,TCSLTD,2024-05-16,dividend,28,',
    'BSE,TCSLTD,2024-07-19,dividend,10,',
    'BSE,ONLYBSE,2024-07-19,dividend,3,',
    'NSE,UNKNOWN,2024-07-19,split,2:1,',
  ]);
  const query = async (text: string) => (await context.db.pool.query(text)).rows;
  const events = () =>
    query(
      `select concat_ws(' ', exchange, symbol, ex_date, kind, array_to_string(exchanges, '+'), amount, status) as line
         from market.share_events order by ex_date, symbol`,
    ).then((rows) => rows.map(({ line }) => line));
  expect(await events()).toEqual([
    'NSE TCS 2024-01-19 dividend NSE 27 applied',
    'NSE TCS 2024-05-16 dividend BSE+NSE 28 applied',
    'BSE ONLYBSE 2024-07-19 dividend BSE 3 applied',
    'BSE TCSLTD 2024-07-19 dividend BSE 10 applied',
    'NSE UNKNOWN 2024-07-19 split NSE applied',
  ]);
  const [sums] = await query(
    `select (select sum(amount)::int from market.share_events where symbol like 'TCS%') as shares,
            (select sum(amount)::int from market.corporate_events where symbol like 'TCS%') as lines`,
  );
  expect(sums).toEqual({ shares: 65, lines: 130 });
  // A decision about the line of one exchange is what the share has.
  await decideEvent(context, 'BSE:TCSLTD:2024-05-16:dividend:28', null);
  expect(await events()).toContain('BSE TCSLTD 2024-05-16 dividend BSE+NSE 28 ignored');
});

test('an event that each exchange has on a day of its own is one event, if the days are at most a week apart', async () => {
  const context = await storeWith([
    'NSE,TCS,2024-05-16,dividend,28,',
    'BSE,TCSLTD,2024-05-17,dividend,28,',
    // Of one exchange alone, a week later: another dividend.
    'NSE,TCS,2024-08-01,dividend,5,',
    'BSE,TCSLTD,2024-08-12,dividend,5,',
    // Two of the same amount, each on both exchanges.
    'NSE,TCS,2024-10-01,dividend,7,',
    'BSE,TCSLTD,2024-10-02,dividend,7,',
    'NSE,TCS,2024-10-07,dividend,7,',
    'BSE,TCSLTD,2024-10-08,dividend,7,',
  ]);
  const { rows } = await context.db.pool.query<{ line: string }>(
    `select concat_ws(' ', exchange, ex_date, array_to_string(exchanges, '+'), amount) as line
       from market.share_events where symbol like 'TCS%' order by ex_date`,
  );
  expect(rows.map(({ line }) => line)).toEqual([
    'NSE 2024-05-16 BSE+NSE 28',
    'NSE 2024-08-01 NSE 5',
    'BSE 2024-08-12 BSE 5',
    'NSE 2024-10-01 BSE+NSE 7',
    'NSE 2024-10-07 BSE+NSE 7',
  ]);
});

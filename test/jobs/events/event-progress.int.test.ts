import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { decideEvent } from '../../../src/jobs/events/decide-event.ts';
import { updateDerived } from '../../../src/jobs/events/update-derived.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { writeDecision } from '../../../src/state/events/decisions.ts';
import { startCuttingProxy } from '../../support/chaos/cutting-proxy.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { importInto, openStore, test } from '../../support/import-support.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
let files = 0;
const write = (lines: readonly string[]) => {
  const path = join(folder, `${++files}.csv`);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
};

/** A list of one's own with splits, of NSE. */
const list = (...lines: readonly (readonly [symbol: string, day: string, ratio: string])[]) =>
  write([
    'exchange,symbol,ex_date,kind,ratio,note',
    ...lines.map(([symbol, day, ratio]) => `NSE,${symbol},${day},split,${ratio},`),
  ]);

const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ');

/** A bhav copy of NSE, with the ISIN of each symbol. */
const prices = (day: string, isins: Readonly<Record<string, string>>) => {
  const [year, month, date] = day.split('-');
  return write([
    'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN,',
    ...Object.entries(isins).map(
      ([symbol, isin]) =>
        `${symbol},EQ,10,10,10,10,10,10,100,1000,${date}-${MONTHS[Number(month) - 1]}-${year},5,${isin},`,
    ),
  ]);
};

/** A bhav copy of BSE, with the scrip code and ISIN of each symbol. */
const pricesOfBse = (day: string, lines: Readonly<Record<string, readonly [code: number, isin: string]>>) =>
  write([
    'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,XpryDt,FininstrmActlXpryDt,StrkPric,OptnTp,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,UndrlygPric,SttlmPric,OpnIntrst,ChngInOpnIntrst,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty,Rmks,Rsvd1,Rsvd2,Rsvd3,Rsvd4',
    ...Object.entries(lines).map(
      ([symbol, [code, isin]]) =>
        `${day},${day},CM,BSE,STK,${code},${isin},${symbol},A,,,,,${symbol},10,10,10,10,10,10,,,,,40,400,8,F1,1,,,,,`,
    ),
  ]);

type Context = Awaited<ReturnType<typeof openStore>>;

const stored = async ({ db }: Context) =>
  (
    await db.pool.query(
      'select event_id, instrument_id, status, ratio_new, revision from market.corporate_events order by 1',
    )
  ).rows;

describe('corporate events', () => {
  test('are not computed again by a run that brings nothing of them', async ({ context }) => {
    const isins = { ABC: 'INE000A01010', XYZ: 'INE000B01018' };
    await importInto(context, [prices('2024-01-01', isins), list(['ABC', '2024-01-02', '2:1'])]);
    const before = await stored(context);
    expect(before).toMatchObject([{ instrument_id: 'NSE:INE000A01010', status: 'applied' }]);
    const reader = await context.db.pool.connect();
    try {
      await reader.query('begin');
      await reader.query('lock table market.corporate_action_notices in access exclusive mode');
      // A run that read a list now would wait for this lock.
      const report = await importInto(context, [prices('2024-01-02', isins), prices('2024-01-03', isins)]);
      expect(report.files.map(({ state }) => state)).toEqual(['loaded', 'loaded']);
      await updateDerived(context);
    } finally {
      await reader.query('rollback');
      reader.release();
    }
    expect(await stored(context)).toEqual(before);
  });

  test('of one exchange change the prices of the other, through a split that changes the ISIN', async () => {
    const context = await openStore();
    const returns = async () =>
      (
        await context.db.pool.query(
          `select exchange || ' ' || trade_date as day, trim_scale(round(adjusted_previous_close_price, 4))::text as before from market.prices
            where trade_date = '2024-01-03' order by exchange, symbol`,
        )
      ).rows.map(({ day, before }) => `${day} ${before}`);
    await importInto(context, [
      prices('2024-01-02', { RELIANCE: 'INE002A01018', XYZ: 'INE000B01018' }),
      prices('2024-01-03', { RELIANCE: 'INE002A01018', XYZ: 'INE000B01026' }),
      write([
        'exchange,symbol,ex_date,kind,ratio,note',
        'BSE,RELIANCE LTD,2024-01-03,bonus,1:1,',
        'NSE,XYZ,2024-01-03,split,5:1,',
      ]),
    ]);
    expect(await returns()).toEqual(['NSE 2024-01-03 10', 'NSE 2024-01-03 2']);
    // The other exchange's lines become known after its events, and of one only the ISIN before the split.
    await importInto(context, [
      pricesOfBse('2024-01-02', {
        'RELIANCE LTD': [500_325, 'INE002A01018'],
        XYZLTD: [500_002, 'INE000B01018'],
      }),
    ]);
    expect(await returns()).toEqual(['NSE 2024-01-03 5', 'NSE 2024-01-03 2']);
    await importInto(context, [
      pricesOfBse('2024-01-03', {
        'RELIANCE LTD': [500_325, 'INE002A01018'],
        XYZLTD: [500_002, 'INE000B01026'],
      }),
    ]);
    expect(await returns()).toEqual([
      'BSE 2024-01-03 5',
      'BSE 2024-01-03 2',
      'NSE 2024-01-03 5',
      'NSE 2024-01-03 2',
    ]);
    expect(await stored(context)).toMatchObject([
      { event_id: 'BSE:RELIANCE LTD:2024-01-03:bonus', instrument_id: 'BSE:500325' },
      { event_id: 'BSE:XYZLTD:2024-01-03:split', instrument_id: 'BSE:500002' },
      { event_id: 'NSE:RELIANCE:2024-01-03:bonus', instrument_id: 'NSE:INE002A01018' },
      { event_id: 'NSE:XYZ:2024-01-03:split', instrument_id: 'NSE:INE000B01018' },
    ]);
  });

  test.runIf(isSlowLayer)(
    'leave no run open, and are stored once, whichever response of Postgres is lost',
    async ({ context }) => {
      await importInto(context, [
        prices('2024-01-01', { ABC: 'INE000A01010' }),
        list(['ABC', '2024-01-02', '2:1']),
      ]);
      const runs = async () =>
        (
          await context.db.pool.query(
            `select r.state, count(w.id)::int as windows, count(*) filter (where w.state in ('pending', 'running'))::int as open
             from etl.runs r left join etl.windows w on w.run_id = r.id where r.kind = 'events' group by r.id order by r.id`,
          )
        ).rows;
      let runCount = (await runs()).length;
      for (let lost = 1, struck = true; struck; lost += lost < 6 ? 1 : 5) {
        const ratio = lost + 2;
        // Only the decision is written, so that the events are changed through the proxy.
        await writeDecision(context.db.drizzle, ['NSE:ABC:2024-01-02:split'], {
          ratio: { new: ratio, old: 1 },
          decidedBy: 'test',
        });
        const proxy = await startCuttingProxy(context.config.DATABASE_URL ?? '', {
          statement: /insert into "?etl"?\."?runs"?/,
          last: lost,
        });
        const retry = { forMs: 20_000, onRetry: () => undefined };
        const db = openDatabase({ url: proxy.url, retry });
        await updateDerived({ ...context, db });
        struck = proxy.struck();
        await db.close();
        await proxy.close();
        runCount += 1;
        const storedRuns = await runs();
        expect(storedRuns.slice(0, runCount), `response ${lost} lost`).toEqual(
          Array(runCount).fill({ state: 'completed', windows: expect.any(Number), open: 0 }),
        );
        expect(storedRuns.length, `response ${lost} lost`).toBe(runCount);
        expect(await stored(context)).toMatchObject([{ ratio_new: `${ratio}` }]);
      }
    },
    120_000,
  );

  test.runIf(isSlowLayer)(
    'follow from notices, decisions and owners of symbols, in whatever order those come',
    async () => {
      const A = 'INE000A01010';
      const B = 'INE000B01018';
      const id = 'NSE:ABC:2024-01-10:split';
      const steps: Readonly<Record<string, (context: Context) => Promise<unknown>>> = {
        'a list': (context) => importInto(context, [list(['ABC', '2024-01-10', '2:1'])]),
        'another list': (context) =>
          importInto(context, [list(['ABC', '2024-01-10', '5:1'], ['OLD', '2024-01-10', '5:1'])]),
        prices: (context) => importInto(context, [prices('2024-01-09', { ABC: A, XYZ: B })]),
        'a later day': (context) => importInto(context, [prices('2024-01-11', { ABC: A })]),
        'an earlier day': (context) => importInto(context, [prices('2023-06-01', { OLD: A, XYZ: B })]),
        'another company under the symbol': (context) =>
          importInto(context, [prices('2024-02-01', { ABC: B })]),
        'earlier days of that company': (context) => importInto(context, [prices('2023-01-02', { XYZ: B })]),
        'the symbol given back': (context) => importInto(context, [prices('2024-02-05', { ABC: A })]),
        'prices of the other exchange': (context) =>
          importInto(context, [pricesOfBse('2024-01-09', { ABCLTD: [500_001, A], XYZ: [500_002, B] })]),
        'its list': (context) =>
          importInto(context, [
            write([
              'exchange,symbol,ex_date,kind,ratio,note',
              'BSE,ABCLTD,2024-01-10,split,5:1,',
              'BSE,XYZ,2024-03-01,bonus,1:1,',
            ]),
          ]),
        'a decision': (context) => decideEvent(context, id, { new: 3, old: 1 }),
        'the decision taken back': (context) => decideEvent(context, id, 'reset').catch(() => null),
      };
      const names = Object.keys(steps);
      await forAllAsync(
        [fc.shuffledSubarray(names, { minLength: names.length })],
        { numRuns: 2, endOnFailure: true },
        async (order) => {
          const context = await openStore();
          for (const name of order) {
            await steps[name]?.(context);
            const kept = await stored(context);
            await context.db.pool.query('delete from etl.derived');
            await updateDerived(context);
            expect(await stored(context), `after ${name}`).toEqual(kept);
          }
        },
      );
    },
  );
});

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dayAt, eachDay } from '../../../src/core/days.ts';
import { startServer } from '../../support/http-server.ts';
import { importInto } from '../../support/import-support.ts';
import { backfill, openPipeline, runToEnd } from '../../support/pipeline.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { zip } from '../../support/zip.ts';

type SourceRecord = Readonly<Record<string, unknown>>;

const record = (symbol: string, day: string, price: number): SourceRecord => ({
  TradDt: day.replace(/(\d+)-(\d+)-(\d+)/, '$2-$3-$1'),
  Sgmt: 'CM',
  Src: 'NSE',
  FinInstrmId: symbol.length,
  Symbol: symbol,
  SctySrs: 'EQ',
  FinInstrmNm: `${symbol} LTD`,
  OpenPrice: price,
  HighPrice: price,
  LowPrice: price,
  ClosePrice: price,
  TTQ: 10 * price,
  TtlTrfVal: 10 * price * price,
  TotalTradesNo: 5,
  SavedAt: '08-29-2025 21:02:33',
});

/** A source of bhav copies, which a test fills, and the days that each call asked for. */
async function openSource() {
  const days = new Map<string, readonly SourceRecord[]>();
  const calls: string[][] = [];
  const sourceUrl = await startServer((request, response) => {
    const params = new URL(request.url ?? '', 'http://source').searchParams;
    const day = (name: string) => dayAt(Number(params.get(name)), 'Asia/Kolkata');
    const requestedDays = eachDay(day('from'), day('to'));
    calls.push(requestedDays);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ Value: requestedDays.flatMap((day) => days.get(day) ?? []) }));
  });
  const settings = { EOD_MAX_REJECT_SHARE: '50%' };
  return { days, calls, pipeline: await openPipeline({ sourceUrl, settings }) };
}

const prices = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'] };
const DAY = '2025-08-29';
const OTHERS = ['TCS', 'INFY', 'SBIN', 'ITC'].map((symbol) => record(symbol, DAY, 50));

test('a record that is zero where another has values is not used, and one that contradicts another changes nothing', async () => {
  const { days, pipeline } = await openSource();
  const load = (...records: SourceRecord[]) => {
    days.set(DAY, [...OTHERS, ...records]);
    return runToEnd(pipeline, backfill({ ...prices, from: DAY, to: DAY, force: true }));
  };
  const stored = async () => {
    const { rows } = await pipeline.db.pool.query<{ close: string; revision: number }>(
      `select close_price::text as close, revision from market.bhavcopy_cm where symbol = 'RELIANCE'`,
    );
    return rows;
  };
  const full = record('RELIANCE', DAY, 100);
  const zeros = { ...record('RELIANCE', DAY, 0), TotalTradesNo: 5 };
  const first = await load(full, zeros);
  expect(first).toMatchObject({ state: 'completed', inserted: 5, duplicate: 1, rejected: 0 });
  expect(first.warnings.map(({ warning }) => warning)).toEqual([
    `several records of NSE RELIANCE EQ ${DAY}: one that is zero or blank where another has values was not used`,
  ]);
  expect(await stored()).toEqual([{ close: '100', revision: 1 }]);

  const second = await load(full, { ...full, ClosePrice: 101 }, { ...full, ClosePrice: 102 });
  expect(second).toMatchObject({ state: 'completed', unchanged: 4, updated: 0, withdrawn: 0, rejected: 3 });
  expect(await stored()).toEqual([{ close: '100', revision: 1 }]);
  const { rows: rejects } = await pipeline.db.pool.query(
    `select position, record ->> 'closePrice' as close, problems -> 0 ->> 'message' as problem
       from etl.rejects where resolved_at is null order by position`,
  );
  expect(rejects).toEqual([
    { position: 4, close: '100', problem: expect.stringContaining('"101" in record 5') },
    { position: 5, close: '101', problem: expect.stringContaining('"100" in record 4') },
    { position: 6, close: '102', problem: expect.stringContaining('"100" in record 4') },
  ]);

  expect(await load({ ...full, ClosePrice: 102 })).toMatchObject({ updated: 1, rejected: 0 });
  expect(await stored()).toEqual([{ close: '102', revision: 2 }]);
});

test('a trading day that is empty is a gap, and the only one that is requested again', async () => {
  const { days, calls, pipeline } = await openSource();
  const range = { from: '2025-08-28', to: '2025-09-02' };
  const trading = ['2025-08-28', '2025-08-29', '2025-09-01', '2025-09-02'];
  for (const day of trading) if (day !== DAY) days.set(day, [record('TCS', day, 50)]);
  const request = backfill({ ...prices, ...range });
  const first = await runToEnd(pipeline, request);
  expect(first.emptySessions).toMatchObject([{ sessions: 1, from: DAY, to: DAY }]);
  days.set(DAY, OTHERS);
  calls.length = 0;
  expect(await runToEnd(pipeline, request)).toMatchObject({ inserted: 4, emptySessions: [] });
  expect(calls).toEqual([[DAY]]);
});

/** A bhav copy of one share: each row has a day and a close. */
const priceFile = (...rows: readonly (readonly [day: string, close: string])[]) =>
  [
    'TradDt,Sgmt,Src,TckrSymb,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd',
    ...rows.map(
      ([day, close]) => `${day},CM,NSE,RELIANCE,EQ,1380,1390,1370,${close},1377,1376,100,137700,10`,
    ),
    '',
  ].join('\n');

test('of a file with two trading days the one without contradictions is loaded, and the other is named', async () => {
  const { pipeline } = await openSource();
  const path = join(temporaryFolder(), 'BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv');
  writeFileSync(path, priceFile([DAY, '1377.00'], [DAY, '1378.00'], ['2025-08-28', '1355.00']));
  const { files, state } = await importInto(pipeline, [path]);
  expect(state).toBe('failed');
  expect(files[0]?.error).toContain(
    `is "1377.00", and "1378.00" in record 1, of the same key NSE RELIANCE EQ ${DAY}`,
  );
  expect(files[0]?.error).toMatch(
    /^NSE 2025-08-29: 2 of 2 records were rejected .*; loaded of it: NSE 2025-08-28$/,
  );
  const { rows } = await pipeline.db.pool.query('select trade_date::text as day from market.bhavcopy_cm');
  expect(rows).toEqual([{ day: '2025-08-28' }]);
});

test('of an archive with two data sets of a day, what is rejected and what is loaded have their names', async () => {
  const { pipeline } = await openSource();
  const path = join(temporaryFolder(), 'both.zip');
  const prices = priceFile(['2025-09-12', '1377.00'], ['2025-09-12', '1378.00']);
  const deliveries = readFileSync('test/fixtures/cookbook/MTO_12092025.DAT', 'utf8');
  writeFileSync(
    path,
    zip([
      { name: 'BhavCopy_NSE_CM_0_0_0_20250912_F_0000.csv', text: prices },
      { name: 'MTO_12092025.DAT', text: deliveries },
    ]),
  );
  const { files } = await importInto(pipeline, [path]);
  expect(files[0]?.error).toMatch(
    /^Prices, bhavcopy_cm NSE 2025-09-12: 2 of 2 .*; loaded of it: Deliveries, deliveries NSE 2025-08-01, /,
  );
});

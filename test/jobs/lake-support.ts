import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LakeResult } from '../../src/load/export/lake.ts';
import type { Manifest } from '../../src/load/export/lake-manifest.ts';
import { runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { importInto, newFile, openStore } from './import-support.ts';

const HEADER =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty';

let files = 0;

/** Bhav copies of NSE: a file a day, of `day symbol isin close`. */
export function bhavCopies(lines: readonly string[]): string[] {
  return [...new Set(lines.map((line) => line.slice(0, 10)))].map((day) => {
    const rows = lines
      .filter((line) => line.startsWith(day))
      .map((line) => {
        const [, symbol, isin, close] = line.split(' ');
        const prices = Array(6).fill(close).join();
        return `${day},${day},CM,NSE,STK,1,${isin},${symbol},EQ,${symbol} LTD,${prices},100,${Number(close) * 100},3,F1,1`;
      });
    files += 1;
    return newFile(`nse-${files}-${day}.csv`, [HEADER, ...rows]);
  });
}

export const events = (...lines: string[]) => {
  files += 1;
  return newFile(`events-${files}.csv`, ['exchange,symbol,ex_date,kind,ratio,note', ...lines]);
};

const ISIN = { ALPHA: 'INE000A01011', BETA: 'INE000B01019', OMEGA: 'INE000C01017' };

export const sessions = (day: string, price: number) =>
  Object.entries(ISIN).map(([symbol, isin], at) => `${day} ${symbol} ${isin} ${price + at * 10}`);

/** A database with prices of some days, and the folder of a lake. */
export async function openLake() {
  const { url } = await testDatabase();
  const env = { DATABASE_URL: url };
  const context = await openStore(url);
  const lake = join(temporaryFolder(), 'lake');
  await importInto(
    context,
    bhavCopies([
      '2022-05-10 OMEGA INE000C01017 31.5',
      ...['2023-12-28', '2023-12-29', '2024-01-02', '2024-01-03'].flatMap((day, at) =>
        sessions(day, 100 + at),
      ),
    ]),
  );
  await importInto(context, [events('NSE,BETA,2024-01-02,split,5:1,')]);
  const exported = async (...args: string[]) =>
    (await runJson<LakeResult>(['export', ...args], { cwd: temporaryFolder(), env })).json;
  return { context, env, lake, exported };
}

export const manifestOf = (folder: string) =>
  JSON.parse(readFileSync(join(folder, '_manifest.json'), 'utf8')) as Manifest;

import { testDatabase } from '../support/database.ts';
import { importInto, newFile, openStore } from '../support/import-support.ts';

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

export const tradingDays = (day: string, price: number) =>
  Object.entries(ISIN).map(([symbol, isin], at) => `${day} ${symbol} ${isin} ${price + at * 10}`);

/** A database with prices of some days and a split, to export from. */
export async function openExports() {
  const { url } = await testDatabase();
  const context = await openStore(url);
  await importInto(
    context,
    bhavCopies([
      '2022-05-10 OMEGA INE000C01017 31.5',
      ...['2023-12-28', '2023-12-29', '2024-01-02', '2024-01-03'].flatMap((day, at) =>
        tradingDays(day, 100 + at),
      ),
    ]),
  );
  await importInto(context, [events('NSE,BETA,2024-01-02,split,5:1,')]);
  return { context, url, env: { DATABASE_URL: url } };
}

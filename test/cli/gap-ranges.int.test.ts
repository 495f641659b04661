import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { runCli } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const UDIFF =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,XpryDt,FininstrmActlXpryDt,StrkPric,OptnTp,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,UndrlygPric,SttlmPric,OpnIntrst,ChngInOpnIntrst,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty,Rmks,Rsvd1,Rsvd2,Rsvd3,Rsvd4';

test('where nothing is missing, gaps says of which days, for each data set if they differ', async ({
  url,
}) => {
  const options = { cwd: temporaryFolder(), env: { DATABASE_URL: url } };
  const importDay = async (exchange: string, day: string) => {
    const line = `${day},${day},CM,${exchange},STK,500001,INE000A01010,A,EQ,,,,,A,100,100,100,100,100,100,,,,,40,4000,8,F1,1,,,,,`;
    writeFileSync(join(options.cwd, 'day.csv'), `${UDIFF}\n${line}\n`);
    await runCli(['import', 'day.csv'], options);
  };
  const gaps = async () => (await runCli(['gaps'], options)).stdout;
  await importDay('NSE', '2025-09-08');
  expect(await gaps()).toBe('nothing is missing, 2025-09-08 to 2025-09-08\n');
  await importDay('NSE', '2025-09-09');
  await importDay('BSE', '2025-09-05');
  expect(await gaps()).toBe(
    [
      'nothing is missing, 2025-09-05 to 2025-09-09',
      'each data set from its first day to its last:',
      '  2025-09-05: Prices, bhavcopy_cm BSE',
      '  2025-09-08 to 2025-09-09: Prices, bhavcopy_cm NSE\n',
    ].join('\n'),
  );
});

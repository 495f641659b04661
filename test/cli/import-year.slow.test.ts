import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import type { ImportReport } from '../../src/jobs/import/import-files.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { zip } from '../support/zip.ts';

const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ');

/** Monday to Friday of 2022. */
const TRADING_DAYS = Array.from({ length: 365 }, (_, at) => new Date(Date.UTC(2022, 0, 1 + at))).filter(
  (day) => ![0, 6].includes(day.getUTCDay()),
);

const SYMBOLS = ['ACC', 'M&M', 'TCS'];

/** The files of a trading day, as the exchange publishes them, by path. */
function filesOf(date: Date, at: number): Record<string, string | Buffer> {
  const [year, month, day] = date.toISOString().slice(0, 10).split('-') as [string, string, string];
  const writtenDay = `${day}-${MONTHS[Number(month) - 1]}-${year}`;
  const joined = writtenDay.replaceAll('-', '');
  const lines = (header: string, row: (symbol: string, at: number) => string) =>
    `${header}\n${SYMBOLS.map(row).join('\n')}\n`;
  const zipOf = (name: string, text: string) => zip([{ name, text }]);
  return {
    [`nse/cm${joined}bhav.csv.zip`]: zipOf(
      `cm${joined}bhav.csv`,
      lines(
        'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN,',
        (symbol, no) =>
          `${symbol},EQ,100,101,99,100,100,100,${at + no},${100 * (at + no)},${writtenDay},5,INE00${no}A01018,`,
      ),
    ),
    [`nse/sec_bhavdata_full_${day}${month}${year}.csv`]: lines(
      'SYMBOL, SERIES, DATE1, PREV_CLOSE, OPEN_PRICE, HIGH_PRICE, LOW_PRICE, LAST_PRICE, CLOSE_PRICE, AVG_PRICE, TTL_TRD_QNTY, TURNOVER_LACS, NO_OF_TRADES, DELIV_QTY, DELIV_PER',
      (symbol, no) =>
        `${symbol}, EQ, ${writtenDay}, 100, 100, 101, 99, 100, 100, 100, ${at + no}, ${((at + no) / 1000).toFixed(2)}, 5, ${at}, 50.00`,
    ),
    [`nse/PR${day}${month}${year.slice(2)}.zip`]: zip([
      {
        name: `bh${day}${month}${year.slice(2)}.csv`,
        text: 'SYMBOL,SERIES,SECURITY,HIGH/LOW,INDEX FLAG\nACC,EQ,ACC,H, \nACC,EQ,ACC,L, \n',
      },
      {
        name: `HL${day}${month}${year.slice(2)}.csv`,
        text: 'SECURITY,NEW,PREVIOUS,NEW_STATUS\nACC,101,100,H\n',
      },
      {
        name: `Gl${day}${month}${year.slice(2)}.csv`,
        text: 'GAIN_LOSS,SECURITY,CLOSE_PRIC,PREV_CL_PR,PERCENT_CG\nG,ACC,2,1,100\n',
      },
    ]),
    [`fo/fo${joined}bhav.csv.zip`]: zipOf(
      `fo${joined}bhav.csv`,
      lines(
        'INSTRUMENT,SYMBOL,EXPIRY_DT,STRIKE_PR,OPTION_TYP,OPEN,HIGH,LOW,CLOSE,SETTLE_PR,CONTRACTS,VAL_INLAKH,OPEN_INT,CHG_IN_OI,TIMESTAMP,',
        (symbol, no) =>
          `FUTSTK,${symbol},29-Dec-2022,0,XX,100,101,99,100,100,${at + no},1.00,${75 * at},0,${writtenDay},`,
      ),
    ),
    [`fo/fao_participant_oi_${day}${month}${year}.csv`]: `"Participant wise Open Interest (no. of contracts) in Equity Derivatives as on ${MONTHS[Number(month) - 1]} ${day},${year}",,\nClient Type,Future Index Long,Total Long Contracts\t\nFII,${at},${2 * at}\nPro,1,2\n`,
    [`fo/fo_secban_${day}${month}${year}.csv`]: `Securities in Ban For Trade Date ${writtenDay}:${at % 2 === 0 ? ' NIL\n' : '\n1,ACC\n'}`,
    [`index/ind_close_all_${day}${month}${year}.csv`]: `Index Name,Index Date,Open Index Value,High Index Value,Low Index Value,Closing Index Value,Points Change,Change(%)\nNifty 50,${day}-${month}-${year},1,2,1,${at}.5,1,.5\n`,
  };
}

const LISTS: Readonly<Record<string, string>> = {
  'series_change.csv':
    'Symbol,Security,From Series,To Series,Change Date,Remarks\nACC,ACC,EQ,BE,20-AUG-2022,\n',
  'ind_nifty500list.csv':
    'Company Name,Industry,Symbol,Series,ISIN Code\nACC Ltd.,Construction Materials,ACC,EQ,INE000A01018\n',
  'Bulk-Deals-01-01-2022-to-31-12-2022.csv':
    'Date,Symbol,Security Name,Client Name,Buy/Sell,Quantity Traded,Trade Price / Wght. Avg. Price,Remarks\n03-JAN-2022,ACC,ACC,A FUND,BUY,100,100.00,-\n03-JAN-2022,ACC,ACC,A FUND,BUY,100,100.00,-\n',
};

/** The hash of each file of a folder. */
const hashes = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path, createHash('sha256').update(readFileSync(path)).digest('hex')]);

test('a year of everything that is published is loaded by one command, to the sums of its files', async () => {
  const cwd = temporaryFolder();
  const { url } = await testDatabase();
  const write = (path: string, content: string | Buffer) => {
    const file = join(cwd, 'archive', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  };
  for (const [at, date] of TRADING_DAYS.entries())
    for (const [path, content] of Object.entries(filesOf(date, at))) write(path, content);
  for (const [name, text] of Object.entries(LISTS)) write(join('lists', name), text);
  const before = hashes(join(cwd, 'archive'));
  const options = { cwd, env: { DATABASE_URL: url } };
  const { code, json, stderr } = await runJson<ImportReport>(['import', 'archive'], options);
  expect({ code, state: json.state, left: json.left }).toEqual({ code: 0, state: 'completed', left: 0 });
  expect(json.files.filter(({ state }) => state !== 'loaded')).toEqual([]);
  const all = before.length.toLocaleString('en');
  expect(stderr).toContain(`run 1: ${all}/${all} files`);
  expect(stderr).toContain(`${TRADING_DAYS.length} files not recognised:`);
  const days = TRADING_DAYS.length;
  const sum = TRADING_DAYS.reduce((all, _, at) => all + 3 * at + 3, 0);
  const count = async (table: string, expression = 'count(*)') =>
    (await query<{ count: number }>(url, `select (${expression})::float8 as count from market.${table}`))[0]
      ?.count;
  expect({
    prices: await count('bhavcopy_cm'),
    quantity: await count('bhavcopy_cm', 'sum(traded_quantity)'),
    deliveries: await count('deliveries'),
    bands: await count('circuit_breakers'),
    highs: await count('new_highs_lows'),
    contracts: await count('bhavcopy_fo', 'sum(traded_quantity)'),
    interest: await count('bhavcopy_fo', 'sum(open_interest)'),
    positions: await count('participant_positions'),
    bans: await count('banned_securities'),
    indices: await count('index_values'),
    deals: await count('bulk_deals'),
    changes: await count('series_changes'),
    sectors: await count('sectoral_classification'),
  }).toEqual({
    prices: 3 * days,
    quantity: sum,
    deliveries: 3 * days,
    bands: 2 * days,
    highs: days,
    contracts: sum,
    interest: TRADING_DAYS.reduce((all, _, at) => all + 3 * 75 * at, 0),
    positions: 2 * days,
    bans: Math.floor(days / 2),
    indices: days,
    deals: 2,
    changes: 1,
    sectors: 1,
  });
  const again = await runCli(['import', 'archive'], options);
  expect(again.stdout.replaceAll(',', '')).toContain(
    `${before.length} files: 0 loaded ${before.length} skipped`,
  );
  expect(hashes(join(cwd, 'archive'))).toEqual(before);
}, 600_000);

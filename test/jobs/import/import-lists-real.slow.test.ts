import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { csvOf, importInto, openStore, query } from '../../support/import-support.ts';

const DATA = fileURLToPath(new URL('../../../../shared/data/', import.meta.url));
const FOLDERS = ['circuit', 'series_change', 'sector', 'pledge', 'derivatives'].map((name) =>
  join(DATA, name),
);
const present = FOLDERS.every((folder) => existsSync(folder));
if (!present) process.stdout.write('../shared/data is not here: its lists are not imported\n');

/** Without a sector or without a company. */
const UNKNOWN = ['bse_security_list.csv', 'nifty750_fundamentals.csv'];

/** The lines of a file below its header, each as its cells; none of these files has a comma in a cell. */
const cells = (text: string) =>
  text
    .trim()
    .split(/\r?\n/)
    .slice(1)
    .map((line) => line.split(',').map((cell) => cell.trim()));

const read = (folder: string, name: string) => cells(readFileSync(join(DATA, folder, name), 'utf8'));

describe.runIf(present)('lists and derivatives of the exchanges, every one of them', () => {
  test('are stored as the files have them', async () => {
    const context = await openStore();
    const report = await importInto(context, FOLDERS);
    expect(report).toMatchObject({ state: 'completed', rejected: 0, updated: 0, withdrawn: 0 });
    expect(report.files.filter(({ state }) => state === 'unknown').map(({ file }) => basename(file))).toEqual(
      UNKNOWN,
    );

    const bands = readdirSync(join(DATA, 'circuit')).flatMap((name) =>
      read('circuit', name).map(([symbol, series, , band]) =>
        [`${name.slice(2, 8)}`, symbol, series, band].join(),
      ),
    );
    const storedBands = await query<{ row: string }>(
      context,
      `select concat_ws(',', to_char(trade_date, 'DDMMYY'), symbol, series, band) as row from market.circuit_breakers`,
    );
    expect(storedBands.map(({ row }) => row).sort()).toEqual(bands.sort());

    const fo = cells((await csvOf(join(DATA, 'derivatives', 'fo13JUN2022bhav.csv.zip'))).toString());
    const sum = (at: number) => fo.reduce((all, row) => all + BigInt(row[at] ?? 0), 0n).toString();
    expect(
      await query(
        context,
        `select count(*)::int, sum(traded_quantity)::text as quantity, sum(open_interest)::text as interest,
                sum(open_interest_change)::text as change, round(sum(turnover))::text as turnover
           from market.bhavcopy_fo where exchange = 'NFO' and trade_date = '2022-06-13'`,
      ),
    ).toEqual([
      {
        count: 63_635,
        quantity: '76921833',
        interest: sum(12),
        change: sum(13),
        turnover: fo
          .reduce((all, row) => all + BigInt(Math.round(Number(row[11]) * 100)) * 1_000n, 0n)
          .toString(),
      },
    ]);

    const pledges = (
      JSON.parse(readFileSync(join(DATA, 'pledge', 'pledged_2026-08-14.json'), 'utf8')) as {
        data: Record<string, string | null>[];
      }
    ).data.map((pledge) =>
      [pledge.comName, pledge.totIssuedShares, pledge.numSharesPledged, pledge.noOfSecPledgeShare].join('|'),
    );
    const storedPledges = await query<{ row: string }>(
      context,
      `select concat(company_name, '|', total_issued_shares, '|', depository_pledged_shares, '|', depository_pledged_value_crore) as row
         from market.company_pledges`,
    );
    expect(storedPledges.map(({ row }) => row).sort()).toEqual(pledges.sort());

    const scrips = read('sector', 'ListOfScrips.csv').map((row) =>
      [row[0], row[1], row[6] === 'NA' ? '' : row[6], row[7]].join('|').replaceAll('&amp;', '&'),
    );
    const storedScrips = await query<{ row: string }>(
      context,
      `select concat(scrip_code, '|', symbol, '|', isin, '|', industry) as row
         from market.sectoral_classification where exchange = 'BSE'`,
    );
    expect(storedScrips.map(({ row }) => row).sort()).toEqual(scrips.sort());
    const constituents = new Set(
      ['ind_nifty500list.csv', 'nifty750list.csv'].flatMap((name) =>
        read('sector', name).map(([, sector, symbol, , isin]) => [symbol, isin, sector].join('|')),
      ),
    );
    const storedConstituents = await query<{ row: string }>(
      context,
      `select concat_ws('|', symbol, isin, sector) as row from market.sectoral_classification where exchange = 'NSE'`,
    );
    expect(storedConstituents.map(({ row }) => row).sort()).toEqual([...constituents].sort());
    expect(await query(context, 'select count(*)::int from market.industry_classification')).toEqual([
      { count: 197 },
    ]);
    const again = await importInto(context, FOLDERS.toReversed(), { force: true });
    expect(again).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0 });
  }, 180_000);
});

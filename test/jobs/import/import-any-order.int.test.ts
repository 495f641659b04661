import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { addDays } from '../../../src/core/days.ts';
import type { Context } from '../../../src/jobs/context.ts';
import { forAllAsync } from '../../support/for-all.ts';
import {
  asFullBhavcopy,
  importInto,
  NSE_UDIFF,
  newFile,
  openStore,
  query,
  test,
} from '../../support/import-support.ts';
import { replayAnew } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** What a file says of a share: everything that files of other formats may say otherwise. */
interface ShareFact {
  readonly symbol: string;
  readonly last: number;
  readonly quantity: number;
  readonly delivered: number | null;
}

interface File {
  readonly format: 'udiff' | 'bhav' | 'full' | 'mto';
  /** Its name has a day after that of the trading day: it was published again. */
  readonly isLater: boolean;
  /** Which download of the file it is. */
  readonly copy: number;
  readonly facts: readonly ShareFact[];
}

const HEADERS = {
  udiff:
    'TradDt,Sgmt,Src,ISIN,TckrSymb,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd',
  bhav: 'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN',
  full: 'SYMBOL,SERIES,DATE1,PREV_CLOSE,OPEN_PRICE,HIGH_PRICE,LOW_PRICE,LAST_PRICE,CLOSE_PRICE,AVG_PRICE,TTL_TRD_QNTY,TURNOVER_LACS,NO_OF_TRADES,DELIV_QTY,DELIV_PER',
};

function linesFor({ format, facts }: File, day: string): string[] {
  const [year, month, date] = day.split('-');
  if (format === 'mto') {
    const records = facts.map(
      (fact, at) => `20,${at},${fact.symbol},EQ,${fact.quantity},${fact.delivered ?? '-'},-`,
    );
    return ['Delivery Position', `10,MTO,${date}${month}${year},1,${records.length}`, ...records];
  }
  const row = ({ symbol, last, quantity, delivered }: ShareFact) => {
    const turnover = 100 * quantity;
    if (format === 'udiff') {
      return `${day},CM,NSE,INE1,${symbol},EQ,100,110,90,100,${last},99,${quantity},${turnover},7`;
    }
    return format === 'bhav'
      ? `${symbol},EQ,100,110,90,100,${last},99,${quantity},${turnover},${date}-${month}-${year},7,INE1`
      : `${symbol},EQ,${date}-${month}-${year},99,100,110,90,${last},100,100,${quantity},${turnover / 1e5},7,${delivered ?? '-'},-`;
  };
  return [HEADERS[format], ...facts.map(row)];
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];

function write(file: File, day: string): string {
  const [year = '', month = '', date = ''] = (file.isLater ? addDays(day, 1) : day).split('-');
  const names = {
    udiff: `BhavCopy_NSE_CM_0_0_0_${year}${month}${date}_F_0000`,
    bhav: `cm${date}${MONTHS[Number(month) - 1]}${year}bhav`,
    full: `sec_bhavdata_full_${date}${month}${year}`,
    mto: `MTO_${date}${month}${year}`,
  };
  const copy = file.copy === 0 ? '' : ` (${file.copy})`;
  return newFile(
    `${names[file.format]}${copy}.${file.format === 'mto' ? 'DAT' : 'csv'}`,
    linesFor(file, day),
  );
}

/** What is stored of a trading day, without its day. */
async function stored(context: Context, day: string) {
  const of = (table: string) =>
    query(
      context,
      `select to_jsonb(t) - '{trade_date,first_loaded_at,last_changed_at,revision,run_id,load_id}'::text[] as row
         from market.${table} t where trade_date = '${day}' order by exchange, symbol, series`,
    );
  return { prices: await of('bhavcopy_cm'), deliveries: await of('deliveries') };
}

const FACTS = fc.uniqueArray(
  fc.record({
    symbol: fc.constantFrom('A', 'B', 'C', 'D'),
    last: fc.integer({ min: 90, max: 93 }),
    quantity: fc.constantFrom(1_000_000, 2_000_000),
    delivered: fc.option(fc.constantFrom(500_000, 600_000)),
  }),
  { minLength: 1, selector: ({ symbol }) => symbol },
);

const FILES = fc.uniqueArray(
  fc.record({
    format: fc.constantFrom('udiff', 'bhav', 'full', 'mto'),
    isLater: fc.boolean(),
    copy: fc.constantFrom(0, 1, 2),
    facts: FACTS,
  }) satisfies fc.Arbitrary<File>,
  { minLength: 2, maxLength: 5, selector: ({ format, isLater, copy }) => `${format} ${isLater} ${copy}` },
);

/** Files in another order, in one import or several. */
const IMPORTS = FILES.chain((files) =>
  fc.record({
    files: fc.constant(files),
    order: fc.shuffledSubarray(files, { minLength: files.length }),
    begins: fc.array(fc.boolean(), { minLength: files.length, maxLength: files.length }),
  }),
);

describe('the order in which the files of a trading day are imported', () => {
  test('never matters: whatever the formats, one by one or together, and after a replay into emptied tables', async () => {
    const context = await openStore();
    const expected = new Map<string, unknown>();
    await forAllAsync([IMPORTS], { seed: 41, numRuns: 2 }, async ({ files, order, begins }) => {
      const [severally, together] = [1, 2].map((at) => addDays('2021-01-01', expected.size + at)) as [
        string,
        string,
      ];
      const imports: string[][] = [[]];
      for (const [at, file] of order.entries()) {
        if (begins[at] === true) imports.push([]);
        imports.at(-1)?.push(write(file, severally));
      }
      for (const paths of imports) {
        if (paths.length === 0) continue;
        const report = await importInto(context, paths);
        expect(report.state).toBe('completed');
        for (const file of report.files) {
          const { inserted, updated, unchanged, stale, duplicate, rejected } = file;
          expect(inserted + updated + unchanged + stale + duplicate + rejected).toBe(file.rows);
        }
      }
      await importInto(
        context,
        files.map((file) => write(file, together)),
      );
      const rows = await stored(context, together);
      expect(await stored(context, severally)).toEqual(rows);
      expected.set(severally, rows).set(together, rows);
    });
    await replayAnew(context);
    for (const [day, rows] of expected) expect(await stored(context, day)).toEqual(rows);
  }, 180_000);
});

const bhav = (last: number) => [
  HEADERS.bhav,
  ...['A', 'B'].map((symbol) => `${symbol},EQ,1,2,1,1,${last},1,10,10,04-JAN-2021,1,INE1`),
];
const lastPrice = async (context: Context) =>
  query(context, 'select distinct last_price::int as last from market.bhavcopy_cm');

describe('two files of a trading day that differ', () => {
  test('the second download counts, whichever is imported first', async () => {
    const folder = temporaryFolder();
    mkdirSync(folder, { recursive: true });
    const [older, newer] = ['X.csv', 'X (1).csv'].map((name) => join(folder, name)) as [string, string];
    writeFileSync(older, `${bhav(1).join('\n')}\n`);
    writeFileSync(newer, `${bhav(2).join('\n')}\n`);
    for (const imports of [[[newer], [older]], [[older], [newer]], [[folder]]]) {
      const context = await openStore();
      for (const paths of imports) await importInto(context, paths);
      expect(await lastPrice(context)).toEqual([{ last: 2 }]);
    }
  });

  test('the same name again, or another name, is the later one: nothing else decides', async ({
    context,
  }) => {
    for (const [name, last] of [
      ['X.csv', 1],
      ['X.csv', 2],
      ['cm04JAN2021bhav.csv', 3],
      ['corrected.csv', 4],
      ['cm04JAN2021bhav.csv', 5],
    ] as const) {
      await importInto(context, [newFile(name, bhav(last))]);
      expect(await lastPrice(context)).toEqual([{ last }]);
    }
  });

  test('what only one of them has is no difference, nor is rounding', async ({ context }) => {
    await importInto(context, [NSE_UDIFF]);
    const report = await importInto(context, [newFile('full.csv', asFullBhavcopy(NSE_UDIFF))]);
    expect(report).toMatchObject({ unchanged: 100, stale: 0, warnings: [] });
    const again = await importInto(context, [NSE_UDIFF], { force: true });
    expect(again).toMatchObject({ unchanged: 100, warnings: [] });
  });
});

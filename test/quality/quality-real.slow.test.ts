import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { checkQuality } from '../../src/quality/check-quality.ts';
import { listFindings } from '../../src/state/findings.ts';
import { bhavSource } from '../support/bhav-source.ts';
import { importInto, linesOf, newFile, openStore } from '../support/import-support.ts';
import { backfill, openPipeline, runToEnd } from '../support/pipeline.ts';

const DATA = fileURLToPath(new URL('../../../shared/data/bhavcopy', import.meta.url));
const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') };
const RANGE = { from: '2025-08-29', to: '2025-09-11' };

const FULL = fileURLToPath(new URL('../../../shared/data/sec_bhavdata_full', import.meta.url));

const there = existsSync(DATA);
if (!there) console.log('../shared/data/bhavcopy is not there: real bhav copies are not reconciled');

test.runIf(there)('real bhav copies keep the rules; one that is spoiled does not', async () => {
  const pipeline = await openPipeline({ sandbox: bhavSource(DATA), clock });
  const report = await runToEnd(pipeline, backfill({ ...RANGE, operations: ['GetBhavCopyCM'] }));
  const { pool } = pipeline.db;
  const look = async () => {
    await checkQuality(pipeline, RANGE);
    return (await listFindings(pipeline.db.drizzle, { limit: 1_000 })).findings;
  };
  expect(report.inserted).toBeGreaterThan(26_000);
  // No list of corporate actions is there to explain what these three shares did: a bonus, a split, a share that seldom trades, and one that opened far off.
  const gaps = await look();
  expect(gaps.map(({ check, date, instrument, found }) => [check, date, instrument, found])).toEqual([
    [
      'unexplained_gap',
      '2025-09-11',
      'HAMPS MT',
      'open 29.4, close 29.4; as if prices before were to be multiplied by 1:2; 2 trades; turnover 1.0 times that of the 20 trading days before',
    ],
    [
      'unexplained_gap',
      '2025-09-11',
      'PATANJALI A',
      'open 601.15, close 599.15; as if prices before were to be multiplied by 1:3; 82286 trades; turnover 3.9 times that of the 20 trading days before',
    ],
    [
      'unexplained_gap',
      '2025-09-08',
      'STARLENT B',
      'open 5.9, close 6.52; as if prices before were to be multiplied by 3:4; 1252 trades; turnover 0.6 times that of the 20 trading days before',
    ],
    [
      'unexplained_gap',
      '2025-09-08',
      'TITANIN X',
      'open 2.69, close 2.54; as if prices before were to be multiplied by 1:10; 4340 trades; turnover 0.4 times that of the 20 trading days before; ISIN INE807M01023 before, INE807M01031 after',
    ],
  ]);

  // T+0 lines close outside their own range: allowed for them, and for no other line.
  const t0 = await pool.query(
    `select from market.bhavcopy_cm where (symbol like '%#' or series = 'T0')
        and close_price not between low_price and high_price`,
  );
  expect(t0.rowCount).toBeGreaterThan(0);

  // The comparison of closes is no empty one: some 18,000 lines have a neighbour the trading day before.
  await pool.query(
    "update market.bhavcopy_cm set close_price = close_price + 0.01 where exchange = 'BSE' and trade_date = '2025-09-09' and close_price < high_price and symbol not like '%#'",
  );
  const spoiled = (await look()).filter(({ check }) => check !== 'unexplained_gap');
  expect(new Set(spoiled.map(({ check }) => check))).toEqual(new Set(['previous_close']));
  // Lines that did not trade on the next day are found on the day they trade again.
  const days = spoiled.map(({ date, instrument }) => `${date} ${instrument === '' ? 'all' : 'one'}`);
  expect(new Set(days)).toEqual(new Set(['2025-09-10 all', '2025-09-11 one']));
  const finding = spoiled.find(({ instrument }) => instrument === '');
  expect(finding?.found).toMatch(/^\d{4} of \d{4} lines/);
});

test.runIf(there)(
  'of two months of NSE the one cut file is to blame for all findings but the gaps of splits and bonuses',
  async () => {
    const context = await openStore();
    await importInto(context, [FULL]);
    const look = async () => {
      await checkQuality(context, { from: '2024-10-01', to: '2024-11-30' });
      const { findings } = await listFindings(context.db.drizzle, { limit: 1_000 });
      // These files have no ISIN, and no list of changed symbols is imported here.
      expect(findings.filter(({ check }) => check === 'symbol_changes_missing')).toHaveLength(1);
      return findings
        .filter(({ check }) => check !== 'symbol_changes_missing')
        .map(({ check, date, instrument, found }) => ({ check, date, instrument, found }));
    };
    // Splits and bonuses of those weeks, of which no list is imported here, each with the ratio that its prices fit; and two moves on news.
    const gaps = await look();
    expect(gaps.filter(({ check }) => check !== 'unexplained_gap')).toEqual([]);
    const ratios = gaps.map(
      ({ date, instrument, found }) =>
        `${date} ${instrument} ${/ by ([\d:]+)/.exec(found ?? '')?.[1] ?? 'no'}`,
    );
    expect(ratios.sort()).toEqual([
      '2024-10-04 BMETRICS SM no',
      '2024-10-04 GPIL EQ 1:5',
      '2024-10-07 NBCC EQ no',
      '2024-10-08 POWERMECH EQ 1:2',
      '2024-10-09 JINDALSAW EQ 1:2',
      '2024-10-09 MOXSH SM no',
      '2024-10-11 HERCULES BE 3:10',
      '2024-10-15 VAISHALI EQ no',
      '2024-10-16 POCL EQ 1:2',
      '2024-10-18 HEG EQ 1:5',
      '2024-10-25 BEWLTD SM 1:4',
      '2024-10-25 PULZ ST 1:2',
      '2024-10-25 SUKHJITS EQ 1:2',
      '2024-10-28 DRREDDY EQ 1:5',
      '2024-10-28 MASKINVEST BE no',
      '2024-10-28 RELIANCE EQ 1:2',
      '2024-10-30 JASH EQ 1:5',
      '2024-10-30 KCK ST no',
      '2024-11-05 PREMIERPOL BE 1:5',
      '2024-11-08 MOTISONS BE 1:10',
      '2024-11-08 ROTO EQ 1:2',
      '2024-11-12 WEL EQ 1:10',
      '2024-11-14 JTLIND EQ 1:2',
      '2024-11-25 SHAKTIPUMP EQ no',
      '2024-11-29 EASEMYTRIP EQ no',
      '2024-11-29 RPEL EQ 1:2',
    ]);

    const whole = linesOf(join(FULL, 'sec_bhavdata_full_18112024.csv')).slice(0, -1);
    await importInto(context, [newFile('cut.csv', whole)]);
    const findings = (await look()).filter(({ check }) => check !== 'unexplained_gap');
    expect(findings.filter(({ instrument }) => instrument === '')).toEqual([
      {
        check: 'previous_close',
        date: '2024-11-19',
        instrument: '',
        found: '2280 of 2707 lines have another previous close',
      },
      { check: 'row_count', date: '2024-11-18', instrument: '', found: '379' },
    ]);
    const lines = findings.filter(({ instrument }) => instrument !== '');
    expect(lines).toHaveLength(44);
    expect(lines.every(({ check, date }) => check === 'previous_close' && date > '2024-11-19')).toBe(true);
  },
);

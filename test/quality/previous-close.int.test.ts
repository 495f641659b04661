import { expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { systemClock } from '../../src/core/clock.ts';
import { loadConfig } from '../../src/core/config.ts';
import { createLog } from '../../src/core/log.ts';
import type { Row } from '../../src/declaration/table.ts';
import type { Database } from '../../src/postgres/database.ts';
import { checkQuality } from '../../src/quality/check-quality.ts';
import { listFindings } from '../../src/state/findings.ts';
import { bhavRow, loadBhav, openStore } from '../load/support.ts';

const config = loadConfig({ EOD_LOG_LEVEL: 'silent' });
// A Wednesday to a Friday; NSE was open on each.
const [FIRST, SECOND, THIRD] = ['2025-09-10', '2025-09-11', '2025-09-12'] as const;
/** A trading day of NSE at a given close and previous close. */
interface Line {
  readonly day: string;
  readonly close: string;
  readonly previous: string;
  readonly more?: Row;
}

const line = (symbol: string, { day, close, previous, more }: Line): Row =>
  bhavRow({ symbol, trade_date: day, close_price: close, previous_close_price: previous, ...more });

async function loadDays(db: Database, rows: readonly Row[]): Promise<void> {
  for (const day of new Set(rows.map((row) => String(row.trade_date)))) {
    const coverage = [{ day, instrument: '', variant: '', state: 'loaded' as const, records: 1 }];
    await loadBhav(
      db,
      rows.filter((row) => row.trade_date === day),
      { coverage },
    );
  }
}

/** What is found of these lines in a database of their own. */
async function findingsOf(rows: readonly Row[]): Promise<string[]> {
  const db = await openStore();
  await loadDays(db, rows);
  return findings(db);
}

async function findings(db: Database): Promise<string[]> {
  const context = { config, log: createLog(config), db, clock: systemClock, calendar: loadCalendar() };
  await checkQuality(context, { from: FIRST, to: THIRD });
  const { findings } = await listFindings(db.drizzle, { check: 'previous_close', limit: 100 });
  return findings.map(
    ({ date, instrument, expected, found }) => `${date} ${instrument}: ${expected}, ${found}`,
  );
}

test('names a previous close that nothing explains', async () => {
  const findings = await findingsOf([
    line('AAA', { day: FIRST, close: '10.50', previous: '9' }),
    line('AAA', { day: SECOND, close: '11', previous: '10.5' }),
    line('AAA', { day: THIRD, close: '12', previous: '10.5' }),
  ]);
  expect(findings).toEqual(['2025-09-12 AAA EQ: 11 (close of 2025-09-11), 10.5']);
});

test('a line that did not trade yesterday is compared with its last trade', async () => {
  const findings = await findingsOf([
    line('AAA', { day: FIRST, close: '10.50', previous: '9' }),
    line('BBB', { day: SECOND, close: '1', previous: '0' }),
    line('AAA', { day: THIRD, close: '12', previous: '10' }),
  ]);
  expect(findings).toEqual(['2025-09-12 AAA EQ: 10.50 (close of 2025-09-10), 10']);
});

test('nothing is compared across a trading day that is not loaded', async () => {
  const findings = await findingsOf([
    line('AAA', { day: FIRST, close: '10.50', previous: '9' }),
    line('AAA', { day: THIRD, close: '12', previous: '10' }),
  ]);
  expect(findings).toEqual([]);
});

test('a first listing, a move between series and a corporate action explain a previous close', async () => {
  const db = await openStore();
  await loadDays(db, [
    // Listed anew: the previous close is 0.
    line('NEW', { day: FIRST, close: '5', previous: '4' }),
    line('NEW', { day: SECOND, close: '6', previous: '0' }),
    // BE, then a trading day in EQ, then BE again: the ISIN decides.
    line('MOVE', { day: FIRST, close: '7', previous: '7', more: { series: 'BE', isin: 'INE000A01010' } }),
    line('MOVE', { day: SECOND, close: '8', previous: '7', more: { isin: 'INE000A01010' } }),
    line('MOVE', { day: THIRD, close: '9', previous: '8', more: { series: 'BE', isin: 'INE000A01010' } }),
    // The series changes say so.
    line('TOLD', { day: FIRST, close: '7', previous: '7', more: { series: 'BE' } }),
    line('TOLD', { day: THIRD, close: '9', previous: '8.5', more: { series: 'BE' } }),
    // Split one to ten.
    line('SPLIT', { day: SECOND, close: '100', previous: '99' }),
    line('SPLIT', { day: THIRD, close: '11', previous: '10' }),
  ]);
  expect(await findings(db)).toEqual([
    '2025-09-12 SPLIT EQ: 100 (close of 2025-09-11), 10',
    '2025-09-12 TOLD BE: 7 (close of 2025-09-10), 8.5',
  ]);
  const audit = 'now(), now(), 1, 1, 1';
  await db.pool.query(
    `insert into market.series_changes (exchange, change_date, scrip_id, symbol, prev_series, to_series, first_loaded_at, last_changed_at, revision, run_id, load_id)
     values ('NSE', '${THIRD}', 'TOLD.B1', 'TOLD', 'B1', 'BE', ${audit})`,
  );
  await db.pool.query(
    `insert into market.corporate_actions (exchange, scrip_code, action_id, symbol, prov_xdate, first_loaded_at, last_changed_at, revision, run_id, load_id)
     values ('NSE', 0, 'A1', 'SPLIT', '${THIRD}', ${audit})`,
  );
  expect(await findings(db)).toEqual([]);
});

test('most lines of a day at once are one finding about the file', async () => {
  const day = (date: string, previous: string) =>
    Array.from({ length: 40 }, (_, at) => line(`S${at}`, { day: date, close: '10', previous }));
  expect(await findingsOf([...day(FIRST, '10'), ...day(SECOND, '10'), ...day(THIRD, '9')])).toEqual([
    '2025-09-12 : the closes of the trading day before, 40 of 40 lines have another previous close',
  ]);
});

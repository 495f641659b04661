import { expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import { dataSetNamed } from '../../src/operations/registry.ts';
import { checkQuality } from '../../src/quality/check-quality.ts';
import { listFindings } from '../../src/state/findings.ts';
import { bhavRow, load, loadBhav } from '../load/support.ts';
import { deriveButEvents } from '../support/derive.ts';
import { openStore } from '../support/import-support.ts';

const FIRST = '2008-01-01';
/** The last of 251 days with prices after the first one, and the day before it. */
const [BEFORE_LAST, LAST] = [addDays(FIRST, 250), addDays(FIRST, 251)];

test('a symbol without ISIN that returns after 250 trading days with prices is found, until a list or an ISIN settles it', async () => {
  const context = await openStore();
  const { db } = context;
  const row = (symbol: string, trade_date: string, isin: string | null = null) =>
    bhavRow({ symbol, trade_date, isin });
  const days = Array.from({ length: 252 }, (_, at) => addDays(FIRST, at));
  await loadBhav(db, [
    ...days.map((day) => row('ALWAYS', day)),
    ...['REUSED', 'LISTED'].flatMap((symbol) => [row(symbol, FIRST), row(symbol, LAST)]),
    row('PROVEN', FIRST),
    row('PROVEN', LAST, 'INE000A01010'),
    // One trading day fewer.
    row('SHORTER', addDays(FIRST, 1)),
    row('SHORTER', LAST),
  ]);
  // Days without prices do not count.
  await loadBhav(db, [row('CLOSED', '2000-01-03'), row('CLOSED', FIRST)]);
  const findingsOf = async (check: string) => {
    await checkQuality(context, { from: FIRST, to: LAST });
    const { findings } = await listFindings(db.drizzle, { check, limit: 100 });
    return findings.map(({ date, instrument, expected, found: got }) => [date, instrument, expected, got]);
  };
  const finding = (symbol: string) => [
    LAST,
    symbol,
    `a row since ${FIRST}, an ISIN, or a change of the symbol in a list`,
    'no ISIN before and after 250 trading days or more without a row',
  ];
  expect(await findingsOf('symbol_reused')).toEqual([finding('LISTED'), finding('REUSED')]);
  await deriveButEvents(db);
  expect(await findingsOf('symbol_changes_missing')).toEqual([
    [
      '2000-01-03',
      '',
      'a list of changed symbols: else a company has another id after each change',
      `none, and 5 symbols without ISIN until ${LAST}`,
    ],
  ]);

  const { table } = dataSetNamed('SymbolChanges').shapes[0];
  const change = { exchange: 'NSE', changed_on: BEFORE_LAST, old_symbol: 'LISTED', new_symbol: 'OTHER' };
  await load(db, { batches: [{ table, rows: [{ ...change, company_name: null }] }] });
  expect(await findingsOf('symbol_reused')).toEqual([finding('REUSED')]);
  expect(await findingsOf('symbol_changes_missing')).toEqual([]);
});

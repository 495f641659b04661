import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { comesBefore, compareNames, fileOrder } from '../../src/core/file-order.ts';
import { FORMATS } from '../../src/extract/files/formats.ts';
import { forAll } from '../support/for-all.ts';

const orderOf = (path: string) => fileOrder(0, path, path);

describe('the order of files of a trading day', () => {
  test.each([
    ['BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv', '2025-08-29', 0],
    ['BhavCopy_BSE_CM_0_0_0_20250909_F_0000 (2).CSV', '2025-09-09', 2],
    ['archive/20240101/cm01OCT2019bhav.csv.zip', '2019-10-01', 0],
    ['sec_bhavdata_full_02102024(1).csv', '2024-10-02', 1],
    ['MTO_20122012.DAT', '2012-12-20', 0],
    ['EQ070421 (1).CSV.gz', '2021-04-07', 1],
    ['EQ_ISINCODE_310321.CSV', '2021-03-31', 0],
    ['EQ310221.CSV', '', 0],
    ['CF-CA-equities-01-01-2023-to-31-12-2023.csv', '2023-12-31', 0],
    ['prices.csv', '', 0],
    ['report (final).csv', '', 0],
  ])('reads day and number of the download in %s', (path, day, download) => {
    expect(orderOf(path)).toMatchObject({ day, download });
  });

  test('takes the number of a download from the archive where the file in it has none', () => {
    expect(fileOrder(0, 'X.csv', 'down/X.csv (3).zip')).toMatchObject({ name: 'x', download: 3 });
  });

  test('takes the day of a list from its name, unless that is a range', () => {
    const dayOf = (name: string) => fileOrder(null, name, name).day;
    expect(dayOf('ind_nifty100list_20250624.csv')).toBe('2025-06-24');
    // Not 23 October 2051: a downloader wrote the time.
    expect(dayOf('ind_nifty100list_20250709_231051.csv')).toBe('2025-07-09');
    expect(dayOf('ind_nifty500list_02102025.csv')).toBe('2025-10-02');
    expect(dayOf('CF-CA-equities-01-01-2025-to-30-06-2025.csv')).toBe('');
  });

  test('sorts downloads by their number, and days by the calendar', () => {
    const sorted = [
      'b/X.csv',
      'X (1).csv',
      'X (2).csv',
      'X (10).csv',
      'cm30SEP2019bhav.csv',
      'cm01OCT2019bhav.csv',
    ];
    expect(sorted.toReversed().sort(compareNames)).toEqual(sorted);
  });

  test('is not known of two names that say nothing', () => {
    for (const other of ['Y.csv', 'y/X.csv', 'cm04JAN2021bhav.csv']) {
      expect(comesBefore(orderOf('X.csv'), orderOf(other))).toBe(false);
      expect(comesBefore(orderOf(other), orderOf('X.csv'))).toBe(false);
    }
  });

  test('never goes in a circle', () => {
    const path = fc
      .tuple(fc.constantFrom('x', 'cm04JAN2021', 'cm05JAN2021', 'EQ040121'), fc.integer({ min: 0, max: 2 }))
      .map(([name, copy]) => `${name}${copy === 0 ? '' : ` (${copy})`}.csv`);
    const order = fc
      .tuple(fc.integer({ min: 0, max: 1 }), path)
      .map(([rank, name]) => fileOrder(rank, name, name));
    forAll([order, order, order], { numRuns: 1_000 }, (a, b, c) => {
      expect(comesBefore(a, b) && comesBefore(b, a)).toBe(false);
      if (comesBefore(a, b) && comesBefore(b, c)) expect(comesBefore(a, c)).toBe(true);
    });
  });

  test('knows the better of two formats of an exchange', () => {
    const of = ['GetBhavCopyCM', 'Deliveries', null];
    const ranks = new Map(
      FORMATS.filter(({ byTradingDay, dataSet }) => byTradingDay && of.includes(dataSet)).map(
        ({ name, rank }) => [name, rank],
      ),
    );
    const sorted = [...ranks].sort(([, a], [, b]) => a - b).map(([name]) => name);
    expect(sorted.filter((name) => name !== 'bse-equity')).toEqual([
      'nse-full',
      'nse-deliveries',
      'nse-bhav',
      'udiff',
    ]);
    expect(ranks.get('bse-equity')).toBeLessThan(ranks.get('udiff') ?? 0);
  });
});

import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { sample } from '../../support/for-all.ts';
import { bhavRow, loadBhav, openStore } from '../support.ts';

describe('through COPY into Postgres and back', () => {
  let store: Database;
  beforeAll(async () => {
    store = await openStore();
  });

  async function throughPostgres(column: string, values: readonly string[]): Promise<(string | null)[]> {
    await store.pool.query('truncate market.bhavcopy_cm, market_history.bhavcopy_cm');
    const rows = values.map((value, n) => bhavRow({ symbol: String(n), [column]: value }));
    await loadBhav(store, rows);
    const result = await store.pool.query<{ value: string | null }>(
      `select ${column}::text as value from market.bhavcopy_cm order by symbol::int`,
    );
    return result.rows.map((row) => row.value);
  }

  test('text stays as it is: tabs, newlines, backslashes, quotes, the end marker, any script', async () => {
    const texts = [
      'a\tb',
      'a\nb',
      'a\r\nb',
      'a\\b',
      '\\',
      '\\N',
      '\\.',
      'x\n\\.\ny',
      "it's",
      '"quoted"',
      '\\t',
      'M&M',
      'GVT&D',
      'IDEA#',
      '₹ रिलायंस',
      '🪔',
      'é',
      '{"a":1}',
      ', ;',
      '\b\f\v',
      '\u2028',
      "'); drop --",
    ];
    expect(await throughPostgres('instrument_full_name', texts)).toEqual(texts);
  });

  test('any text Postgres can hold', async () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((text) => !text.includes('\0'));
    const texts = sample(
      fc.oneof(
        text,
        text.map((text) => `\\${text}\t\n`),
      ),
      { numRuns: 500, seed: 20250829 },
    );
    expect(await throughPostgres('instrument_full_name', texts)).toEqual(texts);
  });

  test('decimals keep every digit, trailing zeros included', async () => {
    const numbers = [
      '9697194403.80',
      '0.1',
      '0.10',
      '26.858792846497767',
      '12957795600000',
      '-17.71',
      '0',
      '123456789012345678901234567890.123456789',
      '0.000000000000000000001',
      '119296.980121794',
    ];
    expect(await throughPostgres('turnover', numbers)).toEqual(numbers);
  });

  test('whole numbers beyond doubles keep every digit', async () => {
    const numbers = ['9223372036854775807', '-9223372036854775808', '9007199254740993', '0'];
    expect(await throughPostgres('traded_quantity', numbers)).toEqual(numbers);
  });
});

import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/load/database/database.ts';
import { encodeRows, encodeValue } from '../../src/load/market/merge.ts';
import { bhavcopy, bhavRow, loadBhav, openStore } from './support.ts';

describe('encoding for COPY', () => {
  test('each kind of value', () => {
    expect(encodeValue(null)).toBe('\\N');
    expect(encodeValue('')).toBe('');
    expect(encodeValue('\\N')).toBe('\\\\N');
    expect(encodeValue('a\tb\nc\rd\\e')).toBe('a\\tb\\nc\\rd\\\\e');
    expect(encodeValue(true)).toBe('t');
    expect(encodeValue(false)).toBe('f');
    expect(encodeValue(1.5)).toBe('1.5');
    expect(encodeValue('9697194403.80')).toBe('9697194403.80');
  });

  test('no value can end its field or its line, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(encodeValue(text)).not.toMatch(/[\t\n\r]/);
      }),
    );
  });

  test('many rows come in pieces that together hold every row once, in order', () => {
    const rows = Array.from({ length: 2_000 }, (_, n) => bhavRow({ symbol: `S${n}` }));
    const pieces = [...encodeRows(bhavcopy, rows, { places: true })];
    expect(pieces.length).toBeGreaterThan(1);
    const lines = pieces.join('').split('\n');
    expect(lines.pop()).toBe('');
    const symbol = bhavcopy.fields.findIndex((field) => field.column === 'symbol');
    expect(lines.map((line) => line.split('\t')[0])).toEqual(rows.map((_, n) => String(n)));
    expect(lines.map((line) => line.split('\t')[symbol + 1])).toEqual(rows.map((row) => row.symbol));
  });
});

describe('through COPY into Postgres and back', () => {
  let store: Database;
  beforeAll(async () => {
    store = await openStore();
  });

  async function throughPostgres(column: string, values: readonly string[]): Promise<(string | null)[]> {
    await store.pool.query('truncate market.bhavcopy_cm, market_history.bhavcopy_cm');
    const rows = values.map((value, n) => bhavRow({ symbol: String(n), [column]: value }));
    await loadBhav(store, rows);
    const found = await store.pool.query<{ value: string | null }>(
      `select ${column}::text as value from market.bhavcopy_cm order by symbol::int`,
    );
    return found.rows.map((row) => row.value);
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
    const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((one) => !one.includes('\0'));
    const texts = fc.sample(
      fc.oneof(
        text,
        text.map((one) => `\\${one}\t\n`),
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

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import type { Kind } from '../../src/declaration/fields.ts';
import { chooseReader } from '../../src/declaration/readers.ts';
import { createDateReader, createDatetimeReader } from '../../src/declaration/time-readers.ts';
import {
  InvalidValue,
  invalid,
  isBlank,
  readBoolean,
  readInt2,
  readInt4,
  readInt8,
  readNumeric,
  readText,
} from '../../src/declaration/value-readers.ts';
import { markUnsafeNumbers } from '../../src/extract/unsafe-numbers.ts';
import { forAll } from '../support/for-all.ts';

const readDate = createDateReader('Asia/Kolkata');
const readDatetime = createDatetimeReader('Asia/Kolkata');
const readers = { readText, readInt2, readInt4, readInt8, readNumeric, readBoolean, readDate, readDatetime };

function expectInvalid(result: unknown): string {
  expect(result).toBeInstanceOf(InvalidValue);
  return (result as InvalidValue).problem;
}

describe.each(Object.entries(readers))('%s', (_, read) => {
  test('null, missing and blank are null', () => {
    for (const blank of [null, undefined, '', '   ', '\t\r\n ']) expect(read(blank)).toBeNull();
  });

  test('lists and objects are rejected, however nested or disguised', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level++) deep = [deep];
    const disguised = JSON.parse('{"toString": 1, "valueOf": 2, "__proto__": {"length": 3}}');
    for (const nested of [[], {}, [1], { a: 1 }, deep, disguised]) expectInvalid(read(nested));
  });

  test('anything at all becomes a scalar or an invalid value', () =>
    forAll([fc.oneof(fc.anything(), fc.jsonValue(), fc.string({ unit: 'binary' }))], (value) => {
      const result = read(value);
      const scalar = result === null || ['string', 'number', 'boolean'].includes(typeof result);
      expect(scalar || result instanceof InvalidValue).toBe(true);
      if (typeof result === 'number') expect(Number.isFinite(result)).toBe(true);
    }));
});

test('only null, nothing and blank text let the next key of a field be tried', () => {
  for (const value of [null, undefined, '', ' ', '\t\n']) expect(isBlank(value)).toBe(true);
  for (const value of ['a', ' a ', '-', 0, false, Number.NaN, {}, []]) expect(isBlank(value)).toBe(false);
});

describe('text', () => {
  test.each([
    ['THANG-RE    ', 'THANG-RE'],
    ['  M&M ', 'M&M'],
    ['a\tb\u0007c', 'a\tb\u0007c'],
    [' ए 😀 ', 'ए 😀'],
    [12, '12'],
    [-0.5, '-0.5'],
    [1e21, '1e+21'],
  ])('%j reads as %j', (sent, stored) => expect(readText(sent)).toBe(stored));

  test.each(['a\u0000b', '\ud800', 'x\udc00y', '\u0000'])('%j cannot be stored', (sent) => {
    expect(expectInvalid(readText(sent))).toContain('cannot be stored');
  });

  test('100,000 characters fit, one more does not; booleans are no text', () => {
    expect(readText('x'.repeat(100_000))).toHaveLength(100_000);
    expect(expectInvalid(readText('x'.repeat(100_001)))).toContain('100000');
    expectInvalid(readText(true));
  });
});

describe('whole numbers', () => {
  test.each([
    [0, 0],
    [-0, 0],
    [123, 123],
    [' 123 ', 123],
    ['+7', 7],
    ['-12.00', -12],
    ['123.', 123],
    ['1.2E+3', 1200],
    ['0000000000000000000000012', 12],
    ['-0', 0],
  ])('%j reads as %j', (sent, stored) => {
    for (const read of [readInt2, readInt4, readInt8]) expect(read(sent)).toBe(stored);
  });

  test.each([1.5, '1.5', '123.001', '1e-1', '-', '1,234', '0x10', 'NaN', 'Infinity', '1e999', '1e1000', '١'])(
    '%j is no whole number',
    (sent) => {
      for (const read of [readInt2, readInt4, readInt8]) expectInvalid(read(sent));
    },
  );

  test('ranges are exact', () => {
    expect([32_767, '32767', -32_768, '-32768'].map(readInt2)).toEqual([32_767, 32_767, -32_768, -32_768]);
    for (const sent of [32_768, '32768', -32_769]) expectInvalid(readInt2(sent));
    expect(readInt4('2147483647')).toBe(2_147_483_647);
    for (const sent of [2_147_483_648, '2147483648', -2_147_483_649]) expectInvalid(readInt4(sent));
    expect(readInt8('9223372036854775807')).toBe('9223372036854775807');
    expect(readInt8('-9223372036854775808')).toBe('-9223372036854775808');
    for (const sent of ['9223372036854775808', '-9223372036854775809']) expectInvalid(readInt8(sent));
  });

  test('beyond 2^53 only text is exact', () => {
    expect(readInt8('9007199254740991')).toBe(9_007_199_254_740_991);
    expect(readInt8('-9007199254740991')).toBe(-9_007_199_254_740_991);
    expect(readInt8('9007199254740992')).toBe('9007199254740992');
    expect(readInt8('-9007199254740992')).toBe('-9007199254740992');
    expect(readInt8(-9_007_199_254_740_991)).toBe(-9_007_199_254_740_991);
    expectInvalid(readInt8(-9_007_199_254_740_992));
    expect(readInt8(9_007_199_254_740_991)).toBe(9_007_199_254_740_991);
    expectInvalid(readInt8(9_007_199_254_740_992));
    expect(readInt8('9007199254740993')).toBe('9007199254740993');
  });

  test('any 64-bit number in text comes back exactly', () =>
    forAll([fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })], (n) => {
      expect(String(readInt8(`${n}`))).toBe(String(n));
      expect(String(readInt8(`${n}.000`))).toBe(String(n));
    }));
});

describe('decimal numbers', () => {
  test.each([
    [26.858792846497767, 26.858792846497767],
    [12957795600000, 12957795600000],
    [-0, 0],
    [1e308, 1e308],
    [' 9697194403.80 ', '9697194403.80'],
    ['+5', '5'],
    ['.5', '.5'],
    ['5.', '5.'],
    ['-1.2E-7', '-1.2E-7'],
    ['.25', '.25'],
    ['1e5', '1e5'],
    ['1e123', '1e123'],
    ['1e+12', '1e+12'],
    ['123456789012345678901234567890.123456789', '123456789012345678901234567890.123456789'],
  ])('%j reads as %j', (sent, stored) => expect(readNumeric(sent)).toBe(stored));

  test.each([
    'NaN',
    '-',
    '1,234',
    '1e1000',
    'x1',
    '1x',
    '.e5',
    '1e',
    '1e5x',
    'Infinity',
    '--1',
    '1 2',
    '.',
    'e5',
    true,
  ])('%j is none', (sent) => {
    expectInvalid(readNumeric(sent));
  });

  test('a thousand digits fit, one more does not', () => {
    expect(readNumeric('9'.repeat(1_000))).toHaveLength(1_000);
    // Sign, point and exponent do not count; zeros at the front do.
    const longest = `-${'9'.repeat(999)}.9e-12`;
    expect(readNumeric(longest)).toBe(longest);
    expect(readNumeric(`-${'9'.repeat(999)}.9e-123`)).toHaveLength(1_007);
    expect(readNumeric(`+${'9'.repeat(999)}.9e+123`)).toHaveLength(1_006);
    expect(expectInvalid(readNumeric(`-${'9'.repeat(1_000)}.9`))).toContain('1000 digits');
    expect(expectInvalid(readNumeric('x'.repeat(1_008)))).toContain('is not a number');
    expect(expectInvalid(readNumeric('x'.repeat(1_009)))).toContain('1000 digits');
    for (const read of [readInt2, readInt8]) {
      expect(read(`${'0'.repeat(999)}7`)).toBe(7);
      expect(expectInvalid(read(`${'0'.repeat(1_000)}7`))).toContain('is not a whole number');
    }
    expect(expectInvalid(readNumeric('9'.repeat(1_001)))).toContain('1000 digits');
    expect(expectInvalid(readNumeric('9'.repeat(1_000_000)))).toContain('1000 digits');
  });
});

describe('the problems of invalid values', () => {
  const int8 = 'a whole number from -9223372036854775808 to 9223372036854775807';
  test.each<[keyof typeof readers, unknown, string]>([
    ['readText', true, 'true is not text'],
    ['readText', [1], 'is a list, not text'],
    ['readText', {}, 'is an object, not text'],
    ['readText', 'a\u0000', 'contains a NUL or half a surrogate pair, which cannot be stored'],
    ['readText', 'x'.repeat(100_001), 'is longer than 100000 characters'],
    ['readNumeric', 'x', '"x" is not a number'],
    ['readNumeric', true, 'true is not a number'],
    ['readNumeric', Number.NaN, 'NaN is not a finite number'],
    ['readNumeric', Number.POSITIVE_INFINITY, 'Infinity is not a finite number'],
    ['readNumeric', '9'.repeat(1_001), 'has more than 1000 digits'],
    ['readNumeric', 'x'.repeat(60), `"${'x'.repeat(60)}" is not a number`],
    ['readNumeric', 'x'.repeat(61), `"${'x'.repeat(60)}…" is not a number`],
    ['readInt2', 1.5, '1.5 is not a whole number'],
    ['readInt2', '1.5', '"1.5" is not a whole number'],
    ['readInt2', false, 'false is not a whole number'],
    ['readInt2', 32_768, '32768 is not a whole number from -32768 to 32767'],
    ['readInt2', '-32769', '"-32769" is not a whole number from -32768 to 32767'],
    ['readInt4', 2_147_483_648, '2147483648 is not a whole number from -2147483648 to 2147483647'],
    ['readInt8', 2 ** 53, `9007199254740992 is not ${int8} that was read without loss`],
    ['readInt8', '9223372036854775808', `"9223372036854775808" is not ${int8}`],
    ['readBoolean', 2, '2 is not true or false'],
    ['readBoolean', 'yes', '"yes" is not true or false'],
    ['readBoolean', {}, 'is an object, not true or false'],
    ['readDate', true, 'true is not a date'],
    ['readDate', 'yesterday', '"yesterday" is not a date'],
    ['readDate', '02-30-2025', '"02-30-2025" is not a date that exists'],
    ['readDate', '02-27-1799', '"02-27-1799" is not a date between 1800 and 2199'],
    ['readDate', '02-27-2025 24:00:00', '"02-27-2025 24:00:00" is not a time that exists'],
    [
      'readDate',
      '2025-02-27T10:00:00+15:00',
      '"2025-02-27T10:00:00+15:00" is not a time with a zone that exists',
    ],
    ['readDate', 1740594600.5, '1740594600.5 is not a date in whole Unix seconds'],
    ['readDate', 20250227, '20250227 is not a date: too small a number for Unix seconds'],
    ['readDate', 99999999999, '99999999999 is not a date between 1800 and 2199 in Unix seconds'],
  ])('%s of %j', (reader, value, problem) => {
    expect(expectInvalid(readers[reader](value))).toBe(problem);
  });

  test('null is called null', () => {
    expect(invalid(null, 'a day')).toEqual(new InvalidValue('null is not a day'));
  });

  test('a number that JSON.parse would round is named as it was printed', () => {
    const marked = markUnsafeNumbers(Buffer.from('[12345678901234567890.5]'));
    const [value] = JSON.parse(String(marked)) as [string];
    for (const read of Object.values(readers)) {
      expect(expectInvalid(read(value))).toBe(
        '12345678901234567890.5 has more digits than can be read without loss',
      );
    }
  });
});

test('each kind of field has its reader', () => {
  const read = (kind: Kind, value: unknown) => chooseReader(kind, 'Asia/Kolkata')(value);
  expect(read('text', ' 1 ')).toBe('1');
  expect([read('int2', '32767'), read('int4', '32768'), read('int8', '2147483648')]).toEqual([
    32_767, 32_768, 2_147_483_648,
  ]);
  expectInvalid(read('int2', '32768'));
  expectInvalid(read('int4', '2147483648'));
  expect(read('numeric', '1.50')).toBe('1.50');
  expect(read('boolean', '1')).toBe(true);
  expect(read('date', 1740594600)).toBe('2025-02-27');
  expect(read('datetime', 1740594600)).toBe('2025-02-27 00:00:00+05:30');
});

test('booleans', () => {
  expect([true, 'True', ' TRUE ', 'true', 1, '1'].map(readBoolean)).toEqual(Array(6).fill(true));
  expect([false, 'False', 'fALSE', 0, '0'].map(readBoolean)).toEqual(Array(5).fill(false));
  for (const sent of ['yes', 'T', 2, -1, '01']) expectInvalid(readBoolean(sent));
});

describe('dates', () => {
  test.each([
    ['02-27-2025', '2025-02-27'],
    ['02-29-2024', '2024-02-29'],
    ['02-27-2025 21:02:33', '2025-02-27'],
    ['2-7-2025 9:05:03 PM', '2025-02-07'],
    ['2025-02-27', '2025-02-27'],
    ['2025-02-27T23:59:59.9999999', '2025-02-27'],
    ['2025-02-27T18:29:59Z', '2025-02-27'],
    ['2025-02-27T18:30:00Z', '2025-02-28'],
    ['20-AUG-2021', '2021-08-20'],
    ['01-01-1800', '1800-01-01'],
    ['12-31-2199', '2199-12-31'],
    ['2025-02-27T23:59:59+14:00', '2025-02-27'],
    ['2025-02-27T00:00:00-14:00', '2025-02-27'],
    ['2025-02-27 23:00:00 -02:30', '2025-02-28'],
    ['2025-02-28 01:00:00 +10:30', '2025-02-27'],
    [' 02-27-2025 ', '2025-02-27'],
    [1740594600, '2025-02-27'],
    [1740594599, '2025-02-26'],
    ['1740680999', '2025-02-27'],
    [100_000_000, '1973-03-03'],
    [-631_152_001, '1950-01-01'],
    [-5_364_662_400, '1800-01-01'],
    [7_258_118_399, '2200-01-01'],
  ])('%j reads as %j', (sent, stored) => expect(readDate(sent)).toBe(stored));

  test.each([
    '01-01-0001',
    '01-01-0001 00:00:00',
    '1-1-0001 12:00:00 AM',
    '0001-01-01T00:00:00',
    -62135596800,
    -62135616600,
    -62_135_683_200,
    -62_103_974_400,
    '-62135596800',
  ])('%j is no date at all', (sent) => {
    expect(readDate(sent)).toBeNull();
    expect(readDatetime(sent)).toBeNull();
  });

  test('every month by its name', () => {
    const names = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
    const read = names.map((name) => readDate(`05-${name}-2021`));
    expect(read).toEqual(names.map((_, at) => `2021-${String(at + 1).padStart(2, '0')}-05`));
  });

  test('a moment just before or after the year 1 is an invalid value, not a missing one', () => {
    for (const sent of [-62_135_683_201, -62_103_974_399]) expectInvalid(readDate(sent));
  });

  test.each([
    '02-30-2025',
    '02-29-2025',
    '13-01-2025',
    '27-02-2025',
    '00-10-2025',
    '02-27-25',
    '02/27/2025',
    '20-XXX-2021',
    '02-27-1799',
    '02-27-2200',
    '02-27-9999',
    '02-27-2025 24:00:00',
    '02-27-2025 13:00:00 PM',
    '02-27-2025 10:60:00',
    '02-27-2025 10:00:60',
    '02-27-2025 00:00:00 AM',
    '02-27-2025x',
    'x02-27-2025',
    '2025-02-27x',
    'x2025-02-27',
    '20-AUG-2021x',
    'x20-AUG-2021',
    '2025-02-27T10:00:00-14:01',
    -5_364_662_401,
    7_258_118_400,
    -99_999_999,
    '2025-02-27T10:00:00+15:00',
    'yesterday',
    '-',
    1740594600.5,
    '1740594600.5',
    7_258_118_400_000,
    99_999_999_999,
    '99999999999999999999',
    -1,
    99_999_999,
    20250227,
    '20250227',
    true,
  ])('%j is rejected', (sent) => {
    expectInvalid(readDate(sent));
    expectInvalid(readDatetime(sent));
  });
});

describe('date-times', () => {
  test.each([
    ['02-27-2025 21:02:33', '2025-02-27 21:02:33+05:30'],
    ['02-27-2025', '2025-02-27 00:00:00+05:30'],
    ['2-7-2025 9:05:03 PM', '2025-02-07 21:05:03+05:30'],
    ['2-7-2025 12:00:00 AM', '2025-02-07 00:00:00+05:30'],
    ['2-7-2025 12:00:00 PM', '2025-02-07 12:00:00+05:30'],
    ['2-7-2025 1:00:00 am', '2025-02-07 01:00:00+05:30'],
    ['2-7-2025 11:59 pm', '2025-02-07 23:59:00+05:30'],
    ['2-7-2025 9:05', '2025-02-07 09:05:00+05:30'],
    ['2025-02-27T23:59:59.5z', '2025-02-27 23:59:59.5+00:00'],
    ['2025-02-27 21:02:33 +14:00', '2025-02-27 21:02:33+14:00'],
    ['20-AUG-2021 10:00:00', '2021-08-20 10:00:00+05:30'],
    ['2025-02-27T21:02:33.1234567', '2025-02-27 21:02:33.1234567+05:30'],
    ['2025-02-27T21:02:33Z', '2025-02-27 21:02:33+00:00'],
    ['2025-02-27 21:02:33 -0330', '2025-02-27 21:02:33-03:30'],
    [1740594600, '2025-02-27 00:00:00+05:30'],
    ['1740680999', '2025-02-27 23:59:59+05:30'],
    // Seconds or milliseconds, by their size, as numbers, as text and as CSV prints them.
    [1740680999000, '2025-02-27 23:59:59+05:30'],
    ['1740680999000', '2025-02-27 23:59:59+05:30'],
    [1740680999042, '2025-02-27 23:59:59.042+05:30'],
    ['1740680999.0', '2025-02-27 23:59:59+05:30'],
    ['1740680999000.0', '2025-02-27 23:59:59+05:30'],
    [-1_000_000_000_001, '1938-04-25 03:43:19.999+05:30'],
    // No time.
    [0, null],
    ['0', null],
    ['0.0', null],
    [-62_135_596_800, null],
    [-62_135_596_800_000, null],
  ])('%j reads as %j', (sent, stored) => {
    expect(readDatetime(sent)).toBe(stored);
    expect(readDatetime(sent)).toBe(stored);
  });

  test('a zone with summer time gets the offset of the day', () => {
    const read = createDatetimeReader('America/New_York');
    expect(read('01-15-2025 12:00:00')).toBe('2025-01-15 12:00:00-05:00');
    expect(read('07-15-2025 12:00:00')).toBe('2025-07-15 12:00:00-04:00');
    expect(read('03-09-2025 01:59:59')).toBe('2025-03-09 01:59:59-05:00');
    expect(read('03-09-2025 03:00:00')).toBe('2025-03-09 03:00:00-04:00');
  });

  test('more texts than are remembered, and long ones, are read correctly', () => {
    const read = createDatetimeReader('UTC');
    const day = (at: number) => addDays('1900-01-01', at);
    for (let round = 0; round < 2; round++) {
      for (let at = 0; at < 10_050; at++) {
        if (read(day(at)) !== `${day(at)} 00:00:00+00:00`)
          expect.fail(`${day(at)} reads as ${read(day(at))}`);
      }
    }
    for (const pad of [40, 60, 80])
      expect(read(`${' '.repeat(pad)}2025-02-27`)).toBe('2025-02-27 00:00:00+00:00');
    expect(read('0001-01-01')).toBeNull();
    expect(read('0001-01-01')).toBeNull();
  });

  test('every second is read the same in seconds, in milliseconds and as text', () => {
    const range = { min: Date.UTC(1950, 0) / 1000, max: Date.UTC(2199, 11, 30) / 1000 };
    forAll([fc.integer(range)], (seconds) => {
      const stored = readDatetime(seconds);
      fc.pre(!(stored instanceof InvalidValue) && stored !== null);
      expect(readDatetime(seconds * 1000)).toBe(stored);
      expect(Date.parse(String(stored).replace(' ', 'T'))).toBe(seconds * 1000);
      const [, year, month, day, time] = /^(\d+)-(\d+)-(\d+) ([\d:]+)/.exec(String(stored)) ?? [];
      expect(readDatetime(`${month}-${day}-${year} ${time}`)).toBe(stored);
      expect(readDate(seconds)).toBe(`${year}-${month}-${day}`);
    });
  });
});

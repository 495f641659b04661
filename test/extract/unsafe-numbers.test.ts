import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDecimal, readMarkedNumber } from '../../src/declaration/decimals.ts';
import { markUnsafeNumbers } from '../../src/extract/unsafe-numbers.ts';
import { forAll } from '../support/for-all.ts';

test.each([
  ['0', { isNegative: false, digits: '', exponent: 0 }],
  ['-0.00', { isNegative: false, digits: '', exponent: 0 }],
  ['0e7', { isNegative: false, digits: '', exponent: 0 }],
  ['7', { isNegative: false, digits: '7', exponent: 0 }],
  ['+7', { isNegative: false, digits: '7', exponent: 0 }],
  ['-7', { isNegative: true, digits: '7', exponent: 0 }],
  ['100200', { isNegative: false, digits: '1002', exponent: 2 }],
  ['00012', { isNegative: false, digits: '12', exponent: 0 }],
  ['-0.0120', { isNegative: true, digits: '12', exponent: -3 }],
  ['.5', { isNegative: false, digits: '5', exponent: -1 }],
  ['5.', { isNegative: false, digits: '5', exponent: 0 }],
  ['1.5e10', { isNegative: false, digits: '15', exponent: 9 }],
  ['15E-3', { isNegative: false, digits: '15', exponent: -3 }],
  ['1e+2', { isNegative: false, digits: '1', exponent: 2 }],
])('%s in digits and exponent', (text, decimal) => {
  expect(parseDecimal(text)).toEqual(decimal);
});

test.each(['', '.', '-', '+', 'e5', '.e5', 'x1', '1x', '1 2', '1e', '1e5.5', 'Infinity', 'NaN', '--1'])(
  '%j is no decimal',
  (text) => {
    expect(parseDecimal(text)).toBeNull();
  },
);

test('only marked texts have a token', () => {
  for (const value of ['12', '', null, undefined, 12, {}]) expect(readMarkedNumber(value)).toBeNull();
});

/** What a JSON text reads as, with tokens that a double would round as they were printed. */
function read(json: string): unknown {
  const marked = markUnsafeNumbers(Buffer.from(json));
  return JSON.parse(marked?.toString() ?? json, (_, value) => {
    const token = readMarkedNumber(value);
    return token === null ? value : { lossy: token };
  });
}

test.each([
  '26.858792846497767',
  '12957795600000',
  '9007199254740992',
  '100000000000000000000000',
  '1.10000000000000000000000000000',
  '0.000000000000000000000000000001',
  '1e308',
  '1E+22',
  '-0.0',
  '0e999',
  '5e-324',
  '-26.858792846497767',
  '123456789012345',
  '1234567890123456',
  '119296.980121794',
])('%s survives', (token) => {
  expect(markUnsafeNumbers(Buffer.from(`[${token}]`))).toBeNull();
});

test.each([
  '9007199254740993',
  '12345678901234567890',
  '0.1000000000000000055511151231257827',
  '26.8587928464977671234',
  '1e400',
  '-1e400',
  '1e-400',
  '1.2345678e-320',
  `1${'0'.repeat(400)}`,
])('%s does not', (token) => {
  expect(read(`{"a":${token},"b":[1, ${token} ,2]}`)).toEqual({
    a: { lossy: token },
    b: [1, { lossy: token }, 2],
  });
});

test('text inside strings is never touched', () => {
  const json = JSON.stringify({
    a: 'x, 12345678901234567890, y',
    'b:9007199254740993': '\\"9007199254740993',
    c: '"\\',
    d: '1e400',
    e: 'ए 12345678901234567890',
  });
  expect(markUnsafeNumbers(Buffer.from(json))).toBeNull();
});

test('any JSON value reads as JSON.parse reads it, when its numbers are printed by JavaScript', () =>
  forAll([fc.jsonValue()], (value) => {
    const json = JSON.stringify(value);
    expect(read(json)).toEqual(JSON.parse(json));
  }));

test('a token is marked exactly when its decimal value is lost', () => {
  const digits = fc.stringMatching(/^[1-9]\d{0,24}$/);
  forAll([digits, fc.nat(30), fc.integer({ min: -340, max: 320 })], (digits, point, exponent) => {
    const at = Math.min(point, digits.length - 1) + 1;
    const token = `${digits.slice(0, at)}${at < digits.length ? '.' : ''}${digits.slice(at)}e${exponent}`;
    const kept = Number.isFinite(Number(token)) ? parseDecimal(String(Number(token))) : null;
    const lost = JSON.stringify(parseDecimal(token)) !== JSON.stringify(kept);
    expect(markUnsafeNumbers(Buffer.from(token)) !== null).toBe(lost);
  });
});

test('marking makes no broken JSON whole and no whole JSON broken', () => {
  const isWhole = (json: string) => {
    try {
      JSON.parse(json);
      return true;
    } catch {
      return false;
    }
  };
  const parts = [
    '1e',
    '--',
    '1.2.3',
    '"',
    '\\',
    '12345678901234567890',
    '-',
    '+1e5',
    '0',
    '1e999',
    '.',
    ',',
    '[',
    ']',
  ];
  forAll(
    [fc.array(fc.oneof(fc.constantFrom(...parts), fc.string()), { maxLength: 5 })],
    { numRuns: 2_000 },
    (tokens) => {
      const json = `[${tokens.join('')}]`;
      expect(isWhole(markUnsafeNumbers(Buffer.from(json))?.toString() ?? json)).toBe(isWhole(json));
    },
  );
});

test.each([
  ['objects', '{}'],
  ['lists', '[]'],
])('two million %s are read, one more is refused', (_, empty) => {
  // The outermost list counts as well.
  const body = (inside: number) => Buffer.from(`[${Array(inside).fill(empty).join()}]`);
  expect(markUnsafeNumbers(body(1_999_999))).toBeNull();
  expect(() => markUnsafeNumbers(body(2_000_000))).toThrowError(
    expect.objectContaining({
      kind: 'too_large',
      message: 'the response is too large: more than 2000000 records',
    }),
  );
});

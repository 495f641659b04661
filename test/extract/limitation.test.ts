import { describe, expect, test } from 'vitest';
import { type Limitation, parseLimitation } from '../../src/extract/limitation.ts';

const ZONE = 'Asia/Kolkata';
const parse = (json: unknown) => parseLimitation(JSON.stringify(json), ZONE);

const NOTHING: Limitation = {
  callsPerHour: null,
  callsPerMonth: null,
  bandwidthPerHour: null,
  bandwidthPerMonth: null,
  expiresAt: null,
  isEnabled: null,
  exchanges: null,
  operations: null,
};

const GENERAL = {
  AllowedBandwidthPerHour: -1,
  AllowedCallsPerHour: 900,
  AllowedCallsPerMonth: 500_000,
  AllowedBandwidthPerMonth: -1.0,
  ExpirationDate: 1_538_159_399_000,
  Enabled: true,
};
const LISTS = {
  AllowedExchanges: [
    { AllowedInstruments: -1, DataDelay: 0, ExchangeName: 'BSE' },
    { AllowedInstruments: 160, DataDelay: 900, ExchangeName: 'NSE' },
  ],
  AllowedFunctions: [
    { FunctionName: 'GetBhavCopyCM', IsEnabled: true },
    { FunctionName: 'GetSeriesChange', IsEnabled: false },
  ],
};
const WHOLE: Limitation = {
  callsPerHour: 900,
  callsPerMonth: 500_000,
  bandwidthPerHour: 'unlimited',
  bandwidthPerMonth: 'unlimited',
  expiresAt: '2018-09-28T18:29:59.000Z',
  isEnabled: true,
  exchanges: [
    { name: 'BSE', instruments: 'unlimited' },
    { name: 'NSE', instruments: 160 },
  ],
  operations: [
    { name: 'GetBhavCopyCM', isEnabled: true },
    { name: 'GetSeriesChange', isEnabled: false },
  ],
};

/** The same document with other keys. */
function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((entry) => renamed(entry, rename));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [rename(name), renamed(inner, rename)]),
  );
}

const FLAT = { ...GENERAL, ...LISTS };

describe('forms that mean the same', () => {
  test.each<[string, unknown]>([
    ['flat', FLAT],
    ['beside what nobody requested', { HistoryLimitation: { DayEnabled: false, MaxEOD: 5 }, ...FLAT }],
    ['in lower case', renamed(FLAT, (name) => name.toLowerCase())],
    ['in upper case', renamed(FLAT, (name) => name.toUpperCase())],
    ['with spaces', renamed(FLAT, (name) => name.replace(/(?!^)[A-Z]/g, ' $&'))],
    [
      'as text',
      {
        ...FLAT,
        AllowedCallsPerHour: ' 900 ',
        AllowedCallsPerMonth: '500,000',
        AllowedBandwidthPerHour: 'Unlimited',
        ExpirationDate: '1538159399',
        Enabled: 'True',
        AllowedFunctions: [
          { FunctionName: 'GetBhavCopyCM', IsEnabled: '1' },
          { FunctionName: 'GetSeriesChange', IsEnabled: 'FALSE' },
        ],
      },
    ],
  ])('%s', (_, json) => {
    expect(parse(json)).toEqual(WHOLE);
  });
});

describe('single values', () => {
  test.each<[unknown, string | null]>([
    [1_538_159_399_000, '2018-09-28T18:29:59.000Z'],
    [1_538_159_399, '2018-09-28T18:29:59.000Z'],
    ['09-28-2018 23:59:59', '2018-09-28T18:29:59.000Z'],
    ['2018-09-28T18:29:59Z', '2018-09-28T18:29:59.000Z'],
    // The key is good on its last day.
    ['2018-09-28', '2018-09-28T18:30:00.000Z'],
    ['28-SEP-2018', '2018-09-28T18:30:00.000Z'],
    ['01-01-0001 12:00:00 AM', null],
    [0, null],
    [-1, null],
    [-62_135_596_800_000, null],
    ['never', null],
    ['', null],
    [true, null],
    [{ date: 1 }, null],
    [1e300, null],
  ])('the date of expiry %j', (ExpirationDate, expiresAt) => {
    expect(parse({ Enabled: true, ExpirationDate })).toEqual({ ...NOTHING, isEnabled: true, expiresAt });
  });

  test.each<[unknown, unknown]>([
    [0, 0],
    [-1, 'unlimited'],
    ['-1.0', 'unlimited'],
    ['', null],
    [null, null],
    ['many', null],
    [[900], null],
    [true, null],
    [{}, null],
  ])('%j calls an hour', (AllowedCallsPerHour, callsPerHour) => {
    expect(parse({ Enabled: true, AllowedCallsPerHour })).toEqual({
      ...NOTHING,
      isEnabled: true,
      callsPerHour,
    });
  });

  test.each<[unknown, unknown]>([
    [['GetBhavCopyCM'], [{ name: 'GetBhavCopyCM', isEnabled: true }]],
    [[{ FunctionName: 'GetBhavCopyCM' }], [{ name: 'GetBhavCopyCM', isEnabled: true }]],
    [{ FunctionName: 'GetBhavCopyCM', IsEnabled: false }, null],
    [[1, null, '', {}, { FunctionName: 7 }, ['GetBhavCopyCM']], []],
    [[], []],
    ['GetBhavCopyCM', null],
    [{}, null],
    [null, null],
  ])('the functions %j', (AllowedFunctions, operations) => {
    expect(parse({ Enabled: true, AllowedFunctions })).toEqual({ ...NOTHING, isEnabled: true, operations });
  });

  test('names are short and printable', () => {
    const [only] = parse({ AllowedExchanges: [`\u0000${'x'.repeat(500)}`] })?.exchanges ?? [];
    expect(only?.name).toMatch(/^\\u0000x{99}$/);
  });
});

test.each([
  '',
  'null',
  'true',
  '7',
  '"text"',
  '[]',
  '{}',
  '[[[[[[]]]]]]',
  '{"Value": []}',
  '{"GeneralParams": {"Enabled": true}}',
  '[{"Enabled": true}]',
  '{"Enabled": "perhaps", "AllowedFunctions": 7}',
  '{"Enabled": true',
  'Welcome!',
  '<LimitationInfoResult><Enabled>true</Enabled></LimitationInfoResult>',
  'AllowedCallsPerHour,Enabled\n900,true\n',
  `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  '{"__proto__": {"x": 1}}',
])('%.60s says nothing', (text) => {
  expect(parseLimitation(text, ZONE)).toBeNull();
});

test('a list of any size is read', () => {
  const functions = Array.from({ length: 50_000 }, (_, position) => ({
    FunctionName: `Get${position}`,
    IsEnabled: false,
  }));
  expect(parse({ AllowedFunctions: functions })?.operations).toHaveLength(1_000);
});

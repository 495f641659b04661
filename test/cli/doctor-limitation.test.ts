import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { keyReport, limitationChecks } from '../../src/cli/doctor/limitation-checks.ts';
import { loadConfig } from '../../src/core/config.ts';
import type { Limitation } from '../../src/extract/index.ts';
import { exchangesOf } from '../../src/operations/operation.ts';
import { requestedOperations } from '../../src/operations/requested.ts';

const clock = { now: () => Date.parse('2025-09-10T12:00:00+05:30') };
const calendar = loadCalendar();
const all = requestedOperations(loadConfig({}))
  .filter((operation) => exchangesOf(operation, loadConfig({})).length > 0)
  .map(({ name }) => name);

const FULL: Limitation = {
  callsPerHour: 900,
  callsPerMonth: 'unlimited',
  bandwidthPerHour: 'unlimited',
  bandwidthPerMonth: 'unlimited',
  expiresAt: '2026-09-10T12:00:00.000Z',
  isEnabled: true,
  exchanges: ['BSE', 'NSE'].map((name) => ({ name, instruments: 'unlimited' })),
  operations: all.map((name) => ({ name, isEnabled: true })),
};

/** The limits of a key whose functions are all enabled, but for some. */
const functions = (isEnabled: (name: string) => boolean, names = all) => ({
  operations: names.map((name) => ({ name, isEnabled: isEnabled(name) })),
});

function examine(limits: Partial<Limitation>, env: Readonly<Record<string, string>> = {}) {
  const config = loadConfig(env);
  const report = keyReport({ ...FULL, ...limits }, config);
  const [limits_, expiry, rights] = limitationChecks(report, config, calendar, clock);
  return { limits: limits_, expiry, rights, forbidden: report.forbidden };
}

test('a key that may do everything', () => {
  expect(examine({})).toEqual({
    limits: {
      name: 'key limits',
      state: 'ok',
      found: 'calls: 900 an hour, unlimited a month; bandwidth: unlimited',
      remedy: null,
    },
    expiry: {
      name: 'key expiry',
      state: 'ok',
      found: 'the key expires at 2026-09-10 17:30:00',
      remedy: null,
    },
    rights: {
      name: 'key rights',
      state: 'ok',
      found: `all ${all.length} operations that are requested are allowed; exchanges: BSE, NSE`,
      remedy: null,
    },
    forbidden: { operations: [], exchanges: [] },
  });
});

test('a service that says one thing only', () => {
  const nothing = Object.fromEntries(Object.keys(FULL).map((name) => [name, null]));
  const { limits, expiry, rights } = examine({ ...nothing, isEnabled: true } as Limitation);
  expect([limits, expiry, rights]).toMatchObject([
    { state: 'ok', found: 'calls: not stated; bandwidth: not stated' },
    { state: 'ok', found: 'the service states no date' },
    {
      state: 'ok',
      found: 'the service does not say which operations are allowed; exchanges: not stated',
    },
  ]);
});

describe('limits', () => {
  test.each<[Partial<Limitation>, Record<string, string>, string, RegExp | null]>([
    [{ callsPerHour: 1_800 }, {}, 'ok', null],
    [{ callsPerHour: 'unlimited' }, {}, 'ok', null],
    [{ callsPerHour: 300 }, {}, 'warning', /^set EOD_CALLS_PER_HOUR=300$/],
    [{ callsPerHour: 300 }, { EOD_CALLS_PER_HOUR: '300' }, 'ok', null],
    [{ callsPerHour: 0 }, {}, 'warning', /^ask the service/],
    [{ callsPerMonth: 1_000 }, {}, 'warning', /^set EOD_INSTRUMENT_LIMIT/],
    [{ callsPerMonth: 5_000 }, { EOD_INSTRUMENTS: 'TCS' }, 'ok', null],
    [{ callsPerMonth: 500_000 }, {}, 'ok', null],
    [{ bandwidthPerHour: 10, bandwidthPerMonth: 1_000 }, {}, 'ok', null],
  ])('%j with %j: %s', (limits, env, state, remedy) => {
    const check = examine(limits, env).limits;
    expect(check).toMatchObject({ state, remedy: remedy === null ? null : expect.stringMatching(remedy) });
  });
});

test.each<[string, string, RegExp]>([
  ['2025-09-25T12:00:00+05:30', 'ok', /^the key expires at 2025-09-25 12:00:00$/],
  ['2025-09-24T11:00:00+05:30', 'warning', /at 2025-09-24 11:00:00, in 14 days$/],
  ['2025-09-10T13:00:00+05:30', 'warning', /, in 1 day$/],
  ['2025-09-10T12:00:00+05:30', 'failed', /^the key expired at 2025-09-10 12:00:00$/],
])('a key until %s: %s', (expiresAt, state, found) => {
  const { expiry } = examine({ expiresAt });
  expect(expiry).toMatchObject({ state, found: expect.stringMatching(found) });
  expect(expiry?.remedy === null).toBe(state === 'ok');
});

describe('rights', () => {
  test('what the key forbids is named', () => {
    const { rights, forbidden } = examine({
      ...functions((name) => !['GetBhavCopyCM', 'GetSeriesChange'].includes(name)),
      exchanges: [{ name: 'bse', instruments: 50 }],
    });
    expect(rights).toMatchObject({
      state: 'warning',
      found: `it forbids GetBhavCopyCM, GetSeriesChange; it lists no exchange NSE (${all.length} operations of BSE, NSE are requested)`,
      remedy: expect.stringMatching(/^ask the service .*EOD_EXCHANGES/),
    });
    expect(forbidden).toEqual({ operations: ['GetBhavCopyCM', 'GetSeriesChange'], exchanges: ['NSE'] });
  });

  test('what is not requested does not matter', () => {
    const bse = { exchanges: [{ name: 'BSE', instruments: 50 }] };
    const { rights } = examine(
      { ...functions((name) => name !== 'GetCircuitBreakers'), ...bse },
      { EOD_EXCHANGES: 'BSE' },
    );
    expect(rights).toMatchObject({
      state: 'ok',
      found: expect.stringMatching(/are allowed; exchanges: BSE \(50 instruments\)$/),
    });
    const others = { exchanges: [...bse.exchanges, { name: 'NSE_IDX', instruments: 5 }] };
    expect(examine(others, { EOD_OPERATION_EXCHANGES: 'GetSeriesChange=NSE_IDX' }).forbidden).toEqual({
      operations: [],
      exchanges: ['NSE'],
    });
  });

  test('an operation counts as allowed if the one that is requested instead is', () => {
    const ratios = ['GetFinRatioEOD', 'GetFinRatioSnapshot'];
    expect(examine(functions((name) => !ratios.includes(name))).rights?.state).toBe('ok');
    expect(
      examine(functions((name) => ![...ratios, 'GetFinancialRatios'].includes(name))).forbidden.operations,
    ).toEqual(expect.arrayContaining([...ratios, 'GetFinancialRatios']));
  });

  test('an operation that is not listed is named, unless none is', () => {
    const some = all.filter((name) => name !== 'GetSeriesChange');
    expect(examine(functions(() => true, some)).rights).toMatchObject({
      state: 'warning',
      found: expect.stringMatching(/^it does not list GetSeriesChange \(/),
    });
    expect(examine(functions(() => false, ['GetHistory'])).rights).toMatchObject({
      state: 'ok',
      found: expect.stringMatching(/^the service does not say which operations/),
    });
  });

  test('a key that may request nothing has failed, a disabled one that responses may', () => {
    expect(examine(functions(() => false)).rights?.state).toBe('failed');
    expect(examine({ isEnabled: false }).rights).toMatchObject({
      state: 'warning',
      found: expect.stringMatching(/^the service says that the key is disabled/),
    });
  });
});

import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { addDays, eachDay, weekday } from '../../src/core/days.ts';
import { entriesOf } from '../../src/jobs/responses/response-coverage.ts';
import { markCovered, requestKey } from '../../src/jobs/runs/covered.ts';
import { nightlyTarget } from '../../src/jobs/runs/nightly-request.ts';
import { planTargets, planWindows } from '../../src/jobs/runs/plan-windows.ts';
import type { PlanInput } from '../../src/jobs/runs/planned-window.ts';
import { instrumentsOfDay } from '../../src/operations/night-times.ts';
import { exchangesOf, expectedVariants, type Operation } from '../../src/operations/operation.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { spanOf } from '../../src/operations/spans.ts';
import { contracts, deals, details, items } from '../support/declared.ts';

const TODAY = '2025-09-12';

function input(operation: Operation, changes: Partial<PlanInput> = {}): PlanInput {
  const from = changes.from ?? '2025-08-01';
  const to = changes.to ?? TODAY;
  return {
    operation,
    exchange: 'BSE',
    from,
    to,
    sessions: eachDay(from, to).filter((day) => ![0, 6].includes(weekday(day))),
    instruments: [],
    options: {},
    covered: new Map(),
    refetchFrom: null,
    today: TODAY,
    live: false,
    ...changes,
  };
}

const planned = (changes: PlanInput) =>
  [...planWindows(changes)].map(({ state, from, to, instruments, variant, params, reason }) => ({
    state,
    from,
    to,
    ...(instruments.length === 0 ? {} : { instruments }),
    ...(variant === '' ? {} : { variant }),
    ...(Object.keys(params).length === 0 ? {} : { params }),
    ...(reason === null ? {} : { reason }),
  }));

describe('named spans', () => {
  test('days that none reaches are skipped with a reason, the others are requested', () => {
    expect(planned(input(deals))).toEqual([
      {
        state: 'skipped',
        from: '2025-08-01',
        to: '2025-08-12',
        reason: 'the source serves GetTestDeals only for the last 30 days and the next 7 days',
      },
      { state: 'pending', from: '2025-08-13', to: '2025-09-11' },
      { state: 'pending', from: '2025-09-12', to: '2025-09-12' },
    ]);
  });

  test('only days that none reaches', () => {
    expect(planned(input(deals, { to: '2025-08-08' })).map(({ state }) => state)).toEqual(['skipped']);
  });

  test('a window lies in one span, also where days to come are requested', () => {
    const windows = [...planWindows(input(deals, { from: '2025-09-08', to: '2025-09-24' }))];
    const requested = windows.filter(({ state }) => state === 'pending');
    expect(requested.map(({ from, to }) => [from, to])).toEqual([
      ['2025-09-08', '2025-09-12'],
      ['2025-09-15', '2025-09-19'],
    ]);
    for (const range of requested) expect(spanOf(deals, range, TODAY)).toBeDefined();
  });
});

describe('instruments by twenty-five', () => {
  const names = Array.from({ length: 60 }, (_, at) => `S${at}`);

  test('the same request for all', () => {
    const windows = [...planWindows(input(items, { instruments: names }))];
    expect(windows.map(({ instruments }) => instruments.length)).toEqual([25, 25, 10]);
    expect(windows.flatMap(({ instruments }) => instruments)).toEqual(names);
  });

  test('those that are covered are not requested again, and the others share calls', () => {
    const bits = new Uint8Array(8);
    markCovered(
      bits,
      names.flatMap((_, at) => (at % 2 === 0 ? [at] : [])),
    );
    const covered = new Map([[requestKey(TODAY, ''), bits]]);
    const windows = [...planWindows(input(items, { instruments: names, covered }))];
    expect(windows.map(({ state, instruments }) => [state, instruments.length])).toEqual([
      ['skipped', 25],
      ['skipped', 5],
      ['pending', 25],
      ['pending', 5],
    ]);
    const requested = windows
      .filter(({ state }) => state === 'pending')
      .flatMap(({ instruments }) => instruments);
    expect(requested).toEqual(names.filter((_, at) => at % 2 === 1));
  });

  test('coverage is recorded for each', () => {
    const window = { from: '2025-01-01', to: TODAY, instruments: ['A', 'B'], variant: '', filtered: false };
    expect(entriesOf(items, window, [], TODAY)).toEqual([
      { day: TODAY, instrument: 'A', variant: '' },
      { day: TODAY, instrument: 'B', variant: '' },
    ]);
  });
});

describe('rows as requests', () => {
  const rows = {
    requests: [
      { instrument: 'TCS', values: ['2025', 'Standalone'], day: '2025-09-10' },
      { instrument: 'ABB', values: ['2024', 'Consolidated'], day: '2025-09-01' },
    ],
    more: false,
    hasRows: true,
  };

  test('one window each', () => {
    expect(planned(input(details, { rows }))).toEqual([
      {
        state: 'pending',
        from: '2025-09-10',
        to: '2025-09-10',
        instruments: ['TCS'],
        variant: '2025/Standalone',
        params: { year: '2025', natureOfReport: 'Standalone' },
      },
      {
        state: 'pending',
        from: '2025-09-01',
        to: '2025-09-01',
        instruments: ['ABB'],
        variant: '2024/Consolidated',
        params: { year: '2024', natureOfReport: 'Consolidated' },
      },
    ]);
  });

  test('no rows: says what to load first', () => {
    const none = { requests: [], more: false, hasRows: false };
    for (const known of [undefined, none]) {
      expect(planned(input(details, { rows: known }))).toMatchObject([
        {
          state: 'skipped',
          reason: 'it is about the rows of GetTestItems, and none is stored for BSE: load GetTestItems first',
        },
      ]);
    }
  });

  test('a column that the rows do not have keeps nothing else from being planned', () => {
    const wrong = { requests: [], more: false, hasRows: false, problem: 'its declaration names x' };
    expect(planned(input(details, { rows: wrong }))).toMatchObject([
      { state: 'skipped', reason: 'its declaration names x' },
    ]);
  });

  test('all covered, and more than a run requests', () => {
    const covered = { ...rows, requests: [] };
    expect(planned(input(details, { rows: covered }))).toMatchObject([{ reason: 'loaded already' }]);
    expect(planned(input(details, { rows: { ...rows, more: true } })).at(-1)).toMatchObject({
      state: 'skipped',
      reason: expect.stringContaining('the next one requests the others'),
    });
  });

  test('the coverage of a request is its own', () => {
    const windows = [...planTargets([input(details, { rows })])];
    const requests = windows.flatMap((window) => entriesOf(details, window, [], TODAY));
    expect(requests).toEqual([
      { day: '2025-09-10', instrument: 'TCS', variant: '2025/Standalone' },
      { day: '2025-09-01', instrument: 'ABB', variant: '2024/Consolidated' },
    ]);
    expect(expectedVariants(details)).toBeNull();
  });

  test('a night plans them as of its day', () => {
    const state = { watermark: null, awaited: null, date: TODAY, calendar: loadCalendar() };
    const config = { EOD_LOOKBACK_SESSIONS: 2, EOD_HISTORY_DAYS: 30 };
    expect(nightlyTarget({ operation: details, exchange: 'BSE', ...state, config })).toEqual({
      operation: 'GetTestDetails',
      exchange: 'BSE',
      from: TODAY,
      to: TODAY,
      refetchFrom: null,
    });
  });
});

test('instruments that are spread over the week: each on one night, about a seventh a night', () => {
  const names = Array.from({ length: 700 }, (_, at) => `SYMBOL${at}`);
  const nights = eachDay('2025-09-08', '2025-09-14').map((day) => instrumentsOfDay(names, day));
  expect(nights.flat().sort()).toEqual([...names].sort());
  for (const night of nights) expect(Math.abs(night.length - 100)).toBeLessThan(40);
  expect(instrumentsOfDay(names, addDays('2025-09-08', 70))).toEqual(nights[0]);
});

test('a night on which none of the spread instruments has its turn says so', () => {
  const operation = operationNamed('GetFinRatioEOD');
  const [none] = planWindows(input(operation, { hasOtherNights: true }));
  expect(none).toMatchObject({ state: 'skipped', reason: expect.stringContaining('spread over the week') });
  const [unknown] = planWindows(input(operation));
  expect(unknown).toMatchObject({
    state: 'skipped',
    reason: expect.stringContaining('no instruments are known'),
  });
});

describe('segments', () => {
  test('follow the exchange that runs them', () => {
    const of = (exchanges: ('BSE' | 'NSE')[]) => exchangesOf(contracts, { EOD_EXCHANGES: exchanges });
    expect(of(['BSE', 'NSE'])).toEqual(['BFO', 'BSE']);
    expect(of(['NSE'])).toEqual([]);
    const other = { ...contracts, exchanges: ['NFO', 'CDS', 'BSE_IDX', 'BSE_DEBT', 'MCX'] };
    expect(exchangesOf(other, { EOD_EXCHANGES: ['NSE'] })).toEqual(['NFO', 'CDS', 'MCX']);
    const named = { EOD_EXCHANGES: ['NSE' as const], EOD_OPERATION_EXCHANGES: { GetTestContracts: ['BFO'] } };
    expect(exchangesOf(contracts, named)).toEqual(['BFO']);
  });

  test('have its sessions, also those that were observed', () => {
    const calendar = loadCalendar();
    const year = ['2025-01-01', '2025-12-31'] as const;
    for (const [segment, exchange] of [
      ['BFO', 'BSE'],
      ['BSE_IDX', 'BSE'],
      ['NFO', 'NSE'],
      ['MCX', 'NSE'],
    ] as const) {
      expect(calendar.sessions(segment, ...year)).toEqual(calendar.sessions(exchange, ...year));
    }
    const sunday = '2025-09-14';
    calendar.learn([{ exchange: 'BSE', day: sunday }]);
    expect(['BSE', 'BFO', 'NSE', 'NFO'].map((code) => calendar.isSession(code, sunday))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe('a declaration of which a function fails', () => {
  const throwing = () => {
    throw new Error('no such quarter');
  };
  const once = operationNamed('GetCorporateActionsCategories');
  const broken: readonly (readonly [string, Operation])[] = [
    ['requests throw', { ...items, windows: { per: 'instrument', days: 'none', requests: throwing } }],
    ['requests of today throw', { ...once, windows: { per: 'once', requests: throwing } }],
    ['requests are none', { ...once, windows: { per: 'once', requests: 5 as never } }],
    ['datedWhen throws', { ...deals, request: { ...deals.request, datedWhen: throwing } }],
  ];

  test.each(broken)(
    'because its %s is skipped with the reason, and the others are planned',
    (_, operation) => {
      const plan = [
        ...planTargets([
          input(deals),
          input(operation, { instruments: ['TCS'] }),
          input(items, { instruments: ['TCS'] }),
        ]),
      ];
      const good = [...planTargets([input(deals), input(items, { instruments: ['TCS'] })])];
      expect(plan.filter(({ reason }) => reason?.startsWith('its declaration') !== true)).toEqual(good);
      const skipped = plan.filter(
        (window) => !good.some((one) => JSON.stringify(one) === JSON.stringify(window)),
      );
      expect(skipped).toMatchObject([
        {
          operation: operation.name,
          state: 'skipped',
          reason: expect.stringMatching(
            /^its declaration cannot be planned: (no such quarter|.+ is not a function)$/,
          ),
        },
      ]);
    },
  );
});

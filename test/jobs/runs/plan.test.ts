import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addDays, eachDay } from '../../../src/core/days.ts';
import {
  type Covered,
  classifyCount,
  countsAwaited,
  markCovered,
  requestKey,
} from '../../../src/jobs/runs/covered.ts';
import { planWindows as planEach, planTargets } from '../../../src/jobs/runs/plan-windows.ts';
import { instrumentBatches, type PlanInput } from '../../../src/jobs/runs/planned-window.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import type { CoverageState } from '../../../src/state/registers.ts';
import type { PlannedWindow } from '../../../src/state/windows/plan.ts';
import { forAll } from '../../support/for-all.ts';

const FROM = '2025-09-01';

/** A row of coverage. */
interface CoverageRow {
  readonly day: string;
  readonly instrument: string;
  readonly variant: string;
  readonly state: CoverageState;
}

interface Changes extends Partial<PlanInput> {
  readonly coverage?: readonly CoverageRow[];
}

function input(operation: string, { coverage = [], ...changes }: Changes = {}): PlanInput {
  const from = changes.from ?? FROM;
  const to = changes.to ?? '2025-09-12';
  const weekdays = eachDay(from, to).filter((day) => ![0, 6].includes(new Date(day).getUTCDay()));
  return {
    operation: operationNamed(operation),
    exchange: 'BSE',
    from,
    to,
    tradingDays: weekdays,
    instruments: [],
    options: {},
    covered: responsesOf(operation, changes.instruments ?? [], coverage),
    refetchFrom: null,
    today: '2025-09-30',
    live: false,
    ...changes,
  };
}

/** What the coverage says of these instruments, as the database would count it. */
function responsesOf(name: string, instruments: readonly string[], coverage: readonly CoverageRow[]) {
  const operation = operationNamed(name);
  const responses = new Map<string, Covered>();
  for (const { day, variant } of coverage) {
    const key = requestKey(day, variant);
    const rows = coverage.filter(
      (row) => requestKey(row.day, row.variant) === key && ['', ...instruments].includes(row.instrument),
    );
    const awaited = rows.filter(({ state }) => state === 'not_published');
    const ofExchange = rows.find(({ instrument }) => instrument === '')?.state ?? null;
    const count = { day, variant, ofExchange, responses: rows.length, awaited: awaited.length };
    const extent = classifyCount(operation, instruments.length, count);
    if (extent === 'all') responses.set(key, extent);
    if (extent !== 'some') continue;
    const bits = new Uint8Array(Math.ceil(instruments.length / 8));
    const counted = rows.filter((row) => !awaited.includes(row) || countsAwaited(operation, count));
    const names = counted.map(({ instrument: name }) => name).filter((name) => name !== '');
    markCovered(
      bits,
      names.map((name) => instruments.indexOf(name)),
    );
    responses.set(key, bits);
  }
  return responses;
}

const planWindows = (planned: PlanInput) => [...planEach(planned)];

const ofExchange = (day: string) => ({ day, instrument: '', variant: '', state: 'loaded' as const });
const spans = (windows: readonly PlannedWindow[], state = 'pending') =>
  windows.filter((window) => window.state === state).map((window) => `${window.from}..${window.to}`);

/** The fewest ranges of at most `days` days that hold all of these days, by trying every choice. */
function fewest(needed: readonly string[], days: number): number {
  const [first] = needed;
  if (first === undefined) return 0;
  let best = Number.POSITIVE_INFINITY;
  // A range that holds the first day may begin on any of the `days` days that end with it.
  for (let early = 0; early < days; early += 1) {
    const end = addDays(first, days - 1 - early);
    best = Math.min(
      best,
      1 +
        fewest(
          needed.filter((day) => day > end),
          days,
        ),
    );
  }
  return best;
}

/** A range of up to 14 days in which any day may be a trading day and any trading day may be covered. */
const situations = fc
  .record({
    days: fc.array(fc.constantFrom('closed', 'needed', 'covered'), { minLength: 1, maxLength: 14 }),
    windowDays: fc.integer({ min: 1, max: 6 }),
  })
  .map(({ days, windowDays }) => {
    const tradingDays = days.map((kind, n) => ({ day: addDays(FROM, n), kind }));
    const daysOf = (...kinds: string[]) =>
      tradingDays.filter(({ kind }) => kinds.includes(kind)).map(({ day }) => day);
    return {
      windowDays,
      from: FROM,
      to: addDays(FROM, days.length - 1),
      sessions: daysOf('needed', 'covered'),
      needed: daysOf('needed'),
      known: daysOf('covered'),
    };
  });

type Situation = ReturnType<(typeof situations)['generate']>['value'];

function plan(operation: string, { windowDays, from, to, sessions, known }: Situation): PlannedWindow[] {
  return planWindows(
    input(operation, { windowDays, from, to, tradingDays: sessions, coverage: known.map(ofExchange) }),
  );
}

/** Days that belong to a needed trading day: itself and the closed days next to it. */
function owedDays({ from, to, sessions, needed }: Situation): string[] {
  return eachDay(from, to).filter((day) => {
    const around = [
      sessions.filter((tradingDay) => tradingDay <= day).at(-1),
      sessions.find((tradingDay) => tradingDay >= day),
    ];
    if (sessions.includes(day)) return needed.includes(day);
    return around.some((tradingDay) => tradingDay !== undefined && needed.includes(tradingDay));
  });
}

describe('windows of several days', () => {
  const RANGE = ['GetTop5GainersLosers', 'GetConsolidatedPledge'] as const;

  test.each(RANGE)('%s: hold every needed trading day once, within the range and the length', (operation) =>
    forAll([situations], { numRuns: 300 }, (situation) => {
      const { sessions, needed, from, to, windowDays } = situation;
      const windows = plan(operation, situation);
      if (sessions.length === 0) {
        expect(windows.map((window) => window.state)).toEqual(['skipped']);
        return;
      }
      const pending = windows.filter((window) => window.state === 'pending');
      const days = pending.flatMap((window) => eachDay(window.from, window.to));
      expect(new Set(days).size).toBe(days.length);
      expect(days).toEqual(expect.arrayContaining(needed));
      for (const window of pending) {
        expect(eachDay(window.from, window.to).length).toBeLessThanOrEqual(windowDays);
        expect(window.from >= from && window.to <= to).toBe(true);
      }
    }),
  );

  test.each(RANGE)('%s: account for every covered trading day, each once', (operation) =>
    forAll([situations], { numRuns: 300 }, (situation) => {
      const windows = plan(operation, situation);
      const inside = (day: string) =>
        windows.filter((window) => day >= window.from && day <= window.to).length;
      for (const tradingDay of situation.sessions) expect(inside(tradingDay)).toBe(1);
    }),
  );

  test('are as few as any choice of ranges could be', () =>
    forAll([situations], { numRuns: 300 }, (situation) => {
      const ranges = spans(plan('GetTop5GainersLosers', situation));
      expect(ranges.length).toBe(fewest(situation.needed, situation.windowDays));
      const everyDay = spans(plan('GetConsolidatedPledge', situation));
      expect(everyDay.length).toBe(fewest(owedDays(situation), situation.windowDays));
    }));

  test('of operations whose records carry any day leave out no closed day next to a needed trading day', () =>
    forAll([situations], { numRuns: 300 }, (situation) => {
      const pending = plan('GetConsolidatedPledge', situation).filter((window) => window.state === 'pending');
      const days = new Set(pending.flatMap((window) => eachDay(window.from, window.to)));
      for (const day of owedDays(situation)) expect(days).toContain(day);
    }));

  test('end where they should in plain cases', () => {
    expect(spans(planWindows(input('GetTop5GainersLosers')))).toEqual([
      '2025-09-01..2025-09-05',
      '2025-09-08..2025-09-12',
    ]);
    expect(spans(planWindows(input('GetTop5GainersLosers', { windowDays: 30 })))).toEqual([
      '2025-09-01..2025-09-12',
    ]);
    const coverage = ['2025-09-01', '2025-09-02', '2025-09-04', '2025-09-12'].map(ofExchange);
    const windows = planWindows(input('GetTop5GainersLosers', { coverage }));
    expect(spans(windows)).toEqual(['2025-09-03..2025-09-05', '2025-09-08..2025-09-11']);
    expect(spans(windows, 'skipped')).toEqual(['2025-09-01..2025-09-02', '2025-09-12..2025-09-12']);
  });

  test('are planned even where all is covered, when requested again', () => {
    const coverage = input('GetTop5GainersLosers').tradingDays.map(ofExchange);
    expect(spans(planWindows(input('GetTop5GainersLosers', { coverage })))).toEqual([]);
    expect(
      spans(planWindows(input('GetTop5GainersLosers', { coverage, refetchFrom: '2025-09-11' }))),
    ).toEqual(['2025-09-11..2025-09-12']);
    expect(spans(planWindows(input('GetTop5GainersLosers', { coverage, refetchFrom: FROM })))).toHaveLength(
      2,
    );
  });
});

describe('days to come', () => {
  const planActions = (changes: Changes) =>
    planWindows(input('GetCorporateActions', { live: true, today: '2025-09-12', ...changes })).map(
      ({ from, to, variant, filtered, state }) => [`${from}..${to}`, variant, filtered, state].join(' '),
    );
  const past = '2025-09-01..2025-09-12  false pending';

  test('are requested by a night, apart from the others, and again each night', () => {
    expect(planActions({})).toEqual([past, '2025-09-13..2025-10-12 ahead true pending']);
    const coverage = input('GetCorporateActions').tradingDays.map(ofExchange);
    expect(planActions({ coverage })).toEqual([
      '2025-09-01..2025-09-12  false skipped',
      '2025-09-13..2025-10-12 ahead true pending',
    ]);
  });

  test('are requested in ranges of the length that the source allows', () => {
    const ahead = planActions({ windowDays: 14 }).filter((window) => window.includes('ahead'));
    expect(ahead.map((window) => window.split(' ')[0])).toEqual([
      '2025-09-13..2025-09-26',
      '2025-09-27..2025-10-10',
      '2025-10-11..2025-10-12',
    ]);
  });

  test('are not requested by other runs, of other operations, or of a trial address', () => {
    expect(planActions({ live: false })).toEqual([past]);
    expect(planActions({ reach: { from: '2025-09-12', to: '2025-09-12', reason: '' } })).toEqual([past]);
    const series = planWindows(input('GetSeriesChange', { live: true, today: '2025-09-12' }));
    expect(series.every(({ variant }) => variant === '')).toBe(true);
  });
});

describe('windows of one trading day', () => {
  test('are one for each needed trading day', () =>
    forAll([situations], (situation) => {
      const windows = plan('GetBhavCopyCM', situation);
      expect(spans(windows)).toEqual(situation.needed.map((day) => `${day}..${day}`));
    }));

  test('of named instruments are batches of at most 25, no instrument lost or doubled', () =>
    forAll([fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 120 })], (instruments) => {
      const batches = instrumentBatches(operationNamed('GetBhavCopyCM'), instruments);
      expect(batches.flat()).toEqual(instruments);
      expect(batches.length).toBe(Math.max(1, Math.ceil(instruments.length / 25)));
      for (const batch of batches) expect(batch.length).toBeLessThanOrEqual(25);
    }));

  test('skip a batch only when each of its instruments is covered, or the whole exchange is', () => {
    const instruments = ['A', 'B'];
    const at = { from: '2025-09-01', to: '2025-09-01', instruments };
    const known = (instrument: string) => ({ ...ofExchange('2025-09-01'), instrument });
    const planned = (coverage: readonly CoverageRow[]) =>
      planWindows(input('GetBhavCopyCM', { ...at, coverage })).map((window) => window.state);
    expect(planned([known('A')])).toEqual(['pending']);
    expect(planned([known('A'), known('B')])).toEqual(['skipped']);
    expect(planned([known('')])).toEqual(['skipped']);
  });

  test('differ by instrument where every day is covered for some of them only', () => {
    const instruments = Array.from({ length: 50 }, (_, nth) => `S${nth}`);
    const at = { from: '2025-09-01', to: '2025-09-02', instruments };
    const coverage = ['2025-09-01', '2025-09-02'].flatMap((day) =>
      instruments.slice(0, 25).map((instrument) => ({ ...ofExchange(day), instrument })),
    );
    const windows = planWindows(input('GetBhavCopyCM', { ...at, coverage }));
    expect(windows.map(({ instruments: [first], state, variant }) => [first, state, variant])).toEqual([
      ['S0', 'skipped', ''],
      ['S0', 'skipped', ''],
      ['S25', 'pending', ''],
      ['S25', 'pending', ''],
    ]);
  });

  test('that two targets of an operation without variants both need are planned once', () => {
    const [first, second] = [
      input('GetBhavCopyCM', { from: '2025-09-01', to: '2025-09-03' }),
      input('GetBhavCopyCM', { from: '2025-09-02', to: '2025-09-04' }),
    ];
    const other = input('GetSeriesChange', { from: '2025-09-01', to: '2025-09-03' });
    expect(spans([...planTargets([first, second])])).toEqual(
      ['2025-09-01', '2025-09-02', '2025-09-03', '2025-09-04'].map((day) => `${day}..${day}`),
    );
    // Another operation, or another exchange, requests something else.
    expect([...planTargets([first, other])]).toHaveLength(3 + planWindows(other).length);
    expect([...planTargets([first, { ...first, exchange: 'NSE' }])]).toHaveLength(6);
  });

  test('single-instrument operations request one at a time, others ignore instruments', () => {
    const of = (name: string) => instrumentBatches(operationNamed(name), ['A', 'B']);
    expect(of('GetSeriesChange')).toEqual([['A'], ['B']]);
    expect(of('GetTop5GainersLosers')).toEqual([[]]);
  });
});

describe('requests per instrument', () => {
  const planRatios = (operation: string, changes: Changes = {}) =>
    planWindows(input(operation, { to: '2025-09-02', instruments: ['TCS'], ...changes }));

  test('both natures of report, day by day', () => {
    expect(planRatios('GetFinRatioEOD').map((window) => [window.from, window.variant])).toEqual([
      ['2025-09-01', 'eod/Standalone'],
      ['2025-09-01', 'eod/Consolidated'],
      ['2025-09-02', 'eod/Standalone'],
      ['2025-09-02', 'eod/Consolidated'],
    ]);
  });

  test('quarters that touch the range, once each; real time only in a live run, and then always', () => {
    const quarters = planRatios('GetFinancialRatios', {
      from: '2025-03-31',
      to: '2025-07-01',
      tradingDays: [],
    });
    expect(
      quarters.filter((window) => window.variant === 'quarter/Standalone').map(({ params }) => params),
    ).toEqual(
      [
        { period: 'QM', year: '2024' },
        { period: 'QJ', year: '2025' },
        { period: 'QS', year: '2025' },
      ].map((quarter) => ({ variant: 'quarter', type: 'Quarter', natureOfReport: 'Standalone', ...quarter })),
    );
    const coverage = ['Standalone', 'Consolidated'].map((nature) => ({
      ...ofExchange('2025-09-30'),
      instrument: 'TCS',
      variant: `realtime/${nature}`,
    }));
    const live = planRatios('GetFinancialRatios', { live: true, coverage });
    expect(live.filter((window) => window.params.type === 'Realtime').map(({ state }) => state)).toEqual([
      'pending',
      'pending',
    ]);
    expect(planRatios('GetFinancialRatios').some((window) => window.params.type === 'Realtime')).toBe(false);
  });

  test('a quarter is requested from its last day on; a night requests the one that ended last', () => {
    const days = (changes: Changes) =>
      planRatios('GetFinancialRatios', changes)
        .filter(({ variant }) => variant === 'quarter/Standalone')
        .map(({ to }) => to);
    const february = { from: '2025-02-14', to: '2025-02-26' };
    expect(days({ ...february, today: '2025-02-26' })).toEqual([]);
    expect(days({ ...february, today: '2025-02-26', live: true })).toEqual(['2024-12-31']);
    expect(days({ from: '2025-03-31', to: '2025-03-31', today: '2025-03-30' })).toEqual([]);
    expect(days({ from: '2025-03-31', to: '2025-03-31', today: '2025-03-31' })).toEqual(['2025-03-31']);
    expect(days({ from: '2025-06-20', to: '2025-06-20', today: '2025-06-20', live: true })).toEqual([
      '2025-03-31',
    ]);
    expect(planRatios('GetFinancialRatios', { ...february, today: '2025-02-26' })).toMatchObject([
      { state: 'skipped', reason: 'nothing to request 2025-02-14 to 2025-02-26' },
    ]);
  });

  test('figures of a quarter are awaited company by company; those of a day while most have none', () => {
    const key = (day: string, variant: string) => (instrument: string, state: CoverageState) => ({
      day,
      variant,
      instrument,
      state,
    });
    const open = (operation: string, coverage: readonly CoverageRow[], changes: Changes) =>
      planRatios(operation, { coverage, instruments: ['A', 'B', 'C'], ...changes })
        .filter(({ variant, state }) => variant.endsWith('Standalone') && state === 'pending')
        .map(({ instruments }) => instruments[0]);
    const quarter = key('2025-06-30', 'quarter/Standalone');
    const june = { from: '2025-06-30', to: '2025-06-30' };
    const known = [quarter('A', 'loaded'), quarter('B', 'loaded'), quarter('C', 'not_published')];
    expect(open('GetFinancialRatios', known, june)).toEqual(['C']);
    const day = key('2025-09-01', 'eod/Standalone');
    const first = { from: '2025-09-01', to: '2025-09-01' };
    const fewMissing = [day('A', 'loaded'), day('B', 'loaded'), day('C', 'not_published')];
    expect(open('GetFinRatioEOD', fewMissing, first)).toEqual([]);
    const mostMissing = [day('A', 'loaded'), day('B', 'not_published'), day('C', 'not_published')];
    expect(open('GetFinRatioEOD', mostMissing, first)).toEqual(['B', 'C']);
    // The night requests whole exchanges again, too.
    const awaited = [{ ...ofExchange('2025-09-01'), state: 'not_published' as const }];
    expect(spans(planWindows(input('GetSeriesChange', { ...first, coverage: awaited })))).toHaveLength(1);
  });

  test('options choose among the requests', () => {
    const options = { natureOfReport: 'Consolidated', type: 'EOD' };
    expect(planRatios('GetFinancialRatios', { options }).map((window) => window.variant)).toEqual([
      'eod/Consolidated',
      'eod/Consolidated',
    ]);
  });

  test('known ones that follow each other are one range, with the parameters they share; others part them', () => {
    const tradingDays = ['2025-03-28', '2025-06-30', '2025-09-01'];
    const known = (variant: string, days: readonly string[]) =>
      days.map((day) => ({ ...ofExchange(day), instrument: 'TCS', variant }));
    const planReported = (operation: string, changes: Changes) =>
      planRatios(operation, {
        from: '2025-01-01',
        to: '2025-09-01',
        today: '2025-09-01',
        tradingDays,
        ...changes,
      })
        .filter(({ params }) => params.natureOfReport === 'Standalone')
        .map(({ from, to, params, state }) => [`${from}..${to} ${state}`, params]);
    const quarter = { variant: 'quarter', type: 'Quarter', natureOfReport: 'Standalone' };
    expect(
      planReported('GetFinancialRatios', {
        coverage: known('quarter/Standalone', ['2025-03-31', '2025-06-30']),
      }),
    ).toEqual([['2025-01-01..2025-06-30 skipped', quarter]]);
    const days = known('eod/Standalone', ['2025-03-28', '2025-09-01']);
    expect(planReported('GetFinRatioEOD', { coverage: days }).map(([range]) => range)).toEqual([
      '2025-03-28..2025-03-28 skipped',
      '2025-06-30..2025-06-30 pending',
      '2025-09-01..2025-09-01 skipped',
    ]);
  });

  test('that several targets make are planned once, known or not', () => {
    const day = { from: FROM, to: FROM, instruments: ['TCS'] };
    const plans = (...inputs: PlanInput[]) =>
      [...planTargets(inputs)].map(({ operation, state, reason }) => [operation, state, reason]);
    const coverage = ['Standalone', 'Consolidated'].map((nature) => ({
      ...ofExchange(FROM),
      instrument: 'TCS',
      variant: `eod/${nature}`,
    }));
    const known = input('GetFinRatioEOD', { ...day, coverage });
    const open = input('GetFinRatioEOD', day);
    const other = input('GetFinancialRatios', { ...day, options: { type: 'EOD' } });
    const pending = ['GetFinRatioEOD', 'pending', null];
    const skipped = ['GetFinRatioEOD', 'skipped', 'loaded already'];
    const same = ['GetFinancialRatios', 'skipped', "the same request as GetFinRatioEOD's"];
    expect(plans(known)).toEqual([skipped, skipped]);
    expect(plans(open, open)).toEqual([pending, pending]);
    expect(plans(known, known)).toEqual([skipped, skipped]);
    expect(plans(known, open, open)).toEqual([skipped, skipped, pending, pending]);
    expect(plans(open, known)).toEqual([pending, pending]);
    expect(plans(known, other)).toEqual([skipped, skipped, same, same]);
    expect(plans(open, other)).toEqual([pending, pending, same, same]);
  });

  test('what is known of one instrument or one nature says nothing of another', () => {
    const coverage = [{ ...ofExchange('2025-09-01'), instrument: 'TCS', variant: 'eod/Standalone' }];
    const windows = planRatios('GetFinRatioEOD', { coverage, instruments: ['TCS', 'INFY'] });
    expect(windows.filter((window) => window.state === 'skipped')).toHaveLength(1);
    expect(windows.filter((window) => window.state === 'pending')).toHaveLength(7);
  });

  test('without any instrument the range is skipped, and why is said', () => {
    expect(planRatios('GetFinRatioEOD', { instruments: [] })).toMatchObject([
      { state: 'skipped', reason: expect.stringContaining('no prices of BSE are stored') },
    ]);
  });
});

describe('the rest of the plan', () => {
  test('operations without dates are requested once, for today', () => {
    const once = planWindows(input('GetCorporateActionsCategories'));
    expect(once).toMatchObject([{ from: '2025-09-30', to: '2025-09-30', state: 'pending' }]);
    const coverage = [ofExchange('2025-09-30')];
    expect(planWindows(input('GetCorporateActionsCategories', { coverage }))).toMatchObject([
      { state: 'skipped', reason: 'loaded already today' },
    ]);
  });

  test('a range without a trading day is skipped with its reason', () => {
    expect(planWindows(input('GetBhavCopyCM', { from: '2025-09-06', to: '2025-09-07' }))).toMatchObject([
      { state: 'skipped', reason: 'BSE had no trading day in this range', instruments: [], variant: '' },
    ]);
  });

  test('options that fit no request of the range are named, not treated as a holiday', () => {
    const ask = (options: Record<string, string>) =>
      planWindows(
        input('GetFinancialRatios', { instruments: ['TCS'], from: '2025-09-11', to: '2025-09-12', options }),
      );
    expect(ask({ period: 'QS', year: '2025' }).map(({ state }) => state)).toEqual(['pending', 'pending']);
    expect(ask({ period: 'QM', year: '2025' })).toMatchObject([
      { state: 'skipped', reason: 'nothing to request 2025-09-11 to 2025-09-12 with period QM, year 2025' },
    ]);
  });

  test('an option that filters the response marks the window; one at its fallback does not', () => {
    const filtered = (operation: string, options: Record<string, string>) =>
      planWindows(input(operation, { options })).map((window) => [window.filtered, window.params]);
    expect(filtered('GetCircuitBreakers', { band: 'H', sector: 'IT' })[0]).toEqual([true, { band: 'H' }]);
    expect(filtered('GetTop5GainersLosers', { type: 'GainersLosers' })[0]?.[0]).toBe(false);
    expect(filtered('GetTop5GainersLosers', { type: 'Losers' })[0]?.[0]).toBe(true);
  });
});

describe('what a plan says of its windows', () => {
  const states = (windows: readonly PlannedWindow[]) =>
    windows.map(({ from, to, state }) => `${from}..${to} ${state}`);

  test('covered trading days are counted in stretches of the same length as windows', () => {
    const coverage = (from: string, to: string) => eachDay(from, to).map(ofExchange);
    const of = (windowDays: number, days: readonly CoverageRow[]) =>
      states(planWindows(input('GetTop5GainersLosers', { windowDays, coverage: days })));
    expect(of(3, coverage(FROM, '2025-09-12'))).toEqual([
      '2025-09-01..2025-09-03 skipped',
      '2025-09-04..2025-09-05 skipped',
      '2025-09-08..2025-09-10 skipped',
      '2025-09-11..2025-09-12 skipped',
    ]);
    // A window before a stretch does not part it; one inside does.
    expect(of(5, coverage('2025-09-08', '2025-09-12'))).toEqual([
      '2025-09-01..2025-09-05 pending',
      '2025-09-08..2025-09-12 skipped',
    ]);
    expect(of(1, coverage('2025-09-01', '2025-09-02'))).toHaveLength(10);
    expect(
      of(2, [...coverage('2025-09-01', '2025-09-02'), ...coverage('2025-09-04', '2025-09-05')]),
    ).toContain('2025-09-04..2025-09-05 skipped');
  });

  test('windows name their instruments, and no part where the operation has none', () => {
    const [once] = planWindows(input('GetCorporateActionsCategories'));
    expect(once).toMatchObject({ instruments: [], variant: '', reason: null });
    const [day] = planWindows(input('GetBhavCopyCM', { instruments: ['A', 'B'] }));
    expect(day).toMatchObject({ instruments: ['A', 'B'], variant: '' });
    const requests = planWindows(input('GetFinRatioEOD', { to: FROM, instruments: ['A', 'B'] }));
    expect(requests.map(({ instruments }) => instruments)).toEqual([['A'], ['A'], ['B'], ['B']]);
  });

  test('a range without a trading day has that reason for requests per instrument, too', () => {
    const weekend = { from: '2025-09-06', to: '2025-09-07', instruments: ['TCS'] };
    for (const options of [{}, { natureOfReport: 'Standalone' }] as Record<string, string>[]) {
      expect(planWindows(input('GetFinRatioEOD', { ...weekend, options }))).toMatchObject([
        { state: 'skipped', reason: 'BSE had no trading day in this range' },
      ]);
    }
  });

  test('one option of several filters the response; without any the window is whole', () => {
    const [first] = planWindows(input('GetSectoralClassification', { options: { sector: 'IT' } }));
    expect(first?.filtered).toBe(true);
    for (const name of ['GetSectoralClassification', 'GetTop5GainersLosers', 'GetCircuitBreakers']) {
      expect(planWindows(input(name)).map(({ filtered }) => filtered)).not.toContain(true);
    }
    const [ratios] = planWindows(
      input('GetFinRatioEOD', { instruments: ['TCS'], options: { natureOfReport: 'Consolidated' } }),
    );
    expect(ratios?.filtered).toBe(false);
  });
});

import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../../src/calendar/calendar.ts';
import { epochOf } from '../../../src/core/days.ts';
import type { Row } from '../../../src/declaration/table.ts';
import type { Extracted } from '../../../src/extract/types.ts';
import {
  type CoveredWindow,
  computeCoverage,
  listEntries,
} from '../../../src/jobs/responses/response-coverage.ts';
import { operationNamed } from '../../../src/operations/registry.ts';

const ZONE = 'Asia/Kolkata';
const TRADING_DAYS = ['2025-09-08', '2025-09-09', '2025-09-10'];
const config = { EOD_TIMEZONE: ZONE, EOD_PUBLISHED_AT: '21:15', EOD_LOOKBACK_SESSIONS: 3 };
const calendar = loadCalendar();
/** A call at a wall-clock time in India. */
const at = (day: string, hour: number, minute = 0) => ({
  calledAt: epochOf(day, hour * 3600 + minute * 60, ZONE) * 1000,
  calledOn: day,
  config,
  calendar,
});
const LATER = at('2025-10-01', 12);

const window = (changes: Partial<CoveredWindow> = {}) => ({
  exchange: 'BSE',
  from: '2025-09-08',
  to: '2025-09-10',
  instruments: [],
  variant: '',
  filtered: false,
  ...changes,
});

/** What was read of a response: rows of the operation's shape number `shape`, and so many rejects. */
function extracted(operation: string, rows: readonly Row[], rejects = 0, shape = 0): Extracted {
  const { table } = operationNamed(operation).shapes[shape] ?? operationNamed(operation).shapes[0];
  return {
    batches: rows.length === 0 ? [] : [{ table, rows }],
    rejects: Array.from({ length: rejects }, (_, position) => ({ position, record: {}, problems: [] })),
    fetched: rows.length + rejects,
    warnings: [],
    unknownFields: [],
    doubts: [],
    listsAll: true,
  };
}

/** `day state records` of each entry, `instrument` in front where there is one. */
function coverageLines(
  operation: string,
  response: Extracted,
  when = LATER,
  changes: Partial<CoveredWindow> = {},
) {
  return computeCoverage(operationNamed(operation), window(changes), TRADING_DAYS, response, when).map(
    (entry) =>
      [entry.instrument, entry.day, entry.state, entry.records].filter((fact) => fact !== '').join(' '),
  );
}

describe('what a response says of its days', () => {
  test('day by day where records carry their day', () => {
    const rows = ['2025-09-08', '2025-09-08', '2025-09-10'].map((change_date) => ({ change_date }));
    expect(coverageLines('GetSeriesChange', extracted('GetSeriesChange', rows))).toEqual([
      '2025-09-08 loaded 2',
      '2025-09-09 empty 0',
      '2025-09-10 loaded 1',
    ]);
  });

  test('as a whole where they do not', () => {
    const rows = [{ allotted_from: '2022-03-31' }, { allotted_from: '2025-09-09' }];
    expect(coverageLines('GetSectoralClassification', extracted('GetSectoralClassification', rows))).toEqual([
      '2025-09-08 loaded 2',
      '2025-09-09 loaded 2',
      '2025-09-10 loaded 2',
    ]);
  });

  test('instrument by instrument where instruments were requested, without regard to case', () => {
    const rows = [{ symbol: 'M&M', trade_date: '2025-09-08' }];
    const changes = { to: '2025-09-08', instruments: ['m&m', 'NOSUCH'] };
    const entries = computeCoverage(
      operationNamed('GetBhavCopyCM'),
      window(changes),
      ['2025-09-08'],
      extracted('GetBhavCopyCM', rows),
      LATER,
    );
    expect(entries.map(({ instrument, state }) => [instrument, state])).toEqual([
      ['m&m', 'loaded'],
      ['NOSUCH', 'empty'],
    ]);
  });

  test('records of the undated shape count for every day requested', () => {
    const response = extracted('GetConsolidatedPledge', [{ action_id: '1' }], 0, 1);
    expect(coverageLines('GetConsolidatedPledge', response)).toEqual(
      TRADING_DAYS.map((day) => `${day} loaded 1`),
    );
  });

  test('a response of nothing but rejects is a failure, not an empty day', () => {
    expect(coverageLines('GetSeriesChange', extracted('GetSeriesChange', [], 3))).toEqual(
      TRADING_DAYS.map((day) => `${day} failed 0`),
    );
  });

  test('a day whose records were all rejected is a failure, also beside days with good ones', () => {
    const response = extracted('GetSeriesChange', [{ change_date: '2025-09-08' }]);
    const of = (...days: (string | undefined)[]): Extracted => ({
      ...response,
      rejects: days.map((day, position) => ({
        position,
        record: {},
        problems: [],
        ...(day === undefined ? {} : { day }),
      })),
      fetched: 1 + days.length,
    });
    expect(coverageLines('GetSeriesChange', of('2025-09-09', '2025-09-09', '2025-09-08'))).toEqual([
      '2025-09-08 loaded 1',
      '2025-09-09 failed 0',
      '2025-09-10 empty 0',
    ]);
    // A record that does not say its day may be of any day without one.
    expect(coverageLines('GetSeriesChange', of(undefined))).toEqual([
      '2025-09-08 loaded 1',
      '2025-09-09 failed 0',
      '2025-09-10 failed 0',
    ]);
  });

  test('a reject that names its instrument says nothing of the others', () => {
    const rows = [{ symbol: 'M&M', trade_date: '2025-09-08' }];
    const rejects = [{ position: 1, record: {}, problems: [], day: '2025-09-08', instrument: 'tcs' }];
    const response = { ...extracted('GetBhavCopyCM', rows), rejects, fetched: 2 };
    const changes = { to: '2025-09-08', instruments: ['M&M', 'TCS', 'NOSUCH'] };
    expect(
      coverageLines('GetBhavCopyCM', response, LATER, changes).filter((line) => line.includes('09-08')),
    ).toEqual(['M&M 2025-09-08 loaded 1', 'TCS 2025-09-08 failed 0', 'NOSUCH 2025-09-08 empty 0']);
  });

  test('nothing, when the window was filtered by hand', () => {
    const rows = [{ change_date: '2025-09-08' }];
    expect(
      coverageLines('GetSeriesChange', extracted('GetSeriesChange', rows), LATER, { filtered: true }),
    ).toEqual([]);
  });
});

describe('a day without a record', () => {
  const states = (operation: string, when: ReturnType<typeof at>, nights = 3) =>
    coverageLines(operation, extracted(operation, []), {
      ...when,
      config: { ...config, EOD_LOOKBACK_SESSIONS: nights },
    }).map((line) => line.split(' ')[1]);
  const [no, yes] = ['not_published', 'empty'];

  test('is believed once as many further trading days as nights look back have been published', () => {
    // The eighth to the tenth are Monday to Wednesday, the twelfth is a Friday, the fifteenth a Monday.
    const evening = (day: string) => states('GetSeriesChange', at(day, 21, 15));
    expect(evening('2025-09-10')).toEqual([no, no, no]);
    expect(evening('2025-09-11')).toEqual([yes, no, no]);
    expect(evening('2025-09-12')).toEqual([yes, yes, no]);
    expect(evening('2025-09-14')).toEqual([yes, yes, no]);
    expect(evening('2025-09-15')).toEqual([yes, yes, yes]);
    expect(states('GetBhavCopyCM', at('2025-09-11', 21, 15))).toEqual([yes, no, no]);
  });

  test("counts a trading day as published at the operation's own time, or at EOD_PUBLISHED_AT where that is later", () => {
    expect(states('GetSeriesChange', at('2025-09-10', 21, 14), 0)).toEqual([yes, yes, no]);
    expect(states('GetSeriesChange', at('2025-09-10', 21, 15), 0)).toEqual([yes, yes, yes]);
    expect(states('GetSeriesChange', at('2025-09-11', 21, 14))).toEqual([no, no, no]);
    const ratios = (hour: number, EOD_PUBLISHED_AT: string) => {
      const when = {
        ...at('2025-09-10', hour),
        config: { ...config, EOD_PUBLISHED_AT, EOD_LOOKBACK_SESSIONS: 0 },
      };
      const entry = { instruments: ['TCS'], from: '2025-09-10', variant: 'eod/Standalone' };
      return coverageLines('GetFinRatioEOD', extracted('GetFinRatioEOD', []), when, entry).join();
    };
    expect(ratios(21, '20:00')).toContain(no);
    expect(ratios(22, '20:00')).toContain(yes);
    expect(ratios(22, '23:00')).toContain(no);
  });

  test('is of today by Indian time', () => {
    // 23:30 on the 9th in London is 04:00 on the 10th in India.
    expect(states('GetSeriesChange', at('2025-09-10', 4), 0)[2]).toBe(no);
  });

  test('that ends a quarter is believed once the next quarter is over', () => {
    const quarter = {
      instruments: ['TCS'],
      from: '2025-01-01',
      to: '2025-03-31',
      variant: 'quarter/Standalone',
    };
    const of = (day: string) =>
      coverageLines('GetFinancialRatios', extracted('GetFinancialRatios', []), at(day, 23), quarter).join();
    expect(of('2025-03-31')).toContain(no);
    expect(of('2025-06-30')).toContain(no);
    expect(of('2025-07-02')).toContain(yes);
  });
});

describe('the entries that a window covers', () => {
  const days = (operation: string, changes: Partial<CoveredWindow> = {}) =>
    listEntries(operationNamed(operation), window(changes), TRADING_DAYS, '2025-10-01').map(({ day }) => day);

  test('are its trading days', () => {
    expect(days('GetBhavCopyCM')).toEqual(TRADING_DAYS);
  });

  test('are the day of the call where the operation knows no dates, or requests real time', () => {
    expect(days('GetCorporateActionsCategories')).toEqual(['2025-10-01']);
    expect(days('GetFinRatioSnapshot')).toEqual(['2025-10-01']);
    expect(days('GetFinancialRatios', { variant: 'realtime/Standalone' })).toEqual(['2025-10-01']);
  });

  test('are the last day of a quarter', () => {
    expect(days('GetFinancialRatios', { variant: 'quarter/Standalone', to: '2025-09-30' })).toEqual([
      '2025-09-30',
    ]);
  });
});

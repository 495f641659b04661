import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { addDays } from '../../src/core/days.ts';
import { strayExchange } from '../../src/core/exchanges.ts';
import { buildUrl, readResponse } from '../../src/extract/index.ts';
import { coverageOf } from '../../src/jobs/responses/response-coverage.ts';
import type { Requested } from '../../src/operations/fields.ts';
import { furtherParam, type Operation } from '../../src/operations/operation.ts';
import { contracts, deals, declared, details, items } from '../support/declared.ts';
import { shuffled } from '../support/shuffled.ts';
import { isScanned, NEVER, raw, readFacts, requestedOf, SETTINGS } from './support.ts';

const TODAY = '2025-09-12';

/** The parameters of a request but for the first and last, which all have. */
function query(operation: Operation, changes: Partial<Requested> = {}): string[] {
  const url = buildUrl(
    { ...SETTINGS, accessKey: 'KEY' },
    operation,
    requestedOf(operation, { calledOn: TODAY, ...changes }),
  );
  return (url.split('?')[1] ?? '').split('&').slice(1, -1);
}

const ago = (from: number, to = from) => ({ from: addDays(TODAY, -from), to: addDays(TODAY, -to) });

describe('what is sent', () => {
  test.each([
    [ago(0), 'Previous7days'],
    [ago(1), 'yesterday'],
    [ago(2, 1), 'Previous7days'],
    [ago(7, 0), 'Previous7days'],
    [ago(8, 8), 'Previous30days'],
    [ago(30, 0), 'Previous30days'],
    [ago(-1), 'Next7days'],
  ])('the shortest span that contains %o: %s', (days, span) => {
    expect(query(deals, days)).toEqual(['exchange=BSE', `range=${span}`, 'dTFormat=String']);
  });

  test.each([[ago(31)], [ago(31, 0)], [ago(1, -1)], [ago(-8)]])('no span contains %o', (days) => {
    expect(() => query(deals, days)).toThrow(
      expect.objectContaining({
        kind: 'range_refused',
        message: expect.stringMatching(
          /^Date is out of the allowed range: GetTestDeals serves the last 30 days and the next 7 days, and 2025-.* cannot be requested on 2025-09-12$/,
        ),
      }),
    );
  });

  test('a window that is requested a day later than planned', () => {
    expect(query(deals, { ...ago(1), calledOn: addDays(TODAY, 1) })[1]).toBe('range=Previous7days');
  });

  test('years, instruments, fixed parameters and the name of dTFormat', () => {
    expect(query(items, { from: '2024-04-01', to: '2025-03-31', instruments: ['TCS', 'M&M'] })).toEqual([
      'exchange=BSE',
      'instrumentIdentifiers=TCS+M%26M',
      'from=2024',
      'to=2025',
      'onlyActive=true',
      'dTformat=String',
    ]);
    expect(query(items, { params: { [furtherParam('OnlyActive')]: 'false' } })).toContain('OnlyActive=false');
    expect(query(items, { params: { [furtherParam('OnlyActive')]: 'false' } })).not.toContain(
      'onlyActive=true',
    );
    expect(() => query(items, { instruments: [] })).toThrow('GetTestItems needs instruments, got none');
  });

  test('what the row of another operation gives', () => {
    expect(query(details)).toEqual([
      'exchange=BSE',
      'instrumentIdentifier=TCS',
      'year=2024',
      'natureOfReport=Standalone',
    ]);
  });
});

const deal = (day: string, more: object = {}) => ({
  DealDate: `${day.slice(5, 7)}-${day.slice(8)}-${day.slice(0, 4)} 18:05:09`,
  ScripCode: 500_325,
  ScripId: 'RELIANCE  ',
  ClientName: 'A CLIENT',
  Qty: 100,
  Price: 10.5,
  ...more,
});

describe('a response to a span', () => {
  const covered = requestedOf(deals, { ...ago(2, 1), calledOn: TODAY });
  const read = (records: readonly object[]) =>
    readResponse(deals, covered, raw({ Value: records }), SETTINGS);

  test('records of other days are left out, counted in a warning, and no rejects', () => {
    const found = read([
      deal(addDays(TODAY, -4)),
      deal(addDays(TODAY, -1)),
      deal(addDays(TODAY, -3), { Qty: 'many' }),
      deal(addDays(TODAY, -2)),
      deal(TODAY),
    ]);
    expect(found).toMatchObject({
      fetched: 2,
      rejects: [],
      warnings: ['3 records are of days that were not requested, and left out'],
    });
    expect(found.strays).toBeUndefined();
    expect(found.batches.map(({ rows }) => rows.length)).toEqual([2]);
  });

  test('only other days: as if there were no records', () => {
    expect(read([deal(TODAY)])).toMatchObject({ fetched: 0, batches: [], rejects: [] });
  });

  test('what cannot be read of a day that was requested is a reject', () => {
    expect(read([deal(addDays(TODAY, -1), { Qty: 'many' })])).toMatchObject({
      fetched: 1,
      rejects: [{ position: 0, day: addDays(TODAY, -1) }],
    });
  });

  test('the same from the bytes of a large response', () => {
    const days = Array.from({ length: 600 }, (_, at) => deal(addDays(TODAY, -(at % 6)), { Qty: at }));
    isScanned(deals, covered, Buffer.from(JSON.stringify({ Value: days })));
  });
});

describe('equal records', () => {
  const requested = requestedOf(deals, { ...ago(1), calledOn: TODAY });
  const day = addDays(TODAY, -1);
  const records = [
    deal(day),
    deal(day),
    deal(day, { Price: 11 }),
    deal(day, { ClientName: null }),
    deal(day, { ClientName: null }),
    deal(day),
  ];
  const rowsOf = (list: readonly object[]) => {
    const { batches } = readResponse(deals, requested, raw({ Value: list }), SETTINGS);
    return batches.flatMap(({ rows }) => [...rows]).map((row) => JSON.stringify(row));
  };

  test('are rows of their own', () => {
    const ordinals = rowsOf(records).map((row) => (JSON.parse(row) as { ordinal: number }).ordinal);
    expect(ordinals).toEqual([1, 2, 1, 1, 2, 3]);
  });

  test('in any order, the rows are the same', () => {
    const rows = rowsOf(records).sort();
    for (let seed = 1; seed <= 50; seed++) expect(rowsOf(shuffled(records, seed)).sort()).toEqual(rows);
  });
});

describe('an envelope of another name', () => {
  const requested = requestedOf(contracts);
  const record = { TRADESYMBOL: 'SENSEX25FEB', EXCHANGE: 'BFO', VALUE: 1 };
  const wholly = (body: string | object) => readResponse(contracts, requested, raw(body), SETTINGS);

  test.each<[string, string | object]>([
    ['its own', { INSTRUMENTS: [record] }],
    ['its own, in another case', { instruments: [record] }],
    ['with a count', { Count: 1, Instruments: [record] }],
    ['the usual one', { Value: [record] }],
    ['none', [record]],
    ['none, of a single record with a field that is called like an envelope', record],
    ['XML', '<R><INSTRUMENTS><I TRADESYMBOL="SENSEX25FEB" EXCHANGE="BFO" VALUE="1"/></INSTRUMENTS></R>'],
  ])('%s', (_, body) => {
    expect(wholly(body)).toMatchObject({ fetched: 1, rejects: [], warnings: [] });
  });

  test('of no records', () => {
    expect(wholly({ INSTRUMENTS: [] }).fetched).toBe(0);
    expect(wholly({ INSTRUMENTS: null }).fetched).toBe(0);
  });

  test('a list of any other name is no envelope', () => {
    expect(wholly({ Contracts: [record] }).rejects).toHaveLength(1);
  });

  test('a count of more records than there are', () => {
    expect(() => wholly({ Count: 2, INSTRUMENTS: [record] })).toThrow('the response holds 1 records');
  });

  test('from the bytes', () => {
    const many = Array.from({ length: 300 }, (_, at) => ({ ...record, TRADESYMBOL: `S${at}` }));
    for (const name of ['INSTRUMENTS', 'Instruments', 'Value']) {
      expect(isScanned(contracts, requested, Buffer.from(JSON.stringify({ [name]: many })))).toBe(true);
    }
    expect(readFacts(contracts, requested, JSON.stringify({ INSTRUMENTS: many }), NEVER).scanned).toBe(false);
  });
});

test('a record of a segment may name it or its exchange', () => {
  for (const named of ['BFO', 'bfo ', 'BSE', 'XBSE', 'XBOM', 'anything', null]) {
    expect([named, strayExchange(named, { exchange: 'BFO' })]).toEqual([named, false]);
  }
  for (const named of ['NFO', 'NSE', 'BSE_IDX']) {
    expect([named, strayExchange(named, { exchange: 'BFO' })]).toEqual([named, true]);
  }
  expect(strayExchange('BFO', { exchange: 'BSE' })).toBe(true);
});

describe('coverage of several instruments without a day', () => {
  const config = { EOD_TIMEZONE: 'Asia/Kolkata', EOD_PUBLISHED_AT: '21:00', EOD_LOOKBACK_SESSIONS: 2 };
  const when = {
    clock: { now: () => Date.parse('2025-09-12T22:00:00+05:30') },
    calendar: loadCalendar(),
    config,
  };
  const states = (instruments: readonly string[], records: readonly object[]) => {
    const requested = requestedOf(items, { instruments, from: '2025-01-01', to: '2025-09-12' });
    const window = { ...requested, variant: '', filtered: false };
    const extracted = readResponse(items, requested, raw({ Value: records }), SETTINGS);
    return coverageOf(items, window, [], extracted, when).map(
      ({ day, instrument, state, records: found }) => [day, instrument, state === 'loaded' ? found : 'none'],
    );
  };
  const record = (symbol: string) => ({ Instrument: symbol, Year: 2024, Nature: 'Standalone' });

  test('one without records does not count as loaded', () => {
    expect(
      states(['TCS', 'INFY', 'ABB'], [record('tcs'), record('ABB'), { ...record('ABB'), Year: 2023 }]),
    ).toEqual([
      ['2025-09-12', 'TCS', 1],
      ['2025-09-12', 'INFY', 'none'],
      ['2025-09-12', 'ABB', 2],
    ]);
  });

  test('of a single one, all records are its own', () => {
    expect(states(['TCS'], [record('TCS LTD')])).toEqual([['2025-09-12', 'TCS', 1]]);
  });
});

test.each(declared.map((operation) => [operation.name, operation] as const))(
  '%s reads its sample',
  (_, operation) => {
    const { rejects } = readResponse(
      operation,
      requestedOf(operation),
      raw(operation.sample.response as object),
      SETTINGS,
    );
    expect(rejects).toEqual([]);
  },
);

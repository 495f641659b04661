import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addDays, dayAt, timeAt } from '../../src/core/days.ts';
import { buildUrl } from '../../src/extract/index.ts';
import { operationNamed, operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { requestedOf, SETTINGS } from './support.ts';

const settings = { ...SETTINGS, accessKey: 'KEY' };

/** Parameters as they are in the address, not decoded, in their order. */
function query(name: string, changes: Parameters<typeof requestedOf>[1] = {}, over = {}): string[] {
  const operation = operationNamed(name);
  const url = buildUrl({ ...settings, ...over }, operation, requestedOf(operation, changes));
  const [address, parameters = ''] = url.split('?');
  expect(address).toBe(`https://source.invalid:4532/${name}`);
  return parameters.split('&');
}

/** With instruments, it is requested without dates. */
const CLASSIFICATION = 'GetSectoralClassification';

const feb27 = { from: '2025-02-27', to: '2025-02-27' };

describe('what each operation sends', () => {
  test('a range is Indian midnight to the last second of the day, in Unix seconds', () => {
    expect(query('GetTop5GainersLosers', { ...feb27, params: {} })).toEqual([
      'accessKey=KEY',
      'exchange=BSE',
      'from=1740594600',
      'to=1740680999',
      'type=GainersLosers',
      'dTFormat=String',
      'format=Json',
    ]);
  });

  test('a single day is its midnight; an option that is set is sent', () => {
    expect(query('GetCircuitBreakers', { ...feb27, params: { band: 'H' } })).toEqual([
      'accessKey=KEY',
      'exchange=NSE',
      'date=1740594600',
      'band=H',
      'dTFormat=String',
      'format=Json',
    ]);
  });

  test('the iso-date dialect', () => {
    const iso = { dateDialect: 'iso-date' };
    expect(query('GetSeriesChange', feb27, iso)).toContain('fromDate=2025-02-27');
    expect(query('GetSeriesChange', feb27, iso)).toContain('toDate=2025-02-27');
    expect(query('GetCircuitBreakers', feb27, iso)).toContain('date=2025-02-27');
  });

  test('only an EOD request of GetFinancialRatios carries the date; the variant is not sent', () => {
    expect(query('GetFinancialRatios', feb27)).toEqual([
      'accessKey=KEY',
      'exchange=BSE',
      'instrumentIdentifier=TCS',
      'date=1740594600',
      'type=EOD',
      'natureOfReport=Standalone',
      'format=Json',
    ]);
    const quarter = {
      variant: 'quarter',
      type: 'Quarter',
      period: 'QM',
      year: '2024',
      natureOfReport: 'Standalone',
    };
    expect(query('GetFinancialRatios', { from: '2025-01-01', to: '2025-03-31', params: quarter })).toEqual([
      'accessKey=KEY',
      'exchange=BSE',
      'instrumentIdentifier=TCS',
      'type=Quarter',
      'natureOfReport=Standalone',
      'period=QM',
      'year=2024',
      'format=Json',
    ]);
  });

  test('no dates, no dTFormat where the operation knows none; undeclared params are not sent', () => {
    expect(query('GetCorporateActionsCategories', { params: { band: 'H' } })).toEqual([
      'accessKey=KEY',
      'exchange=BSE',
      'format=Json',
    ]);
  });

  test('date format and response format are settings', () => {
    const sent = query('GetBhavCopyCM', {}, { dateFormat: 'Epoch', format: 'CsvContent' });
    expect(sent.slice(-2)).toEqual(['dTFormat=Epoch', 'format=CsvContent']);
  });

  test('a classification request always carries a filter', () => {
    expect(query('GetSectoralClassification', { ...feb27, instruments: [], params: {} })).toContain(
      'from=1740594600',
    );
  });

  test('every sample request can be built, and carries documented parameters only', () => {
    const allowed =
      /^(accessKey|exchange|from|to|date|type|natureOfReport|period|year|band|sector|industry|basicIndustry|instrumentIdentifiers?|dTFormat|format)=/;
    for (const { name } of operations) for (const part of query(name)) expect(part).toMatch(allowed);
  });
});

test('a range is from the first second of its first day to the last second of its last, in India, for every operation', () => {
  const zone = 'Asia/Kolkata';
  const dated = operations.filter(({ request }) => request.dates !== 'none');
  const moment = (text: string | undefined) => [dayAt(Number(text), zone), timeAt(Number(text), zone)];
  forAll(
    [
      fc.constantFrom(...dated),
      fc.integer({ min: 0, max: 20_000 }).map((days) => addDays('1990-01-01', days)),
      // Also a single day, for which the examples of the service write one moment twice.
      fc.constantFrom(0, 0, 1, 30, 400),
    ],
    ({ name, request }, from, length) => {
      const to = request.dates === 'day' ? from : addDays(from, length);
      const requested = { from, to, instruments: ['A'], params: { type: 'EOD' } };
      const instruments =
        request.instruments === 'none' || name === CLASSIFICATION ? [] : requested.instruments;
      const sent = new URLSearchParams(query(name, { ...requested, instruments }).join('&'));
      const value = (param: string) => sent.get(param) ?? undefined;
      if (request.dates === 'day') {
        expect([value('from'), value('to')]).toEqual([undefined, undefined]);
        expect(moment(value('date'))).toEqual([from, '00:00:00']);
      } else {
        expect(value('date')).toBeUndefined();
        expect(moment(value('from'))).toEqual([from, '00:00:00']);
        expect(moment(value('to'))).toEqual([to, '23:59:59']);
      }
    },
  );
});

describe('encoding', () => {
  test('symbols are encoded one by one and joined with a literal plus', () => {
    const instruments = ['M&M', 'L&TFH', 'BAJAJ-AUTO', 'NIFTY 50', 'A+B', 'IDEA#', 'ए', "O'K(1)*!"];
    expect(query('GetBhavCopyCM', { instruments })).toContain(
      'instrumentIdentifiers=M%26M+L%26TFH+BAJAJ-AUTO+NIFTY%2050+A%2BB+IDEA%23+%E0%A4%8F+O%27K%281%29%2A%21',
    );
  });

  test('key, exchange and options cannot add parameters', () => {
    const sent = query(
      'GetSectoralClassification',
      { exchange: 'BSE&x=1', params: { sector: 'Oil & Gas=+' } },
      { accessKey: 'a&b=c d' },
    );
    expect(sent[0]).toBe('accessKey=a%26b%3Dc%20d');
    expect(sent[1]).toBe('exchange=BSE%26x%3D1');
    expect(sent).toContain('sector=Oil%20%26%20Gas%3D%2B');
  });
});

describe('requests that are wrong in themselves are never sent', () => {
  const many = Array.from({ length: 26 }, (_, index) => `S${index}`);
  test.each([
    ['more than 25 instruments', 'GetBhavCopyCM', { instruments: many }, /at most 25 instruments/],
    ['two where one fits', 'GetSeriesChange', { instruments: ['A', 'B'] }, /at most 1 instruments/],
    ['instruments where none fits', 'GetCircuitBreakers', { instruments: ['A'] }, /at most 0/],
    ['no instrument where one is needed', 'GetFinRatioEOD', { instruments: [] }, /got none/],
    ['a blank instrument', 'GetBhavCopyCM', { instruments: [' '] }, /blank/],
    ['half a surrogate pair', 'GetBhavCopyCM', { instruments: ['\ud800'] }, /not well-formed/],
    ['a reversed range', 'GetSeriesChange', { from: '2025-02-27', to: '2025-02-26' }, /reversed/],
    ['days that do not exist', 'GetSeriesChange', { from: '2025-02-29', to: '2025-03-01' }, /do not exist/],
    ['two days where one fits', 'GetCircuitBreakers', { from: '2025-02-26', to: '2025-02-27' }, /one day/],
  ])('%s', (_, name, changes, message) => {
    expect(() => query(name, changes)).toThrowError(message);
    expect(() => query(name, changes)).toThrowError(expect.objectContaining({ kind: 'bad_request' }));
  });
});

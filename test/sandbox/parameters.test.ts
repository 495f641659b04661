import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { addDays } from '../../src/core/days.ts';
import { dateParams } from '../../src/declaration/request-parameters.ts';
import { buildUrl } from '../../src/extract/index.ts';
import { operations } from '../../src/operations/registry.ts';
import { DEFAULT_BEHAVIOUR } from '../../src/sandbox/behaviour.ts';
import { checkRequest } from '../../src/sandbox/http/parameters.ts';
import { Market } from '../../src/sandbox/market/market.ts';
import { SETTINGS } from '../extract/support.ts';
import { forAll } from '../support/for-all.ts';
import { manualClock, midnight, plainRequest, range, sandbox, sharedSandbox, textOf } from './support.ts';

const shared = sharedSandbox();
const DAY = '2025-09-12';
const plain = range(DAY);
const ask = (operation: string, params: Record<string, string> = {}) => textOf(shared(), operation, params);

test('a key is needed, and the right one where one is set', async () => {
  const locked = await sandbox({ accessKey: 'the-key' });
  const unknown = 'Access Denied. Key unknown or empty.';
  expect(await ask('GetSeriesChange', { accessKey: '', ...plain })).toBe(unknown);
  const none = await fetch(`${locked.url}/GetSeriesChange?exchange=NSE`);
  expect([none.status, none.headers.get('content-type'), await none.text()]).toEqual([
    200,
    'text/plain; charset=utf-8',
    unknown,
  ]);
  expect(await textOf(locked, 'GetSeriesChange', { accessKey: 'another', ...plain })).toBe(
    'Access Denied. Key not found.',
  );
  expect(await textOf(locked, 'GetSeriesChange', { accessKey: 'the-key', ...plain })).toBe('{"Value":[]}');
});

const many = Array.from({ length: 26 }, (_, at) => `S${at}`).join(' ');
const eod = { instrumentIdentifier: 'TCS', type: 'EOD' };

test.each<[string, Record<string, string>, string]>([
  ['GetBhavCopyCM', { exchange: 'MCX', ...plain }, 'Data for requested exchange is disabled.'],
  ['GetBhavCopyCM', { exchange: '', ...plain }, 'Parameter exchange is missing.'],
  ['GetBhavCopyCM', {}, 'Parameter from is missing.'],
  ['GetBhavCopyCM', { from: plain.from }, 'Parameter to is missing.'],
  ['GetBhavCopyCM', { to: plain.to }, 'Parameter from is missing.'],
  ['GetBhavCopyCM', { from: '175765', to: plain.to }, 'Parameter from is invalid.'],
  ['GetBhavCopyCM', { from: plain.from, to: `${plain.to}000` }, 'Parameter to is invalid.'],
  ['GetBhavCopyCM', { from: DAY, to: DAY }, 'Parameter from is invalid.'],
  ['GetBhavCopyCM', { from: plain.to, to: plain.from }, 'Parameter from is invalid.'],
  ['GetBhavCopyCM', { fromDate: '2025-09-31', toDate: DAY }, 'Parameter fromDate is invalid.'],
  ['GetBhavCopyCM', { fromDate: DAY }, 'Parameter toDate is missing.'],
  ['GetBhavCopyCM', { ...plain, symbol: 'TCS' }, 'Parameter symbol is unknown.'],
  ['GetBhavCopyCM', { ...plain, instrumentIdentifier: 'TCS' }, 'Parameter instrumentIdentifier is unknown.'],
  [
    'GetBhavCopyCM',
    { ...plain, instrumentIdentifiers: many },
    'Parameter instrumentIdentifiers is out of allowed range of 25.',
  ],
  ['GetBhavCopyCM', { ...plain, format: 'Yaml' }, 'Parameter format is invalid.'],
  ['GetBhavCopyCM', { ...plain, format: 'json' }, 'Parameter format is invalid.'],
  ['GetBhavCopyCM', { ...plain, dTFormat: 'Iso' }, 'Parameter dTFormat is invalid.'],
  ['GetCorporateActionsCategories', { dTFormat: 'String' }, 'Parameter dTFormat is unknown.'],
  ['GetTop5GainersLosers', { ...plain, type: 'Both' }, 'Parameter type is invalid.'],
  ['GetCircuitBreakers', {}, 'Parameter date is missing.'],
  ['GetCircuitBreakers', { date: '2025-02-30' }, 'Parameter date is invalid.'],
  ['GetSectoralClassification', {}, 'Filters cant be empty.'],
  ['GetSectoralClassification', { from: plain.from }, 'Parameter to is missing.'],
  ['GetFinRatioEOD', { date: midnight(DAY) }, 'Parameter instrumentIdentifier is missing.'],
  ['GetFinRatioEOD', { instrumentIdentifier: 'TCS' }, 'Parameter date is missing.'],
  [
    'GetFinRatioSnapshot',
    { instrumentIdentifier: 'TCS', natureOfReport: 'Both' },
    'Parameter natureOfReport is invalid.',
  ],
  ['GetFinancialRatios', eod, 'Parameter date is missing.'],
  [
    'GetFinancialRatios',
    { ...eod, type: 'Quarter', period: 'QX', year: '2024' },
    'Parameter period is invalid.',
  ],
  ['GetFinancialRatios', { ...eod, type: 'Quarter', period: 'QD', year: '24' }, 'Parameter year is invalid.'],
])('%s %j: %s', async (operation, params, line) => {
  expect(await ask(operation, params)).toBe(line);
});

test.each(operations.map((operation) => [operation.name, operation] as const))(
  '%s refuses a repeated and an unknown parameter',
  async (name, operation) => {
    const query = new URLSearchParams({ accessKey: 'k', ...plainRequest(operation, 'BSE', DAY) });
    const text = async (extra: string) => (await fetch(`${shared().url}/${name}?${query}&${extra}`)).text();
    expect(await text('format=Json')).toMatch(/^[[{]/);
    expect(await text('exchange=NSE')).toBe('Parameter exchange is invalid.');
    expect(await text('page=2')).toBe('Parameter page is unknown.');
  },
);

describe('dialects', () => {
  const iso = { fromDate: DAY, toDate: DAY };

  test('both are understood', async () => {
    const body = await ask('GetTotalTradeHighlights', plain);
    expect(await ask('GetTotalTradeHighlights', iso)).toBe(body);
    expect(await ask('GetCircuitBreakers', { date: DAY })).toBe(
      await ask('GetCircuitBreakers', { date: midnight(DAY) }),
    );
  });
});

describe('what the pipeline builds, the sandbox reads', () => {
  const TODAY = '2025-09-12';
  const market = new Market({
    calendar: loadCalendar(),
    clock: manualClock(),
    instrumentsPerExchange: 20,
    revision: 0,
    splits: false,
  });
  const symbol = fc.constantFrom('TCS', 'M&M', 'A+B', "L'OR", 'BAJAJ-AUTO', '500325');
  const requesting = fc.record({
    operation: fc.constantFrom(...operations),
    dateDialect: fc.constantFrom('epoch', 'iso-date'),
    dateFormat: fc.constantFrom('String', 'Epoch'),
    format: fc.constantFrom('Json', 'Xml', 'Csv', 'CsvContent'),
    exchange: fc.constantFrom('NSE', 'BSE'),
    ends: fc.tuple(fc.nat(25), fc.nat(5)),
    symbols: fc.uniqueArray(symbol, { maxLength: 5 }),
  });

  test('for every operation, whatever is requested', () => {
    forAll([requesting], { numRuns: 400 }, (requestSettings) => {
      const { operation, exchange, ends } = requestSettings;
      const { request, sample } = operation;
      const maxInstruments = { none: 0, one: 1, many: 25 }[request.instruments];
      const to = addDays(TODAY, -ends[0]);
      const from = request.dates === 'day' ? to : addDays(to, -ends[1]);
      const requested = { ...sample.requested, exchange, from, to, calledOn: TODAY };
      const instruments = requestSettings.symbols.slice(0, maxInstruments);
      // Some requests need the instruments of their sample. A space within one of a list is read as the end of it.
      const known = sample.requested.instruments.filter(
        (name) => maxInstruments === 1 || !name.includes(' '),
      );
      const names = instruments.length === 0 ? known : instruments;
      const settings = { ...SETTINGS, ...requestSettings };
      const url = new URL(buildUrl(settings, operation, { ...requested, instruments: names }));
      const checked = checkRequest(operation, url.searchParams, DEFAULT_BEHAVIOUR, market);
      expect(checked).toMatchObject({ operation, exchange, format: requestSettings.format });
      expect(checked.instruments).toEqual(names);
      const isDated = [...url.searchParams.keys()].some((name) =>
        dateParams(operation, requestSettings.dateDialect).includes(name),
      );
      if (!isDated) expect([checked.range, checked.day]).toEqual([null, null]);
      else if (request.dates === 'day') expect(checked.day).toBe(to);
      else expect(checked.range).toEqual({ from, to });
      for (const { param, fallback } of request.options)
        expect(checked.options[param]).toBe(requested.params[param] ?? fallback);
    });
  });
});

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readResponse } from '../../src/extract/index.ts';
import { readersOf } from '../../src/extract/record-schema.ts';
import { InvalidValue } from '../../src/extract/values.ts';
import type { Field, Requested } from '../../src/operations/fields.ts';
import type { Operation } from '../../src/operations/operation.ts';
import type { Row, TableDefinition } from '../../src/operations/table.ts';
import {
  CASINGS,
  type Casing,
  csvBody,
  type DateFormat,
  jsonBody,
  jsonObjects,
  xmlAttributes,
  xmlBody,
} from '../../src/sandbox/response/format.ts';
import { inventRecords, responseFields } from '../../src/sandbox/response/record.ts';
import { catalogue, inCatalogue } from '../support/catalogue.ts';
import { raw, SETTINGS } from './support.ts';

/*
 * The operations of the catalogue: each reads its published sample to the digit, and the other ways in which the
 * documentation says that its records may come.
 */

const byName = catalogue.map((operation) => [operation.name, operation] as const);

const printed = (file: string) =>
  readFileSync(new URL(`../fixtures/service-samples/${file}`, import.meta.url), 'utf8');

const FIXTURES = readdirSync(new URL('../fixtures/service-samples/', import.meta.url));

/** What is printed wrong, by operation. */
const CORRECTIONS: Readonly<Record<string, (text: string) => string>> = {
  GetCompanyData: (text) =>
    text.replaceAll(
      /^"(\w+)": "(.*)",$/gm,
      (_, name: string, value: string) => `"${name}": ${JSON.stringify(value)},`,
    ),
  GetExchangeMCap: (text) => text.replace(/\{\s*\{/, '{').replace(/\}\s*\}\s*\]/, '}]'),
  GetNewHL: (text) => text.replace(/\}\s*\}\]\s*$/, '}]}'),
};

/** The lists of codes are not closed. */
const closed = (text: string) => text.replace(/\}\s*\}?\s*$/, '}]}');

type SourceRecord = Readonly<Record<string, unknown>>;

const recordsOf = ({ envelope = 'Value' }: Operation, response: unknown) =>
  (response as Record<string, SourceRecord[]>)[envelope] as SourceRecord[];

/** The published sample, corrected where it is no JSON; the declared one of an operation that has none. */
function sampleOf(operation: Operation): readonly SourceRecord[] {
  const { name } = operation;
  const file = FIXTURES.find((one) => one.startsWith(`${name}.`));
  if (file === undefined) return recordsOf(operation, operation.sample.response);
  const text = printed(file);
  const correct = CORRECTIONS[name] ?? (file.endsWith('.txt') ? closed : (same: string) => same);
  return recordsOf(operation, JSON.parse(correct(text)));
}

/** A request about the days of the records, so that none of them is a stray. */
function requested(operation: Operation, changes: Partial<Requested> = {}): Requested {
  return { ...operation.sample.requested, calledOn: '2026-11-21', ...changes };
}

const ANY_DAY = { from: '2000-01-01', to: '2099-12-31' };

function read(operation: Operation, body: string, changes: Partial<Requested> = {}) {
  const days = operation.request.dates === 'day' ? {} : ANY_DAY;
  const extracted = readResponse(
    operation,
    requested(operation, { ...days, ...changes }),
    raw(body),
    SETTINGS,
  );
  return { ...extracted, rows: extracted.batches.flatMap(({ rows }) => [...rows]) };
}

const bodyOf = ({ envelope = 'Value' }: Operation, records: readonly SourceRecord[]) =>
  JSON.stringify({ [envelope]: records });

/** Reads records that must all be stored, with nothing left over. */
function readWhole(name: string, records: readonly SourceRecord[], changes: Partial<Requested> = {}) {
  const operation = inCatalogue(name);
  const found = read(operation, bodyOf(operation, records), changes);
  expect(found).toMatchObject({ rejects: [], warnings: [], unknownFields: [] });
  return found.rows;
}

const isBlank = (value: unknown) => value === undefined || String(value).trim() === '';

/** The name of the record's field that counts for a column: the first that has a value, or that is there. */
function nameFor(field: Field, record: SourceRecord): string | undefined {
  if (field.from !== 'response') return undefined;
  const names = [field.source, ...(field.orElse ?? [])].flatMap((source) =>
    Object.keys(record).filter((name) => name.toLowerCase() === source.toLowerCase()),
  );
  return names.find((name) => !isBlank(record[name])) ?? names[0];
}

/** Expects every value of a record in its row, by the reading rule of its column, and returns the names of those. */
function expectValues(table: TableDefinition, record: SourceRecord, row: Row) {
  const readers = readersOf(table, SETTINGS.timeZone);
  const stored = new Set<string>();
  for (const field of table.fields) {
    const name = nameFor(field, record);
    if (name === undefined) continue;
    const value = readers.get(field.column)?.(record[name]);
    expect(value).not.toBeInstanceOf(InvalidValue);
    expect(row[field.column], `${table.name}.${field.column} of ${name}`).toEqual(value);
    stored.add(name);
  }
  return stored;
}

describe('the published samples', () => {
  test('are there for all operations but those that print none', () => {
    const without = catalogue.filter(({ name }) => !FIXTURES.some((file) => file.startsWith(`${name}.`)));
    expect(without.map(({ name }) => name)).toEqual([
      'GetBhavCopyFO',
      'GetCircuitFilterDetails',
      'GetCorporateAnnouncementsCategories',
      'GetDeliveryVolumes',
      'GetFinancialResults',
      'GetFuturesAndOptions',
      'GetIndexDetail',
      'GetIndexHighlights',
      'GetSHP',
    ]);
  });

  test.each(byName)('%s reads it to the digit, every value of every record', (_name, operation) => {
    const records = sampleOf(operation);
    expect(records.length).toBeGreaterThan(0);
    const found = read(operation, bodyOf(operation, records));
    expect(found).toMatchObject({ rejects: [], warnings: [], unknownFields: [] });
    const [shape] = operation.shapes;
    const own = found.batches.find(({ table }) => table === shape.table);
    expect(own?.rows).toHaveLength(records.length);
    expect(found.fetched).toBe(records.length * (operation.also === undefined ? 1 : 2));
    for (const [at, row] of [...(own?.rows ?? [])].entries()) {
      const record = records[at] as SourceRecord;
      const stored = expectValues(shape.table, record, row);
      expect([...stored].sort()).toEqual(Object.keys(record).sort());
    }
    const keys = new Set(found.rows.map((row) => JSON.stringify(shape.table.key.map((one) => row[one]))));
    expect(keys.size).toBe(operation.also === undefined ? records.length : keys.size);
  });

  test.each(byName)('%s reads the sample of its declaration', (_name, operation) => {
    const { response } = operation.sample;
    const extracted = readResponse(operation, requested(operation), raw(JSON.stringify(response)), SETTINGS);
    expect(extracted).toMatchObject({ rejects: [], warnings: [], unknownFields: [] });
    expect(extracted.fetched).toBeGreaterThan(0);
  });
});

/** The one record of a sample. */
const one = (name: string, at = 0) => sampleOf(inCatalogue(name))[at] as SourceRecord;

describe('by hand', () => {
  test('bulk deals: the symbol beside the id, and equal lines counted', () => {
    const deal = one('GetBulkDeals');
    const rows = readWhole('GetBulkDeals', [deal, one('GetBulkDeals', 1), deal]);
    expect(rows.map(({ client_name: client, ordinal }) => [client, ordinal])).toEqual([
      ['SATYA PRAKASH MITTAL', 1],
      ['NEELAM MITTAL', 1],
      ['SATYA PRAKASH MITTAL', 2],
    ]);
    expect(rows[0]).toMatchObject({
      exchange: 'BSE',
      deal_date: '2025-02-27',
      scrip_code: 544072,
      scrip_id: 'AIKPIPES',
      symbol: 'AIKPIPES',
      deal_type: 'S',
      traded_quantity: 44800,
      deal_price: 81.4,
      equity_percent: 0.704070407040704,
      source_saved_at: '2025-02-27 21:00:02+05:30',
    });
  });

  test('deals in another order are the same rows', () => {
    const deals = [...sampleOf(inCatalogue('GetBlockDeals')), one('GetBlockDeals')];
    const rows = (records: readonly SourceRecord[]) =>
      readWhole('GetBlockDeals', records)
        .map((row) => JSON.stringify(row))
        .sort();
    expect(rows([...deals].reverse())).toEqual(rows(deals));
  });

  test('block deals name companies where bulk deals have symbols', () => {
    const [row] = readWhole('GetBlockDeals', sampleOf(inCatalogue('GetBlockDeals')));
    expect(row).toMatchObject({
      scrip_id: 'Hindustan Aeronautics Limited',
      symbol: null,
      scrip_code: 541154,
    });
  });

  test('deliveries of NSE fill both tables', () => {
    const found = read(
      inCatalogue('GetDeliverable'),
      bodyOf(inCatalogue('GetDeliverable'), [one('GetDeliverable')]),
    );
    expect(found.batches.map(({ table, rows }) => [table.name, [...rows]])).toEqual([
      [
        'deliverable_prices',
        [
          expect.objectContaining({
            symbol: 'RELIANCE',
            series: 'EQ',
            open_price: 1212.8,
            last_price: 1208,
            turnover_lakh: 138836.37,
            traded_quantity: 11509215,
            scrip_name: null,
          }),
        ],
      ],
      [
        'deliveries',
        [
          {
            exchange: 'NSE',
            symbol: 'RELIANCE',
            series: 'EQ',
            trade_date: '2025-02-27',
            traded_quantity: 11509215,
            delivered_quantity: 7994875,
            delivered_percent: 69.46,
            source_received_at: null,
            source_saved_at: null,
          },
        ],
      ],
    ]);
  });

  const deliveriesOf = (name: string, record: SourceRecord) =>
    [...(read(inCatalogue(name), bodyOf(inCatalogue(name), [record])).batches[1]?.rows ?? [])][0];

  test('deliveries lose the series suffix of the id', () => {
    const record = { ...one('GetDeliverable'), ScripId: 'ABHAPOWER.ST', Series: 'ST' };
    expect(deliveriesOf('GetDeliverable', record)).toMatchObject({ symbol: 'ABHAPOWER', series: 'ST' });
  });

  test.each([
    [{ ScripId: 'RELIANCE', ScripName: 'RELIANCE INDUSTRIES LTD.' }, 'RELIANCE'],
    [{ ScripName: 'RELIANCE' }, 'RELIANCE'],
    [{ ScripName: 'Reliance Industries' }, '500325'],
    [{}, '500325'],
  ])('deliveries of BSE with %o are those of %s', (names, symbol) => {
    const { ScripId: _, ScripName: __, ...record } = one('GetDeliveryVolumes');
    expect(deliveriesOf('GetDeliveryVolumes', { ...record, ...names })).toMatchObject({
      exchange: 'BSE',
      symbol,
      series: '',
      trade_date: '2025-02-27',
      delivered_quantity: 312451,
      delivered_percent: 52.11,
    });
  });

  test('the calendar of results, in milliseconds', () => {
    expect(readWhole('GetResultsCalendar', [one('GetResultsCalendar')])[0]).toMatchObject({
      symbol: 'ABB',
      scrip_code: 500002,
      result_date: '2025-02-17',
      last_price: 5289.35,
      source_received_at: '2025-02-17 08:25:00+05:30',
    });
  });

  test('shareholdings: what was requested is in the row, and the value has the name of the envelope', () => {
    const rows = readWhole('GetSHPAdvanced', sampleOf(inCatalogue('GetSHPAdvanced')));
    expect(rows[0]).toMatchObject({
      symbol: 'ARL',
      filing_date: '2025-02-27',
      breakdown: 'SummaryPromoterPublicOthers',
      fact_key: 'Promoter',
      entity: 'Promoter',
      value: '58.22',
      value_number: 58.22,
      period: 'February 2025',
    });
    expect(rows.map(({ value_number: value }) => value)).toEqual([58.22, 41.78, 0]);
  });

  test('financial results: a fact that comes twice is two rows, and a long label is cut for the key', () => {
    const Label = `Loan to ${'x'.repeat(300)}`;
    const fact = { Label, UnitId: 'INR', Decimals: 0, Value: '1', Description: '' };
    const rows = readWhole('GetFinancialResults', [fact, { ...fact, Value: '2' }]);
    expect(rows.map(({ value, ordinal }) => [value, ordinal])).toEqual([
      ['1', 1],
      ['2', 2],
    ]);
    expect(rows[0]).toMatchObject({
      symbol: 'ABB',
      year: 2024,
      nature_of_report: 'Standalone',
      result_type: 'ProfitLoss',
      result_period: 'QD',
      fact_key: Label.slice(0, 200),
      label: Label,
    });
  });

  test('participants: the day of the moment of publication', () => {
    const rows = readWhole('GetFIIDII', sampleOf(inCatalogue('GetFIIDII')));
    expect(rows).toHaveLength(5);
    expect(rows[1]).toMatchObject({
      client_type: 'DII',
      trade_date: '2026-05-22',
      published_at: '2026-05-22 20:12:02+05:30',
      future_stock_net_position: -3886000,
      option_index_put_open_interest: 42427,
      option_stock_net_open_interest: -507914,
      option_stock_signal: 'Bearish',
    });
  });

  test('the largest turnovers are ranked in the order of the response', () => {
    const name = 'GetTurnoverDetailsOfTop15ScripsofAgroup';
    expect(readWhole(name, sampleOf(inCatalogue(name))).map((row) => [row.rank, row.scrip_name])).toEqual([
      [1, 'ULTRATECH CM'],
      [2, 'POLYCAB'],
      [3, 'CREDITACC'],
      [4, 'HDFC BANK'],
      [5, 'KEI INDUST.'],
    ]);
  });

  test('registered data is stored as it was sent, shifted and with quotes', () => {
    expect(readWhole('GetCompanyData', sampleOf(inCatalogue('GetCompanyData')))[0]).toMatchObject({
      address: '" Maker Chambers IV   3rd Floor 222  Nariman Point',
      email: '400021',
      designation: '"022-3555 5000',
      rta_name: '"',
    });
  });

  test('the whole exchange: times of the source that are days', () => {
    expect(readWhole('GetExchangeMCap', [one('GetExchangeMCap')])).toEqual([
      {
        exchange: 'BSE',
        trade_date: '2025-06-12',
        market_cap_crore: 44958383,
        source_received_at: '2025-06-12 00:00:00+05:30',
        source_saved_at: '2025-06-13 00:00:00+05:30',
      },
    ]);
  });
});

/** Records with some fields named otherwise. */
const renamed = (record: SourceRecord, names: Readonly<Record<string, string>>): SourceRecord =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [names[name] ?? name, value]));

describe('the other readings', () => {
  test.each([
    ['GetBulkDeals', { ScripId: 'ScripName' }],
    ['GetBulkDeals', { ScripId: 'symbol' }],
    ['GetScripMCap', { Symbol: 'ScripId' }],
    ['GetResultsCalendar', { ScripId: 'symbol' }],
    ['GetCorporateAnnouncements', { ScripId: 'symbol', ScripName: 'companyName' }],
    ['GetFinancialResultsItems', { Instrument: 'InstrumentIdentifier' }],
    ['GetShpItems', { Instrument: 'InstrumentIdentifier' }],
    ['GetInstruments', { '52WeekHigh': 'High52Week', '52WeekLow': 'Low52Week' }],
    ['GetVolatality', { Volatity: 'Volatility', AnnualVolatality: 'AnnualVolatility' }],
    ['GetAnnualReports', { SecurityCode: 'ScripCode' }],
    ['GetExchangeMCap', { MarketCapVal: 'MarketCapVal' }],
  ])('%s has the same row with %o', (name, names) => {
    const record = one(name);
    const [expected] = readWhole(name, [record]);
    const [row] = readWhole(name, [renamed(record, names as Record<string, string>)]);
    // The name has a column of its own, besides the one that it stands in for.
    expect({ ...row, scrip_name: expected?.scrip_name }).toEqual(expected);
  });

  test('the prose of GetFuturesAndOptions has other names than its schema', () => {
    const [schema] = readWhole('GetFuturesAndOptions', [one('GetFuturesAndOptions')]);
    expect(schema).toMatchObject({ series_id: 1104398, contract: 'SENSEX25MARFUT', close_price: 75018.65 });
    const prose = {
      Identifier: 'IF_SENSEX_25MAR2025_FF_0',
      InstrumentName: 'IF',
      Symbol: 'SENSEX',
      ExpiryDate: '03-25-2025',
      Date: '02-27-2025',
      StrikePrice: 0,
      OptionType: '',
      ProductType: 'IF',
      ProductId: 'BSX',
      SeriesId: 1104398,
      SeriesCode: 'SENSEX25MARFUT',
      Ltp: 75010,
      Ltq: 20,
      Open: 75100,
      High: 75240.5,
      Low: 74890,
      Close: 75018.65,
      PrevClose: 75012.4,
      SettPrice: 75020.1,
      CumTrdVol: 18240,
      CumTrdVal: 1369042100.5,
      TotalTradesNo: 812,
      BasePrice: 75012.4,
      BaseChange: 6.25,
      OiQty: 20460,
      OiChng: -140,
      ContractsNo: 912,
    };
    expect(readWhole('GetFuturesAndOptions', [prose])[0]).toMatchObject({
      trade_date: '2025-02-27',
      series_id: 1104398,
      contract: 'IF_SENSEX_25MAR2025_FF_0',
      expiry_date: '2025-03-25',
      open_price: 75100,
      high_price: 75240.5,
      close_price: 75018.65,
      previous_close_price: 75012.4,
      settlement_price: 75020.1,
      traded_quantity: 18240,
      traded_value: 1369042100.5,
      trade_count: 812,
      contract_count: 912,
      open_interest: 20460,
      open_interest_change: -140,
    });
  });

  test('index values of earlier sessions come as values or as their days', () => {
    const record = one('GetIndexDetail');
    expect(readWhole('GetIndexDetail', [record])[0]).toMatchObject({
      week_ago_value: 23894.11,
      week_ago_date: null,
    });
    expect(readWhole('GetIndexDetail', [{ ...record, WeekAgo: '02-20-2025' }])[0]).toMatchObject({
      week_ago_value: null,
      week_ago_date: '2025-02-20',
    });
  });

  test('summaries of shareholdings come as generic facts', () => {
    const fact = {
      Label: 'Promoter',
      UnitId: 'pure',
      Decimals: 2,
      Value: '58.22',
      Description: '',
      ContextName: 'PromoterI',
      From: '01-01-0001 00:00:00',
      To: '02-27-2025 00:00:00',
    };
    expect(readWhole('GetSHPAdvanced', [fact])[0]).toMatchObject({
      fact_key: 'Promoter',
      entity: null,
      label: 'Promoter',
      context_name: 'PromoterI',
      context_from: null,
      context_to: '2025-02-27 00:00:00+05:30',
    });
  });

  test('days come in seconds, milliseconds and text', () => {
    const days = [1740594600, 1740594600000, '1740594600', '02-27-2025', '02-27-2025 00:00:00'];
    for (const day of days) {
      expect(readWhole('GetShpItems', [{ Date: day, Instrument: 'ARL' }])[0]).toMatchObject({
        filing_date: '2025-02-27',
      });
    }
  });

  const escaped = (value: unknown) => String(value).replaceAll('&', '&amp;').replaceAll('"', '&quot;');

  /** As the service prints doubles in CSV: whole ones with `.0`. */
  const inCsv = (value: unknown) =>
    Number.isInteger(value) && Number(value) < 1e9 ? `${value}.0` : `${value}`;

  test.each(byName)(
    '%s has the same rows in CSV, with whole numbers as 10.0, and in XML',
    (_name, operation) => {
      const records = sampleOf(operation).filter((record) => !JSON.stringify(record).includes('\\"'));
      if (records.length === 0) return;
      const reported = (body: string) =>
        read(operation, body).rows.map((row) =>
          Object.fromEntries(
            Object.entries(row)
              .filter(([column]) => column !== 'value')
              .map(([column, value]) => [column, value === null ? null : String(value).replace(/\.0$/, '')]),
          ),
        );
      const expected = reported(bodyOf(operation, records));
      const columns = Object.keys(records[0] as object);
      const isFlag = (name: string) =>
        operation.shapes[0].table.fields.some(
          (field) => field.from === 'response' && field.source === name && field.kind === 'boolean',
        );
      const cell = (column: string, value: unknown) => {
        const text = isFlag(column) ? String(value) : inCsv(value);
        return text.includes(',') ? `"${text}"` : text;
      };
      const lines = records.map((record) => columns.map((column) => cell(column, record[column])).join(','));
      expect(reported(`${[columns.join(','), ...lines].join('\n')}\n`), 'Csv').toEqual(expected);
      const items = records.map(
        (record) =>
          `<Item ${columns
            .filter((column) => record[column] !== '')
            .map((column) => `${column.replace(/^(\d)/, '_x003$1_')}="${escaped(record[column])}"`)
            .join(' ')} />`,
      );
      expect(reported(`<Response><Value>${items.join('')}</Value></Response>`), 'Xml').toEqual(expected);
    },
  );
});

describe('in the formats of the sandbox', () => {
  test.each(byName)('%s reads the same in all of them', (name, operation) => {
    const [{ table }] = operation.shapes;
    const fields = responseFields(table);
    const records = inventRecords(table, name, operation.sample.requested.to);
    const reported = (body: string) => {
      const found = read(operation, body);
      expect(found).toMatchObject({ rejects: [], unknownFields: [] });
      const rows = found.batches[0]?.rows ?? [];
      return Array.from(rows, (row) =>
        Object.entries(row).map(([column, value]) => [column, value === null ? null : String(value)]),
      );
    };
    const jsonOf = (casing: Casing, dates: DateFormat) =>
      jsonBody(jsonObjects(records, fields, casing, { dates }), 'count', casing, operation.envelope);
    const expected = reported(jsonOf('pascal', 'String'));
    expect(expected).toHaveLength(records.length);
    for (const casing of CASINGS) expect(reported(jsonOf(casing, 'String')), casing).toEqual(expected);
    for (const dates of ['String', 'Epoch', 'Milliseconds'] as const) {
      expect(reported(jsonOf('pascal', dates)), dates).toEqual(expected);
      expect(reported(csvBody(records, fields, { dates, repeatAudit: false })), `Csv ${dates}`).toEqual(
        expected,
      );
      expect(reported(xmlBody(name, records, fields, dates)), `Xml ${dates}`).toEqual(expected);
      expect(reported(xmlAttributes(name, records, fields, dates)), `attributes ${dates}`).toEqual(expected);
    }
  });
});

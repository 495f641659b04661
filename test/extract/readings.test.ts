import { describe, expect, test } from 'vitest';
import { type Extracted, readAnswer } from '../../src/extract/index.ts';
import type { AskedFor } from '../../src/operations/fields.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { askedOf, raw, SETTINGS } from './support.ts';

/** What the specification leaves open, read in every way in which the source may mean it. */

type SourceRecord = Readonly<Record<string, string | number | null>>;

const escaped = (value: unknown) =>
  String(value ?? '')
    .replaceAll('&', '&amp;')
    .replaceAll('"', '&quot;');

/** A list of records in each format, by its name. XML leaves out what has no value, as the source does. */
function bodiesOf(records: readonly SourceRecord[]): Record<string, string> {
  const attributes = (record: SourceRecord) =>
    Object.entries(record)
      .filter(([, value]) => value !== null && value !== '')
      .map(([key, value]) => `${key.replaceAll(' ', '_x0020_')}="${escaped(value)}"`)
      .join(' ');
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const lines = records.map((record) => columns.map((column) => record[column] ?? '').join(','));
  return {
    Json: JSON.stringify({ Value: records }),
    Xml: `<Answer><Value>${records.map((record) => `<Item ${attributes(record)} />`).join('')}</Value></Answer>`,
    Csv: `${[columns.join(','), ...lines].join('\n')}\n`,
  };
}

/** Everything that is stored or told, with values as text, because XML and CSV have no others. */
function told({ batches, rejects, warnings, unknownFields }: Extracted) {
  return {
    tables: batches.map(({ table, rows }) => ({
      table: table.name,
      rows: Array.from(rows, (row) =>
        Object.fromEntries(
          Object.entries(row).map(([column, value]) => [column, value === null ? null : String(value)]),
        ),
      ),
    })),
    problems: rejects.map(({ problems }) => problems),
    warnings,
    unknownFields,
  };
}

/** Reads records in each format, JSON also from its bytes and in long answers, and expects the same of all. */
function readRecords(name: string, records: readonly SourceRecord[], changes: Partial<AskedFor> = {}) {
  const operation = operationNamed(name);
  const asked = askedOf(operation, { instruments: [], ...changes });
  const read = (body: string, scanFrom?: number) =>
    readAnswer(operation, asked, raw(body), SETTINGS, scanFrom);
  const { Json = '', ...others } = bodiesOf(records);
  const result = told(read(Json));
  expect(told(read(Json, 0)), 'from its bytes').toEqual(result);
  const long = Array.from({ length: 40 }, () => records).flat();
  const rows = long.length / records.length;
  for (const scanFrom of [0, undefined]) {
    const all = told(read(bodiesOf(long).Json as string, scanFrom));
    expect(all.tables.map(({ rows }) => rows.length)).toEqual(
      result.tables.map(({ rows: one }) => one.length * rows),
    );
    expect(all.warnings).toEqual(result.warnings);
  }
  return {
    ...result,
    row: result.tables[0]?.rows[0],
    /** For records that other formats can have as well. */
    inAllFormats() {
      for (const [format, body] of Object.entries(others)) {
        const { warnings: _, problems, ...other } = told(read(body));
        const { warnings: __, problems: expected, ...same } = result;
        expect(other, format).toEqual(same);
        expect(problems, format).toHaveLength(expected.length);
      }
      return this;
    },
  };
}

const sampleOf = (name: string, at = 0) =>
  (operationNamed(name).sample.answer as { Value: SourceRecord[] }).Value[at] as SourceRecord;

function without(record: SourceRecord, ...names: string[]): SourceRecord {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}

describe('fields that mean nothing in the cash market', () => {
  const BHAV = sampleOf('GetBhavCopyCM');

  test('what cannot be read in them is null, with one warning for the answer', () => {
    const odd = { Expiry: '-', FinInstrmActlXpryDt: 'never', StrikePrice: 'XX', OI: 0.5, OIChng: '1/2' };
    const read = readRecords('GetBhavCopyCM', [
      { ...BHAV, ...odd, UnderlyingPrice: 'n.a.' },
      { ...BHAV, Symbol: 'TCS', OI: 0.25 },
    ]).inAllFormats();
    expect(read.problems).toEqual([]);
    expect(read.row).toMatchObject({
      symbol: 'M&M',
      close_price: '3199.5',
      expiry_date: null,
      actual_expiry_date: null,
      strike_price: null,
      underlying_price: null,
      open_interest: null,
      open_interest_change: null,
    });
    expect(read.warnings).toEqual([
      'what cannot be read in fields that mean nothing here is stored as null: Expiry "-" is not a date, FinInstrmActlXpryDt "never" is not a date, StrikePrice "XX" is not a number, UnderlyingPrice "n.a." is not a number, OI 0.5 is not a whole number, OIChng "1/2" is not a whole number',
    ]);
  });

  test('what can be read in them is stored, without a warning', () => {
    const read = readRecords('GetBhavCopyCM', [
      { ...BHAV, Expiry: '09-25-2025', FinInstrmActlXpryDt: 0, StrikePrice: 12.5, OI: 3 },
    ]).inAllFormats();
    expect(read.row).toMatchObject({
      expiry_date: '2025-09-25',
      actual_expiry_date: null,
      strike_price: '12.5',
      open_interest: '3',
    });
    expect(read.warnings).toEqual([]);
  });

  test('a price that cannot be read is still a reject', () => {
    const read = readRecords('GetBhavCopyCM', [{ ...BHAV, Expiry: '-', ClosePrice: 'XX' }]);
    expect(read.problems).toEqual([[{ path: 'ClosePrice', message: '"XX" is not a number' }]]);
  });
});

describe('the exchange of a record', () => {
  const BHAV = sampleOf('GetBhavCopyCM');
  const read = (exchange: string, Src: string) =>
    readRecords('GetBhavCopyCM', [{ ...BHAV, Src }], { exchange }).inAllFormats();

  test.each(['XBSE', 'bse', 'BSE', 'Bse ', 'XBOM', 'BSE_CM', '1', ''])('%j is no other one of BSE', (src) => {
    expect(read('BSE', src).problems).toEqual([]);
    expect(read('BSE', src).row?.source_exchange ?? '').toBe(src.trim());
  });

  test.each([
    ['BSE', 'NSE'],
    ['BSE', 'nse '],
    ['BSE', 'XNSE'],
    ['NSE', 'BSE'],
    ['NSE', 'XBOM'],
  ])('of %s, a record of %j was not asked for', (exchange, src) => {
    const message = `is ${src.trim()}, an exchange that was not asked`;
    expect(read(exchange, src).problems).toEqual([[{ path: 'src', message }]]);
  });
});

describe('times', () => {
  test('seconds and milliseconds in one answer, and 0 for none', () => {
    const read = readRecords('GetTotalTradeHighlights', [
      {
        ...sampleOf('GetTotalTradeHighlights'),
        Date: 1740594600000,
        ReceivedAt: 1740670322,
        SavedAt: 1740670322000,
      },
      { ...sampleOf('GetTotalTradeHighlights'), Date: 1740594600, ReceivedAt: 0, SavedAt: 0 },
    ]).inAllFormats();
    expect(read.tables[0]?.rows).toMatchObject([
      {
        trade_date: '2025-02-27',
        source_received_at: '2025-02-27 21:02:02+05:30',
        source_saved_at: '2025-02-27 21:02:02+05:30',
      },
      { trade_date: '2025-02-27', source_received_at: null, source_saved_at: null },
    ]);
    const none = readRecords('GetTotalTradeHighlights', [
      { ...sampleOf('GetTotalTradeHighlights'), Date: 0 },
    ]).inAllFormats();
    expect(none.problems).toEqual([[{ path: 'Date', message: 'is missing' }]]);
  });
});

describe('names of fields', () => {
  test.each(['StockPrice', 'Stock Price', 'stock_price', 'STOCK-PRICE', 'Stock_Price '])('%j', (name) => {
    const asked = { instruments: ['TCS'] };
    const read = readRecords('GetFinancialRatios', [{ EPS: 1, [name]: 3604.45 }], asked).inAllFormats();
    expect(read.row).toMatchObject({ stock_price: '3604.45', eps: '1' });
    expect(read.unknownFields).toEqual([]);
  });

  test('two spellings of one field: the first counts, with a warning', () => {
    const read = readRecords('GetFinancialRatios', [{ 'Stock Price': 1, StockPrice: 2 }], {
      instruments: ['TCS'],
    });
    expect(read.row).toMatchObject({ stock_price: '1' });
    expect(read.warnings).toEqual(['StockPrice repeats a field of the record; the first counts']);
  });
});

describe('the quarter of ratios', () => {
  const RATIOS = { Year: 2024, LastQ: 'QM', EPS: 134.19 };
  const ask = (record: SourceRecord, params: Record<string, string>) =>
    readRecords('GetFinancialRatios', [record], {
      instruments: ['TCS'],
      params: { natureOfReport: 'Standalone', variant: 'quarter', ...params },
    }).inAllFormats();

  test.each([
    [{ ...RATIOS }, { year: '2024', period: 'QM' }],
    [
      { ...RATIOS, LastQ: 'qm ' },
      { year: '2024', period: 'QM' },
    ],
    [
      { ...RATIOS, Year: 0 },
      { year: '2024', period: 'QM' },
    ],
    [{ EPS: 1 }, { year: '2024', period: 'QM' }],
    [
      { ...RATIOS, LastQ: 'M12' },
      { year: '2024', period: 'QM' },
    ],
    [RATIOS, { year: '2023', period: 'Latest' }],
    [RATIOS, { period: 'M6', year: '2023' }],
    [RATIOS, { variant: 'eod', year: '2023', period: 'QD' }],
  ])('%j answers the question about %j', (record, params) => {
    expect(ask(record, params)).toMatchObject({ problems: [], row: { eps: String(record.EPS) } });
  });

  test.each([
    [{ ...RATIOS }, { year: '2024', period: 'QD' }, 'lastQ', 'is QM, but 2024QD was asked for'],
    [{ ...RATIOS }, { year: '2023', period: 'QM' }, 'year', 'is 2024, but 2023QM was asked for'],
  ])('%j is no answer to the question about %j', (record, params, path, message) => {
    const read = ask(record, params);
    expect(read.problems).toEqual([[{ path, message }]]);
    expect(read.tables).toEqual([]);
  });
});

describe('shapes are told apart by what distinguishes them', () => {
  const tableOf = (name: string, record: SourceRecord) => {
    const read = readRecords(name, [record], { instruments: ['TCS'] }).inAllFormats();
    expect(read.problems).toEqual([]);
    return read.tables.map(({ table }) => table);
  };

  test('a circuit breaker without a band', () => {
    const read = readRecords('GetCircuitBreakers', [
      without(sampleOf('GetCircuitBreakers'), 'Band'),
    ]).inAllFormats();
    expect(read.row).toMatchObject({ scrip_id: '21STCENMGM', band: '' });
  });

  test('a gainer without its side is missing just that', () => {
    const read = readRecords('GetTop5GainersLosers', [without(sampleOf('GetTop5GainersLosers'), 'IsLoser')]);
    expect(read.problems).toEqual([[{ path: 'isLoser', message: 'is missing' }]]);
  });

  test('a fact without a value, and ratios with any one of their fields', () => {
    expect(tableOf('GetFinancialRatios', { Key: 'Eps', UnitId: 'INR' })).toEqual(['financial_ratio_facts']);
    expect(tableOf('GetFinRatioEOD', { Label: 'EPS' })).toEqual(['financial_ratio_facts']);
    for (const name of ['Year', 'LastQ', 'FaceValue', 'Debt', 'Week52Low', 'StockPrice']) {
      expect(tableOf('GetFinRatioSnapshot', { [name]: 1 }), name).toEqual(['financial_ratios']);
    }
  });

  test('an envelope without records is no fact', () => {
    for (const body of ['{"value":null}', '{"Value":[],"Count":0}', '{"value":""}']) {
      const operation = operationNamed('GetFinancialRatios');
      expect(readAnswer(operation, askedOf(operation), raw(body), SETTINGS).fetched).toBe(0);
    }
  });
});

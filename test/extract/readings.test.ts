import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Requested } from '../../src/declaration/fields.ts';
import type { Shape } from '../../src/declaration/operation.ts';
import type { TableDefinition } from '../../src/declaration/table.ts';
import { type Extracted, readResponse } from '../../src/extract/index.ts';
import { defaultOperations } from '../../src/operations/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { raw, requestedOf, SETTINGS } from './support.ts';

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
    Xml: `<Response><Value>${records.map((record) => `<Item ${attributes(record)} />`).join('')}</Value></Response>`,
    Csv: `${[columns.join(','), ...lines].join('\n')}\n`,
  };
}

/** Everything that is stored or reported, with values as text, because XML and CSV have no others. */
function comparable({ batches, rejects, warnings, unknownFields }: Extracted) {
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

/** Reads records in each format, JSON also in long responses, and expects the same of all. */
function readRecords(name: string, records: readonly SourceRecord[], changes: Partial<Requested> = {}) {
  const operation = operationNamed(name);
  const requested = requestedOf(operation, { instruments: [], ...changes });
  const read = (body: string) => readResponse(operation, requested, raw(body), SETTINGS);
  const { Json = '', ...others } = bodiesOf(records);
  const result = comparable(read(Json));
  const long = Array.from({ length: 40 }, () => records).flat();
  const rows = long.length / records.length;
  const all = comparable(read(bodiesOf(long).Json as string));
  expect(all.tables.map(({ rows }) => rows.length)).toEqual(
    result.tables.map(({ rows: tableRows }) => tableRows.length * rows),
  );
  expect(all.warnings).toEqual(result.warnings);
  return {
    ...result,
    row: result.tables[0]?.rows[0],
    /** For records that other formats can have as well. */
    inAllFormats() {
      for (const [format, body] of Object.entries(others)) {
        const { warnings: _, problems, ...other } = comparable(read(body));
        const { warnings: __, problems: expected, ...same } = result;
        expect(other, format).toEqual(same);
        expect(problems, format).toHaveLength(expected.length);
      }
      return this;
    },
  };
}

const sampleOf = (name: string, at = 0) =>
  (operationNamed(name).sample.response as { Value: SourceRecord[] }).Value[at] as SourceRecord;

function without(record: SourceRecord, ...names: string[]): SourceRecord {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}

describe('fields that mean nothing in the cash market', () => {
  const BHAV = sampleOf('GetBhavCopyCM');

  test('what cannot be read in them is null, with one warning for the response', () => {
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
  ])('of %s, a record of %j was not requested', (exchange, src) => {
    const message = `is ${src.trim()}, an exchange that was not requested`;
    expect(read(exchange, src).problems).toEqual([[{ path: 'src', message }]]);
  });
});

test('times: seconds and milliseconds in one response, and 0 for none', () => {
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

describe('names of fields', () => {
  test.each(['StockPrice', 'Stock Price', 'stock_price', 'STOCK-PRICE', 'Stock_Price '])('%j', (name) => {
    const requested = { instruments: ['TCS'] };
    const read = readRecords('GetFinancialRatios', [{ EPS: 1, [name]: 3604.45 }], requested).inAllFormats();
    expect(read.row).toMatchObject({ stock_price: '3604.45', eps: '1' });
    expect(read.unknownFields).toEqual([]);
  });

  test('two spellings of one field: the first counts, with a warning', () => {
    const read = readRecords('GetFinancialRatios', [{ 'Stock Price': 1, StockPrice: 2 }], {
      instruments: ['TCS'],
    });
    expect(read.row).toMatchObject({ stock_price: '1' });
    expect(read.warnings).toEqual(['StockPrice repeats a field of the record; the first is used']);
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
  ])('%j is a response to the request about %j', (record, params) => {
    expect(ask(record, params)).toMatchObject({ problems: [], row: { eps: String(record.EPS) } });
  });

  test.each([
    [{ ...RATIOS }, { year: '2024', period: 'QD' }, 'lastQ', 'is QM, but 2024QD was requested'],
    [{ ...RATIOS }, { year: '2023', period: 'QM' }, 'year', 'is 2024, but 2023QM was requested'],
  ])('%j is no response to the request about %j', (record, params, path, message) => {
    const read = ask(record, params);
    expect(read.problems).toEqual([[{ path, message }]]);
    expect(read.tables).toEqual([]);
  });
});

describe('shapes are distinguished by the fields that only one of them has', () => {
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

  test('of a record that does not say whether it is a gainer or a loser, nothing else is missing', () => {
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
      expect(readResponse(operation, requestedOf(operation), raw(body), SETTINGS).fetched).toBe(0);
    }
  });
});

describe('corporate actions', () => {
  /** As the service's documentation prints one. */
  const ACTION = {
    ScripId: 'SHRINIWAS',
    ScripCode: 538897,
    ScripName: 'Shri Niwas Leasing and Finance Limited',
    ActionId: 0,
    IndustryName: 'Financial Services',
    ListedStatus: 'Active',
    ScripFaceValue: '10.0',
    ISIN: 'INE201F01015',
    AnnounceType: 'U',
    AnnouncementDate: '02-20-2025 16:36:03',
    MeetingDate: '01-01-0001 00:00:00',
    CorporateActionType: 'Right Issue of Equity Shares',
    PurposeCode: 'ET ',
    RatioAmount: '00100001 ',
    BcRdFlag: 'RD',
    BcRdFrom: '02-27-2025 00:00:00',
    BcRdTo: '02-27-2025 00:00:00',
    ProvXdate: '02-27-2025 00:00:00',
    NdStartDate: '01-01-0001 00:00:00',
    NdEndDate: '01-01-0001 00:00:00',
    PaymentDate: '01-01-0001 00:00:00',
    ReferenceSrno: '1',
    ModifyDate: '02-24-2025 16:43:15',
    ReceivedAt: '02-24-2025 16:44:02',
    SavedAt: '02-24-2025 16:44:02',
  };
  const MADE = 'ET 2025-02-27 2025-02-20T11:06:03Z';
  const NAMES = ['GetCorporateActionsCategories', 'GetConsolidatedPledge'];
  const read = (records: readonly SourceRecord[], name = 'GetConsolidatedPledge') =>
    readRecords(name, records).inAllFormats();
  const idsOf = (...records: SourceRecord[]) => read(records).tables[0]?.rows.map((row) => row.action_id);

  test.each(NAMES)('every value of the sample, in a response of %s', (name) => {
    const all = read([ACTION], name);
    expect(all).toMatchObject({ problems: [], warnings: [], unknownFields: [] });
    expect(all.tables.map(({ table }) => table)).toEqual(['corporate_actions']);
    expect(all.row).toMatchObject({
      scrip_code: '538897',
      action_id: MADE,
      symbol: 'SHRINIWAS',
      company_name: 'Shri Niwas Leasing and Finance Limited',
      scrip_face_value: '10.0',
      isin: 'INE201F01015',
      announcement_date: '2025-02-20',
      announced_at: '2025-02-20 16:36:03+05:30',
      meeting_date: null,
      ratio_amount: '00100001',
      bc_rd_from: '2025-02-27',
      prov_xdate: '2025-02-27',
      reference_srno: '1',
      modify_date: '2025-02-24 16:43:15+05:30',
    });
  });

  test('numbers as text and text as numbers', () => {
    const all = read([{ ...ACTION, ScripFaceValue: 10, ReferenceSrno: 1, ScripCode: '538897' }]);
    expect(all.row).toMatchObject({ scrip_face_value: '10', reference_srno: '1', scrip_code: '538897' });
  });

  test('the same action has the same id in each spelling, and after a correction of anything else', () => {
    for (const same of [
      { ActionId: null },
      { ActionId: '' },
      { ActionId: '0.0' },
      { AnnouncementDate: 1740049563, ProvXdate: 1740594600, BcRdFrom: 1740594600 },
      { AnnouncementDate: 1740049563000, ProvXdate: 1740594600000 },
      { ProvXdate: '2-27-2025 12:00:00 AM', AnnouncementDate: '2-20-2025 4:36:03 PM' },
      { PurposeCode: 'ET' },
      { ModifyDate: '02-26-2025 10:00:00', RatioAmount: '00200001', PaymentDate: '03-27-2025' },
    ]) {
      expect(idsOf({ ...ACTION, ...same }), JSON.stringify(same)).toEqual([MADE]);
    }
    expect(idsOf(ACTION, { ...ACTION, ModifyDate: '02-26-2025 10:00:00' })).toEqual([MADE, MADE]);
    expect(idsOf(without(ACTION, 'ActionId'))).toEqual([MADE]);
  });

  test('no two different actions have the same id', () => {
    const different: SourceRecord[] = [
      ACTION,
      { ...ACTION, PurposeCode: 'DP' },
      { ...ACTION, PurposeCode: null, CorporateActionType: 'Bonus issue' },
      { ...ACTION, ProvXdate: '02-28-2025 00:00:00' },
      { ...ACTION, ProvXdate: null, BcRdFrom: '03-03-2025' },
      { ...ACTION, AnnouncementDate: '02-20-2025 16:36:04' },
      { ...ACTION, AnnouncementDate: null },
      // Two announced at once, of the same kind and for the same day.
      { ...ACTION, RatioAmount: '5.00' },
      { ...ACTION, ReferenceSrno: '2' },
      { ...ACTION, PurposeCode: 'p'.repeat(300) },
      { ...ACTION, PurposeCode: `${'p'.repeat(300)}q` },
    ];
    for (const records of [different, [...different].reverse()]) {
      const ids = idsOf(...records) ?? [];
      expect(new Set(ids).size).toBe(different.length);
      // Sent again, the same ones.
      expect(idsOf(...records, ...records)).toEqual([...ids, ...ids]);
    }
  });

  test('without a code, the name of the company belongs to the id', () => {
    const ids = idsOf({ ...ACTION, ScripCode: 0 }, { ...ACTION, ScripCode: 0, ScripId: 'OTHER' });
    expect(ids).toEqual([`SHRINIWAS ${MADE}`, `OTHER ${MADE}`]);
  });

  test("the source's own id is kept", () => {
    expect(idsOf({ ...ACTION, ActionId: 17 }, { ...ACTION, ActionId: '17.0' })).toEqual(['17', '17']);
    expect(idsOf({ ...ACTION, ActionId: 'A 0' })).toEqual(['A 0']);
  });

  test.each(['02-20-2025', '02-20-2025 00:00:00', 1739989800, '01-01-0001 00:00:00', null])(
    'announced at %j says no time',
    (AnnouncementDate) => {
      expect(read([{ ...ACTION, AnnouncementDate }]).row?.announced_at).toBeNull();
    },
  );

  test('an action is distinguished from a category by its security, and from a pledge by its kind', () => {
    const category = { CorporateActiontype: 'A.G.M.', PurposeCode: 'AGM' };
    const tables = (name: string, record: SourceRecord) =>
      read([record], name).tables.map(({ table }) => table);
    const few = { ScripCode: 538897, CorporateActionType: 'Bonus issue', PurposeCode: 'BN ' };
    for (const name of NAMES) expect(tables(name, few)).toEqual(['corporate_actions']);
    expect(tables('GetCorporateActionsCategories', category)).toEqual(['corporate_action_categories']);
    expect(tables('GetConsolidatedPledge', sampleOf('GetConsolidatedPledge'))).toEqual([
      'consolidated_pledge',
    ]);
    // In the form of an action, but about none.
    const blank = Object.fromEntries(Object.keys(ACTION).map((key) => [key, null]));
    const read1 = readRecords('GetCorporateActionsCategories', [{ ...blank, ...few, ScripCode: 0 }]);
    expect(read1.tables).toMatchObject([
      {
        table: 'corporate_action_categories',
        rows: [{ purpose_code: 'BN', corporate_action_type: 'Bonus issue' }],
      },
    ]);
  });
});

describe('keys', () => {
  test('companies without a code are distinguished by their id', () => {
    const pledge = sampleOf('GetConsolidatedPledge');
    const read = readRecords('GetConsolidatedPledge', [
      { ...pledge, ScripCode: 0 },
      { ...pledge, ScripCode: 0, ScripId: 'AARTECH' },
      without({ ...pledge, ScripId: 'ABB' }, 'ScripCode'),
    ]).inAllFormats();
    expect(read.tables[0]?.rows).toMatchObject([
      { scrip_code: '0', scrip_id: '20MICRONS' },
      { scrip_code: '0', scrip_id: 'AARTECH' },
      { scrip_code: '0', scrip_id: 'ABB' },
    ]);
    const nameless = readRecords('GetConsolidatedPledge', [{ ...pledge, ScripCode: 0, ScripId: '' }]);
    expect(nameless.problems).toEqual([[{ path: '', message: 'names no instrument' }]]);
  });

  test('one code with two labels, and one fact in two units', () => {
    const categories = readRecords('GetCorporateActionsCategories', [
      { CorporateActiontype: 'Dividend', PurposeCode: 'DP ' },
      { CorporateActiontype: 'Final Dividend', PurposeCode: 'DP' },
      { CorporateActiontype: '', PurposeCode: 'DP' },
    ]).inAllFormats();
    expect(categories.tables[0]?.rows.map((row) => row.corporate_action_type)).toEqual([
      'Dividend',
      'Final Dividend',
      '',
    ]);
    const facts = readRecords(
      'GetFinancialRatios',
      [
        { Key: 'Ebit', UnitId: 'INR', Value: '1' },
        { Key: 'Ebit', UnitId: null, Value: '2' },
      ],
      { instruments: ['TCS'] },
    ).inAllFormats();
    expect(facts.tables[0]?.rows.map((row) => row.unit_id)).toEqual(['INR', '']);
  });

  test('the id in a series change may carry the old series', () => {
    const change = { ChangeDate: '08-20-2021', ScripName: 'X', ToSeries: 'ST' };
    const read = readRecords('GetSeriesChange', [
      { ...change, ScripId: 'PRECISION.SM', PrevSeries: 'SM' },
      { ...change, ScripId: 'VAKRANGEE', PrevSeries: 'EQ' },
      { ...change, ScripId: 'A.B.LTD.SM1', PrevSeries: 'SM1' },
      { ...change, ScripId: 'A.B.LTD', PrevSeries: 'EQ' },
      { ...change, ScripId: '.SM', PrevSeries: 'SM' },
    ]).inAllFormats();
    expect(read.tables[0]?.rows.map((row) => [row.scrip_id, row.symbol])).toEqual([
      ['PRECISION.SM', 'PRECISION'],
      ['VAKRANGEE', 'VAKRANGEE'],
      ['A.B.LTD.SM1', 'A.B.LTD'],
      ['A.B.LTD', 'A.B.LTD'],
      ['.SM', '.SM'],
    ]);
  });
});

/** Responses to one request, written as the source writes them in either reading of its documentation. */
interface BothReadings {
  readonly operation: string;
  readonly requested: Requested;
  /** What is stored of the usual ones, without columns that are null; values as text. */
  readonly rows: readonly Readonly<Record<string, string>>[];
  /** What is stored of the contrary ones instead, for each row. */
  readonly otherwise: readonly Readonly<Record<string, string | null>>[];
  readonly responses: readonly {
    readonly reading: 'usual' | 'contrary';
    readonly format: string;
    readonly dates: string;
    readonly body: string;
  }[];
}

describe('every operation and form, as the documentation is usually read and as it can be read instead', () => {
  const folder = new URL('../fixtures/readings/', import.meta.url);
  const fixtures = readdirSync(folder).map(
    (file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as BothReadings,
  );
  /** The columns of which the contrary reading says something else. */
  const OTHERWISE: Readonly<Record<string, readonly string[]>> = {
    bhavcopy_cm: ['source_exchange'],
    corporate_actions: ['action_id', 'announced_at'],
    series_changes: ['scrip_id'],
  };

  test('there is a fixture of each operation and of each of its tables', () => {
    const tables = new Set(fixtures.flatMap(({ rows }) => rows.map(({ table }) => table)));
    expect([...tables].toSorted()).toEqual(
      [
        ...new Set(defaultOperations.flatMap(({ shapes }) => shapes.map(({ table }) => table.name))),
      ].toSorted(),
    );
    expect(new Set(fixtures.map(({ operation }) => operation))).toEqual(
      new Set(defaultOperations.map(({ name }) => name)),
    );
  });

  test('both readings store the same but for these columns', () => {
    for (const { rows, otherwise } of fixtures) {
      for (const [at, changed] of otherwise.entries()) {
        const known = OTHERWISE[rows[at]?.table ?? ''] ?? [];
        expect(known).toEqual(expect.arrayContaining(Object.keys(changed)));
      }
    }
    const columns = fixtures.flatMap(({ otherwise }) => otherwise.flatMap((changed) => Object.keys(changed)));
    expect([...new Set(columns)].toSorted()).toEqual(Object.values(OTHERWISE).flat().toSorted());
  });

  const responses = fixtures.flatMap(({ responses, ...fixture }) =>
    responses.map((response) => ({ ...fixture, ...response, table: fixture.rows[0]?.table })),
  );

  test.each(responses)(
    '$operation for $table, $reading: $format, dates as $dates',
    ({ operation: name, requested, reading, body, rows, otherwise }) => {
      const operation = operationNamed(name);
      const read = readResponse(operation, requested, raw(body), SETTINGS);
      expect(read.rejects).toEqual([]);
      expect(read.unknownFields).toEqual([]);
      // Values that mean nothing in the cash market are one warning.
      expect(read.warnings).toHaveLength(reading === 'contrary' && name === 'GetBhavCopyCM' ? 1 : 0);
      const stored = read.batches.flatMap(({ table, rows }) =>
        [...rows].map((row) => textsOf({ table: table.name, ...row }, numbersOf(table))),
      );
      const expected = rows.map((row, at) => {
        const { table } = operation.shapes.find((shape) => shape.table.name === row.table) as Shape;
        return textsOf(reading === 'usual' ? row : { ...row, ...otherwise[at] }, numbersOf(table));
      });
      expect(stored).toEqual(expected);
    },
  );

  const numbersOf = ({ fields }: TableDefinition) =>
    new Set(fields.filter(({ kind }) => kind === 'numeric').map(({ column }) => column));

  /** Values as text, numbers with the 15 digits that JSON has of them in either reading; without those that are null. */
  const textsOf = (row: Readonly<Record<string, unknown>>, numbers: ReadonlySet<string>) =>
    Object.fromEntries(
      Object.entries(row)
        .filter(([, value]) => value !== null)
        .map(([column, value]) => [
          column,
          numbers.has(column) ? Number(value).toPrecision(15) : String(value),
        ]),
    );
});

import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { columnComment } from '../../src/declaration/column-comment.ts';
import { exchangesOf, settingFor } from '../../src/declaration/operation.ts';
import { LOAD_AUDIT, SOURCE_AUDIT, type TableDefinition } from '../../src/declaration/table.ts';
import { fileSets } from '../../src/operations/index.ts';
import {
  dataSets,
  findDataSet,
  findOperations,
  listedAs,
  operationNamed,
  operations,
  tables,
  titleOf,
} from '../../src/operations/registry.ts';
import { UDIFF_FIELDS } from '../../src/operations/tables/udiff.ts';

/*
 * The lists below are the names that queries of others depend on. They hold the first release; what is
 * added later needs no line here, but nothing listed may change.
 */

/** Primary key of each table. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  top_gainers_losers: ['exchange', 'trade_date', 'scrip_code', 'is_loser'],
  bhavcopy_cm: ['exchange', 'symbol', 'series', 'trade_date'],
  sectoral_classification: ['exchange', 'isin', 'scrip_code', 'allotted_from'],
  consolidated_pledge: ['exchange', 'scrip_code', 'scrip_id', 'trade_date'],
  corporate_action_categories: ['exchange', 'purpose_code', 'corporate_action_type'],
  financial_ratios: ['exchange', 'symbol', 'nature_of_report', 'variant', 'as_of_date', 'period'],
  financial_ratio_facts: [
    'exchange',
    'symbol',
    'nature_of_report',
    'variant',
    'as_of_date',
    'period',
    'fact_key',
    'unit_id',
  ],
  circuit_breakers: ['exchange', 'trade_date', 'scrip_id', 'series', 'band'],
  total_trade_highlights: ['exchange', 'trade_date', 'trade_highlight'],
  series_changes: ['exchange', 'change_date', 'scrip_id', 'prev_series', 'to_series'],
  corporate_actions: ['exchange', 'scrip_code', 'action_id'],
};

/** The tables that the records of each operation go to. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  GetTop5GainersLosers: ['top_gainers_losers'],
  GetBhavCopyCM: ['bhavcopy_cm'],
  GetSectoralClassification: ['sectoral_classification'],
  GetConsolidatedPledge: ['consolidated_pledge', 'corporate_actions'],
  GetCorporateActionsCategories: ['corporate_action_categories', 'corporate_actions'],
  GetFinancialRatios: ['financial_ratio_facts', 'financial_ratios'],
  GetFinRatioEOD: ['financial_ratio_facts', 'financial_ratios'],
  GetFinRatioSnapshot: ['financial_ratio_facts', 'financial_ratios'],
  GetCircuitBreakers: ['circuit_breakers'],
  GetTotalTradeHighlights: ['total_trade_highlights'],
  GetSeriesChange: ['series_changes'],
};

/** Columns by the field of the source, where the column is not the same name in snake_case. */
const RENAMED: readonly (readonly [table: string, names: Readonly<Record<string, string>>])[] = [
  [
    'bhavcopy_cm',
    {
      tradDt: 'trade_date',
      bizDt: 'business_date',
      sgmt: 'segment',
      src: 'source_exchange',
      finInstrmTp: 'instrument_type',
      finInstrmId: 'exchange_instrument_id',
      sctySrs: 'series',
      finInstrmNm: 'instrument_full_name',
      ssnId: 'session_id',
      expiry: 'expiry_date',
      finInstrmActlXpryDt: 'actual_expiry_date',
      sttlmPric: 'settlement_price',
      oi: 'open_interest',
      oiChng: 'open_interest_change',
      ttq: 'traded_quantity',
      ttlTrfVal: 'turnover',
      totalTradesNo: 'trade_count',
      newBrdLotQty: 'board_lot_quantity',
      prevClosePrice: 'previous_close_price',
      underlyingPrice: 'underlying_price',
      instrumentName: 'instrument_name',
    },
  ],
  [
    'top_gainers_losers',
    {
      date: 'trade_date',
      currentClosing: 'close_price',
      previousClosing: 'previous_close_price',
      percentageFluctation: 'change_percent',
    },
  ],
  [
    'sectoral_classification',
    {
      meiCode: 'macro_sector_code',
      macroEconomicIndicator: 'macro_sector',
      sectCode: 'sector_code',
      allotedFrom: 'allotted_from',
    },
  ],
  ['corporate_action_categories', { corporateActiontype: 'corporate_action_type' }],
  [
    'total_trade_highlights',
    {
      tradeHighlights: 'trade_highlight',
      scripsNo: 'scrip_count',
      tradesNo: 'trade_count',
      sharesVol: 'shares_volume_crore',
      turnoverRsCr: 'turnover_crore',
    },
  ],
  [
    'consolidated_pledge',
    {
      PromoterSharesEncumberedasoflastquarter_NoofShares: 'encumbered_last_quarter_shares',
      PromoterSharesEncumberedasoflastquarter_Perofpromotershares:
        'encumbered_last_quarter_of_promoter_shares_percent',
      PromoterSharesEncumberedasoflastquarter_Peroftotalshares:
        'encumbered_last_quarter_of_total_shares_percent',
      PromoterSharesEncumberedasoflastquarter_Values: 'encumbered_last_quarter_value',
      DisclosuresmadebypromotersontheirencumberedsharesunderRegulation31ofSASTsincethelastquarter:
        'sast_reg31_disclosures',
      Noofsharespledgedinthedepositorysystem_DNoofsharespledged: 'depository_pledged_shares',
      Noofsharespledgedinthedepositorysystem_ETotalnoofdematshares: 'depository_demat_shares',
      Noofsharespledgedinthedepositorysystem_FPerDE: 'depository_pledged_percent',
      Noofsharespledgedinthedepositorysystem_ValuesPromoter: 'depository_pledged_promoter_value',
      NoofsharesheldwithNBFCascollateralagainstlending_Promotershares: 'nbfc_collateral_promoter_shares',
      NoofsharesheldwithNBFCascollateralagainstlending_NonPromotershares:
        'nbfc_collateral_non_promoter_shares',
    },
  ],
  [
    'financial_ratio_facts',
    { key: 'fact_key', label: 'label', unitId: 'unit_id', decimals: 'decimals', value: 'value' },
  ],
];

const responseFields = (table: TableDefinition) =>
  table.fields.flatMap((field) => (field.from === 'response' ? [field] : []));

describe('the registry', () => {
  test('holds the data set of each file, which has its name, and each operation is found by its name in any case', () => {
    const namesIn = (folder: string) =>
      readdirSync(new URL(`../../src/operations/${folder}`, import.meta.url)).flatMap(
        (file) => /^([A-Z]\w*)\.ts$/.exec(file)?.[1] ?? [],
      );
    expect(operations.map(({ name }) => name)).toEqual(namesIn('.').sort());
    expect(fileSets.map(({ name }) => name)).toEqual(namesIn('files').sort());
    expect(dataSets).toEqual([...operations, ...fileSets]);
    for (const operation of operations) {
      expect(operationNamed(operation.name.toUpperCase())).toBe(operation);
    }
    expect(() => operationNamed('GetBhavCopy')).toThrow('did you mean GetBhavCopyCM?');
  });

  test('finds a data set by its first table, even if others fill that table too', () => {
    const nameOf = (table: string) => operationNamed(table).name;
    expect(nameOf('market.BhavCopy_CM')).toBe('GetBhavCopyCM');
    expect(nameOf('consolidated_pledge')).toBe('GetConsolidatedPledge');
    expect(nameOf('corporate_actions')).toBe('GetCorporateActions');
    expect(nameOf('corporate_action_categories')).toBe('GetCorporateActionsCategories');
  });

  test('has a title for each, with the name it is listed under', () => {
    expect(titleOf('GetBhavCopyCM')).toBe('Prices, bhavcopy_cm');
    expect(titleOf('GetConsolidatedPledge')).toBe('Promoter pledges, consolidated_pledge');
    expect(titleOf('GetFinRatioEOD')).toBe('Daily ratios, GetFinRatioEOD');
    expect(titleOf('GetNowhere')).toBe('GetNowhere');
  });

  test('lists each under a name of its own, by which it is found', () => {
    for (const { name } of dataSets) expect(findDataSet(listedAs(name)).name).toBe(name);
    expect(['GetBhavCopyCM', 'GetFinRatioEOD', 'GetFinancialRatios'].map(listedAs)).toEqual([
      'bhavcopy_cm',
      // The table of three operations.
      'GetFinRatioEOD',
      'GetFinancialRatios',
    ]);
  });

  test('a table means all operations that fill it, and one that files fill is never requested', () => {
    const namesOf = (name: string) => findOperations(name).map((operation) => operation.name);
    expect(namesOf('market.Financial_Ratios')).toEqual([
      'GetFinRatioEOD',
      'GetFinRatioSnapshot',
      'GetFinancialRatios',
    ]);
    expect(namesOf('getfinratioeod')).toEqual(['GetFinRatioEOD']);
    expect(namesOf('corporate_actions')).toEqual(['GetCorporateActions']);
    expect(() => namesOf('deliveries')).toThrow(
      expect.objectContaining({
        message: 'Deliveries, deliveries is never requested',
        remedy: 'import_files',
      }),
    );
    expect(() => namesOf('corporate_events')).toThrow(
      'Corporate events, corporate_events is never requested, but computed from other data',
    );
  });

  test('a setting for an operation is found under its name or its table, in any case', () => {
    const [eod] = findOperations('GetFinRatioEOD');
    expect(settingFor({ financial_RATIOS: 1, getfinratioEOD: 2 }, eod)).toBe(2);
    expect(settingFor({ financial_RATIOS: 1 }, eod)).toBe(1);
    expect(settingFor({ bhavcopy_cm: 1 }, eod)).toBeUndefined();
    expect(
      exchangesOf(findOperations('bhavcopy_cm')[0], {
        EOD_EXCHANGES: ['NSE', 'BSE'],
        EOD_OPERATION_EXCHANGES: { BHAVCOPY_CM: ['BSE'] },
      }),
    ).toEqual(['BSE']);
  });

  test('holds every table once, and every data set has one', () => {
    const names = tables.map((table) => table.name);
    expect(new Set(names).size).toBe(names.length);
    const used = dataSets.flatMap((dataSet) => dataSet.shapes.map((shape) => shape.table));
    expect(new Set(used)).toEqual(new Set(tables));
  });

  test.each(Object.entries(TABLES))('sends %s to its tables', (name, list) => {
    const tableNames = operationNamed(name).shapes.map((shape) => shape.table.name);
    expect(tableNames.sort()).toEqual([...list].sort());
  });

  test.each(Object.entries(KEYS))('keeps the key of %s', (name, key) => {
    expect(tables.find((table) => table.name === name)?.key).toEqual(key);
  });

  test.each(RENAMED)('%s carries the plain-English column names', (name, names) => {
    const table = tables.find((table) => table.name === name);
    const columns = Object.fromEntries(
      (table === undefined ? [] : responseFields(table)).map((field) => [field.source, field.column]),
    );
    expect(columns).toMatchObject(names);
  });

  test.each(tables.map((table) => [table.name, table] as const))('%s is declared whole', (_name, table) => {
    const sources = responseFields(table).map((field) => field.source.toLowerCase());
    expect(new Set(sources).size).toBe(sources.length);
    const columns = table.fields.map((field) => field.column);
    expect(new Set(columns).size).toBe(columns.length);
    expect(columns.slice(0, table.key.length)).toEqual(table.key);
    expect(columns.slice(-2)).toEqual(SOURCE_AUDIT);
    expect(columns.some((column) => column in LOAD_AUDIT)).toBe(false);
    expect(table.comment).toMatch(/\.$/);
    for (const field of table.fields) {
      expect(field.column).toMatch(/^[a-z][a-z0-9_]{0,62}$/);
      expect(field.meaning, field.column).toMatch(/\w.*\.$/);
      expect(columnComment(field)).toContain(field.meaning);
      if (table.key.includes(field.column) && field.from === 'response') {
        // A key is never null: the record is rejected, or gets the declared blank.
        expect(field.required === true || field.absent !== undefined, field.column).toBe(true);
      }
    }
  });

  test('names a unit for every quantity and every amount', () => {
    const withoutUnit = tables.flatMap((table) =>
      responseFields(table)
        .filter((field) => field.kind === 'numeric' && field.unit === undefined)
        .map((field) => `${table.name}.${field.column}`),
    );
    expect(withoutUnit).toEqual([]);
    // In files of both exchanges, the open interest is a multiple of the lot.
    const ofOpenInterest = UDIFF_FIELDS.filter(({ column }) => column.startsWith('open_interest'));
    expect(ofOpenInterest.map(({ unit }) => unit)).toEqual(Array(2).fill('units'));
  });

  test.each(operations.map((operation) => [operation.name, operation] as const))(
    '%s has fields to recognize each shape by, and a date column for each shape that is dated',
    (_name, operation) => {
      for (const shape of operation.shapes) {
        expect(shape.has.length + (shape.hasOneOf?.length ?? 0)).toBeGreaterThan(0);
        if (shape.dated) expect(shape.table.dateColumn).not.toBeNull();
      }
    },
  );
});

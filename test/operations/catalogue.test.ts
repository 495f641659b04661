import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { buildUrl } from '../../src/extract/build-request.ts';
import { columnComment } from '../../src/load/market/schema/comments-and-functions.ts';
import type { Requested } from '../../src/operations/fields.ts';
import {
  dataSetsAlsoFilling,
  GROUPS,
  type Operation,
  tablesFilledBy,
} from '../../src/operations/operation.ts';
import { dataSets, operations as defaults, tables as defaultTables } from '../../src/operations/registry.ts';
import { readFrom, type TableDefinition } from '../../src/operations/table.ts';
import { SETTINGS } from '../extract/support.ts';
import { catalogue, FOLDER, inCatalogue } from '../support/catalogue.ts';
import { problemsOf } from '../support/names.ts';

/* What the declarations of the catalogue have in common with those of the defaults. */

const byName = catalogue.map((operation) => [operation.name, operation] as const);

const tables = catalogue.map((operation) => [operation.name, operation.shapes[0].table] as const);

const covered = (table: TableDefinition) =>
  table.fields.flatMap((field) => (field.from === 'response' ? [field] : []));

describe('the catalogue', () => {
  test('has each operation in the file of its name, and none that is there by default', () => {
    expect(new Set(catalogue.map(({ name }) => name)).size).toBe(catalogue.length);
    expect(catalogue.length).toBeGreaterThanOrEqual(31);
    const names = dataSets.filter((one) => !catalogue.includes(one as Operation)).map(({ name }) => name);
    expect(catalogue.filter(({ name }) => names.includes(name))).toEqual([]);
    const own = tables.map(([, { name }]) => name);
    expect(new Set(own).size).toBe(own.length);
    const known = defaultTables.filter((table) => !tables.some(([, one]) => one === table));
    expect(own.filter((name) => known.some((table) => table.name === name))).toEqual([]);
  });

  test('and every other data set have a title of their own, a plural of a few words, and a group', () => {
    const all = [...new Set([...dataSets, ...catalogue])];
    for (const { name, title = '', group } of all) {
      expect(title, name).toMatch(/^[A-Z][a-z-]+( [a-zA-Z-]+){0,4}$/);
      expect(title.length, name).toBeLessThanOrEqual(32);
      expect(GROUPS, name).toContain(group);
    }
    expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
    expect(new Set(dataSets.map(({ group }) => group))).toEqual(new Set(GROUPS));
  });

  test.each(byName)('%s says what is documented and what is assumed', (name) => {
    const text = readFileSync(new URL(`${name}.ts`, FOLDER), 'utf8');
    const said = text.includes('codeList(') ? readFileSync(new URL('code-list.ts', FOLDER), 'utf8') : text;
    expect(said).toMatch(/\* Documented: /);
    expect(said).toMatch(/Assumed:\s/);
  });

  test.each(tables)('%s: its table is declared whole', (_name, table) => {
    const sources = covered(table).map(({ source }) => source.toLowerCase());
    expect(new Set(sources).size).toBe(sources.length);
    expect(table.comment).toMatch(/\.$/);
    for (const field of table.fields) {
      expect(field.meaning, field.column).toMatch(/\w.*\.$/);
      if (table.key.includes(field.column) && field.from === 'response') {
        expect(field.required === true || field.absent !== undefined, field.column).toBe(true);
      }
      if (field.from === 'response' && field.kind === 'numeric')
        expect(field.unit, field.column).toBeDefined();
    }
  });

  test.each(tables)('%s: the names of its table follow the rules', (_name, table) => {
    // Named like that of the cash market.
    if (table.name !== 'bhavcopy_fo') expect(table.name).toMatch(/^[a-z][a-z0-9_]*s$/);
    const problems = table.fields.flatMap((field) =>
      problemsOf({
        kind: 'relation',
        schema: 'market',
        of: table.name,
        name: field.column,
        isBoolean: field.kind === 'boolean',
        comment: columnComment(field),
      }).map((problem) => `${field.column}: ${problem}`),
    );
    expect(problems).toEqual([]);
    const columns = table.fields.map(({ column }) => column);
    if (columns.includes('scrip_id')) expect(columns).toContain('symbol');
  });

  test.each(byName)('%s shows its records, and dates what it says is dated', (_name, operation) => {
    for (const {
      table,
      has,
      hasOneOf = [],
      namedBy = [],
      dated,
      symbolColumn,
      fullSet,
    } of operation.shapes) {
      const sources = new Set(
        covered(table).flatMap(({ source, orElse = [] }) =>
          [source, ...orElse].map((one) => one.toLowerCase()),
        ),
      );
      for (const source of [...has, ...hasOneOf, ...namedBy]) expect(sources).toContain(source.toLowerCase());
      expect(has.length + hasOneOf.length).toBeGreaterThan(0);
      if (dated) expect(table.dateColumn).not.toBeNull();
      else expect(fullSet).not.toBe('days');
      if (symbolColumn !== undefined)
        expect(table.fields.map(({ column }) => column)).toContain(symbolColumn);
    }
  });

  test('requests at times of its own, after the data is there', () => {
    const times = [...defaults, ...catalogue].map(({ schedule }) => schedule.at);
    const own = catalogue.map(({ schedule }) => schedule.at);
    expect(new Set(own).size).toBe(own.length);
    expect(own.filter((at) => times.filter((other) => other === at).length > 1)).toEqual([]);
    for (const { name, publishedAt, schedule } of catalogue) {
      expect(schedule.at >= publishedAt, name).toBe(true);
    }
  });

  test.each(byName)('%s: rows that lead to requests have what is requested with', (_name, { windows }) => {
    if (windows.per !== 'row') return;
    const columns = inCatalogue(windows.of).shapes[0].table.fields.map(({ column }) => column);
    expect(columns).toEqual(
      expect.arrayContaining([
        windows.instrument,
        ...Object.values(windows.params),
        windows.day ?? windows.instrument,
      ]),
    );
  });
});

describe('requests', () => {
  const sent = (name: string, changes: Partial<Requested> = {}) => {
    const operation = inCatalogue(name);
    const requested = { ...operation.sample.requested, calledOn: operation.sample.requested.to, ...changes };
    const { searchParams } = new URL(buildUrl(SETTINGS, operation, requested));
    const { accessKey: _, format: __, ...others } = Object.fromEntries(searchParams);
    return others;
  };

  test.each(byName)('%s can request its sample', (name, operation) => {
    expect(sent(name).exchange).toBe(operation.sample.requested.exchange);
  });

  test.each([
    ['GetDeliverable', { date: '1740594600', instrumentIdentifier: 'RELIANCE', dTformat: 'String' }],
    ['GetVolatality', { date: '1740594600', instrumentIdentifier: 'RELIANCE', dTformat: 'String' }],
    ['GetBulkDeals', { range: 'Previous7days', dTFormat: 'String' }],
    ['GetResultsCalendar', { range: 'Previous15days', instrumentIdentifiers: 'ABB', dTFormat: 'String' }],
    [
      'GetAnnualReports',
      { from: '2023', to: '2025', instrumentIdentifiers: 'CARERATING DICIND', dTFormat: 'String' },
    ],
    ['GetInstruments', { product: 'RELIANCE', series: 'A', detailedInfo: 'true' }],
    ['GetFinancialResultsItems', { Year: '2024', instrumentIdentifiers: 'INDRANIB' }],
    [
      'GetFinancialResults',
      {
        instrumentIdentifier: 'ABB',
        year: '2024',
        natureOfReport: 'Standalone',
        type: 'ProfitLoss',
        period: 'QD',
      },
    ],
    ['GetSHP', { instrumentIdentifier: 'ARL', date: '1740594600' }],
    [
      'GetSHPAdvanced',
      { instrumentIdentifier: 'ARL', date: '1740594600', type: 'SummaryPromoterPublicOthers' },
    ],
    ['GetMei', {}],
  ])('%s requests as documented', (name, expected) => {
    const { exchange: _, ...params } = sent(name);
    expect(params).toEqual(expected);
  });
});

describe('a table that responses of another operation fill', () => {
  const [table] = tablesFilledBy(inCatalogue('GetDeliverable')).slice(-1) as [TableDefinition];

  test('keeps its fields in their order, with other names', () => {
    const { fields } = readFrom(table, { trade_date: { source: 'Date' } });
    expect(fields.map(({ column }) => column)).toEqual(table.fields.map(({ column }) => column));
    expect(fields.find(({ column }) => column === 'trade_date')).toMatchObject({
      source: 'Date',
      required: true,
    });
  });

  test('is replayed from their responses too', () => {
    expect(dataSetsAlsoFilling([...dataSets, ...catalogue], ['Deliveries'])).toEqual({
      inFiles: ['GetBhavCopyCM'],
      inResponses: expect.arrayContaining(['GetDeliverable', 'GetDeliveryVolumes']),
    });
    expect(dataSetsAlsoFilling([...dataSets, ...catalogue], ['GetBhavCopyCM']).inResponses).toEqual([]);
  });

  test('has to have the columns', () => {
    expect(() => readFrom(table, { nothing: { source: 'Date' } })).toThrow(
      'deliveries reads no column nothing from responses',
    );
  });
});

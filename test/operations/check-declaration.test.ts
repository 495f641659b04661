import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkDeclaration } from '../../src/operations/check-declaration.ts';
import { int4, numeric, text } from '../../src/operations/fields.ts';
import { allOperations, operationNamed } from '../../src/operations/registry.ts';
import { defineTable } from '../../src/operations/table.ts';
import { deals, declared, details, items } from '../support/declared.ts';
import { forAll } from '../support/for-all.ts';

const { operations: all } = await allOperations();
const names = [...all.map(({ operation }) => operation), ...declared].map(({ name }) => name);

/** The sentences about a declaration, without its file. */
function said(declaration: unknown, level?: 'error' | 'warning'): string[] {
  return checkDeclaration(declaration, { file: 'GetVoting.mjs', names })
    .filter((one) => level === undefined || one.level === level)
    .map((one) => {
      expect(one.text).toMatch(/^GetVoting\.mjs: \S/);
      return one.text.slice('GetVoting.mjs: '.length);
    });
}

test.each(
  [...all.map(({ operation }) => operation), ...declared].map(
    (operation) => [operation.name, operation] as const,
  ),
)('nothing is wrong with %s', (_, operation) => {
  expect(said(operation, 'error')).toEqual([]);
});

const [shape] = deals.shapes;
const once = operationNamed('GetCorporateActionsCategories');
const withTable = (changes: object) => ({
  ...deals,
  shapes: [{ ...shape, table: { ...shape.table, ...changes } }],
});
const withField = (field: unknown) => withTable({ fields: [...shape.table.fields, field] });
const withRequest = (changes: object) => ({ ...deals, request: { ...deals.request, ...changes } });
const withShape = (changes: object) => ({ ...deals, shapes: [{ ...shape, ...changes }] });
const withSample = (changes: object) => ({ ...deals, sample: { ...deals.sample, ...changes } });

describe('one sentence with the path and what to write', () => {
  test.each<[unknown, string]>([
    [undefined, 'the default export is missing: write "export default defineOperation({ … })"'],
    ['GetVoting', 'the default export is "GetVoting": write "export default defineOperation({ … })"'],
    [
      { ...deals, name: 'Get Voting' },
      'name is "Get Voting": use the name by which the source is called, such as GetVoting',
    ],
    [{ ...deals, title: ' ' }, 'title is " ": use a plural of a few words, or leave it out'],
    [
      { ...deals, group: 'deals' },
      'group is "deals": use prices, trading, corporate actions, fundamentals, ownership or reference',
    ],
    [{ ...deals, summary: ' ' }, 'summary is " ": say in a sentence what the records are'],
    [
      { ...deals, exchanges: ['bse'] },
      "exchanges[0] is \"bse\": list codes in capitals, such as ['BSE', 'NSE'] or ['BFO']",
    ],
    [
      { ...deals, exchanges: [] },
      "exchanges is an empty list: list codes in capitals, such as ['BSE', 'NSE'] or ['BFO']",
    ],
    [{ ...deals, publishedAt: '9pm' }, 'publishedAt is "9pm": use a time such as 21:30'],
    [{ ...deals, emptyIsNormal: undefined }, 'emptyIsNormal is missing: use true or false'],
    [{ ...deals, envelop: 'X' }, 'envelop is not a name of a declaration: did you mean envelope?'],
    [{ ...deals, envelope: '' }, 'envelope is "": use the name of the list in the response, or leave it out'],
    [withRequest({ dates: 'ranges' }), 'request.dates is "ranges": use range, years, day, spans or none'],
    [withRequest({ instruments: 2 }), 'request.instruments is 2: use many, one or none'],
    [
      withRequest({ dTFormat: undefined }),
      'request.dTFormat is missing: use true, false or the name of the parameter',
    ],
    [
      withRequest({ spans: undefined }),
      "request.spans is missing: list the spans that the source knows, such as { value: 'Previous7days', from: -7, to: 0 }",
    ],
    [
      withRequest({ spans: [{ value: 'x', from: 0, to: -1 }] }),
      'request.spans[0].from is after its to: exchange them',
    ],
    [
      withRequest({ dates: 'range' }),
      'request.spans has no effect: set request.dates to spans, or remove it',
    ],
    [
      withRequest({ fixed: { Exchange: 'BSE' } }),
      'request.fixed names Exchange, which is sent anyway: remove it',
    ],
    [
      withRequest({ fixed: { onlyActive: true } }),
      "request.fixed.onlyActive is true: use names with values in quotes, such as { onlyActive: 'true' }",
    ],
    [withRequest({ options: undefined }), 'request.options is missing: use a list, which may be empty'],
    [
      withRequest({ options: [0, 1].map(() => ({ param: 'type', meaning: 'Type.', isFilter: false })) }),
      'request.options has "type" twice: remove one of them',
    ],
    [
      withRequest({
        options: [
          { param: 'year', meaning: 'Year.', isFilter: true, form: { pattern: '(', description: 'x' } },
        ],
      }),
      "request.options[0].form is an object: use { pattern: '\\\\d{4}', description: 'a year such as 2024' }",
    ],
    [
      { ...deals, windows: { per: 'day' } },
      'windows.per is "day": use range, session, once, instrument or row',
    ],
    [
      { ...deals, windows: { per: 'range', days: 0, everyDay: true } },
      'windows.days is 0: use the longest range of a request in days, such as 30',
    ],
    [
      { ...deals, windows: { per: 'once' } },
      'windows.per is "once", but request.dates is "spans": use range, or dates none',
    ],
    [
      { ...items, request: { ...items.request, instruments: 'none' } },
      'windows.per is "instrument", but request.instruments is "none": use one or many',
    ],
    [
      { ...items, windows: { ...items.windows, requests: () => [{}] } },
      'windows.requests returns a list of other elements: use a function that returns [{ from, to, variant, params }]',
    ],
    [
      { ...details, windows: { ...details.windows, of: 'GetTestItem' } },
      'windows.of is "GetTestItem": correct the name, or enable the operation; did you mean GetTestItems?',
    ],
    [
      { ...details, windows: { ...details.windows, of: details.name } },
      'windows.of is the operation itself: name another one',
    ],
    [
      { ...deals, schedule: undefined },
      "schedule is missing: use { at: '21:30', on: 'daily', hasLookback: true }",
    ],
    [
      { ...deals, schedule: { ...deals.schedule, on: 'monday' } },
      'schedule.on is "monday": use daily, friday, saturday or sunday',
    ],
    [
      { ...deals, schedule: { ...deals.schedule, spread: 'week' } },
      'schedule.spread applies to instruments that are requested daily: use it with on daily and windows.per instrument',
    ],
    [{ ...deals, shapes: [] }, 'shapes is an empty list: list at least one, { table, has, dated, fullSet }'],
    [withShape({ fullSet: 'day' }), 'shapes[0].fullSet is "day": use days, exchange or none'],
    [
      withShape({ dated: false }),
      'shapes[0].fullSet is "days" of records without a day: set dated to true, or fullSet to none',
    ],
    [
      withShape({ has: ['deal'] }),
      'shapes[0].has names "deal", which no field of the table reads: correct the name',
    ],
    [
      withShape({ symbolColumn: 'scrip' }),
      'shapes[0].symbolColumn is "scrip": use a column of the table: exchange, deal_date, scrip_code, symbol, client_name, quantity, deal_price, ordinal, source_received_at, source_saved_at',
    ],
    [
      withTable({ name: 'a'.repeat(51) }),
      `shapes[0].table.name is "${'a'.repeat(51)}": use at most 50 characters, because names of functions and indexes add to it`,
    ],
    [
      withField(text('Name', 'a'.repeat(64), 'Name.')),
      `shapes[0].table.fields[10].column is "${'a'.repeat(59)}…: use a name in snake_case of at most 63 characters, which Postgres does not shorten`,
    ],
    [
      withField(text('Name', 'a"b', 'Name.')),
      'shapes[0].table.fields[10].column is "a\\"b": use a name in snake_case of at most 63 characters, which Postgres does not shorten',
    ],
    [
      { ...deals, alsoInFiles: [{ ...shape.table, name: 'prices' }] },
      'alsoInFiles[0].name is "prices", which is a view of the schema market: give the table another name',
    ],
    [{ ...deals, also: 7 }, 'also is 7: use readFrom(table, { … })'],
    [
      withTable({ name: 'prices' }),
      'shapes[0].table.name is "prices", which is a view of the schema market: give the table another name',
    ],
    [
      withField(int4('Code', 'scrip_code', 'Again.')),
      'shapes[0].table.fields declares the column "scrip_code" twice: rename one of them',
    ],
    [
      withField(int4('Revision', 'revision', 'Revision.')),
      'shapes[0].table.fields[10].column is "revision", which every table has: use another name than first_loaded_at, last_changed_at, revision, run_id, load_id, valid_from, valid_to, withdrawn or replaced_by_load_id',
    ],
    [
      withField({ ...text('Name', 'full_name', 'Name.'), kind: 'varchar' }),
      'shapes[0].table.fields[10].kind is "varchar": use text, int2, int4, int8, numeric, boolean, date or datetime',
    ],
    [
      withTable({ key: ['exchange', 'nothing'] }),
      'shapes[0].table.key names "nothing", which no field has: add the field, or correct the name',
    ],
    [
      withTable({ key: [...shape.table.key, 'source_saved_at'] }),
      'shapes[0].table.key names "source_saved_at", which a record may lack: give its field { required: true }, or { absent: \'\' } or { absent: 0 }',
    ],
    [
      withField({ ...text('Grade', 'grade', 'Grade.'), blanks: 'N.A.' }),
      'shapes[0].table.fields[10].blanks is "N.A.": list texts in quotes, such as [\'N.A.\']',
    ],
    [
      withField({ ...text('Grade', 'grade', 'Grade.'), requierd: true }),
      'shapes[0].table.fields[10].requierd is not a name of a declaration: did you mean required?',
    ],
    [
      withTable({ partitionBy: 'deal_date' }),
      'shapes[0].table.partitionBy is not a name of a declaration: did you mean partitioned?',
    ],
    [
      withSample({ requested: { ...deals.sample.requested, instrument: [] } }),
      'sample.requested.instrument is not a name of a declaration: did you mean instruments?',
    ],
    [
      withRequest({ spans: [{ value: 'x', form: 0, from: 0, to: 1 }] }),
      'request.spans[0].form is not a name of a declaration: did you mean from?',
    ],
    [
      { ...deals, udiff: { segment: 'FO', exchange: {}, exchanges: { NSE: 'NFO' } } },
      'udiff.exchange is not a name of a declaration: did you mean exchanges?',
    ],
    [
      { ...once, windows: { per: 'once', requests: 5 } },
      "windows.requests is 5: use a function that returns [{ type: 'A' }], or leave it out",
    ],
    [
      { ...once, windows: { per: 'once', requests: () => ({ type: 'A' }) } },
      "windows.requests returns an object: use a function that returns [{ type: 'A' }], or leave it out",
    ],
    [
      {
        ...once,
        windows: {
          per: 'once',
          requests: () => {
            throw new Error('no');
          },
        },
      },
      "windows.requests fails for 2025-03-31 (no): use a function that returns [{ type: 'A' }], or leave it out",
    ],
    [withTable({ key: ['deal_date'] }), "shapes[0].table.key has no exchange: add 'exchange' to it"],
    [
      withTable({ dateColumn: null }),
      'shapes[0].dated is true, but the key has no date: add a date column to it, or set dated to false',
    ],
    [
      withTable({ name: 'Deals' }),
      'shapes[0].table.name is "Deals": use a plural in snake_case, such as bulk_deals',
    ],
    [
      withSample({ requested: { ...deals.sample.requested, from: '2025-02-30' } }),
      'sample.requested.from is "2025-02-30": use a day such as 2025-02-27',
    ],
    [
      withSample({ response: 7 }),
      'sample.response is 7: use a response of the source, { Value: [ … ] } or a list',
    ],
    [
      withSample({ response: { Value: [{ DealDate: '02-27-2025', ClientName: 'A' }] } }),
      'sample.response has a record (the 1.) of no shape: it lacks scripCode; correct shapes[…].has or the sample',
    ],
  ])('%#', (declaration, sentence) => {
    expect(said(declaration, 'error')).toEqual([sentence]);
  });
});

test('names that break the rules are warnings', () => {
  const field = numeric('DelPer', 'delivered_pct', 'Share.', { unit: 'percent' });
  expect(said(withField(field), 'warning').slice(-2)).toEqual([
    'shapes[0].table.fields[10].column is "delivered_pct": instead: _percent at the end (docs/tables.md)',
    'shapes[0].table.fields[10].column is "delivered_pct": it is in percent: _percent at the end (docs/tables.md)',
  ]);
});

test('several problems are several sentences', () => {
  expect(said({}).length).toBeGreaterThan(8);
  expect(checkDeclaration({}).map((one) => one.text)[0]).toMatch(/^name is missing: /);
});

test('a value of any type is given sentences, never an error', () => {
  const trap = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('trap');
      },
    },
  );
  expect(said(trap)).toEqual(['it cannot be read, because a member of it throws (trap): use plain values']);
  expect(
    said({
      ...deals,
      windows: {
        per: 'instrument',
        days: 'none',
        requests: () => {
          throw new Error('no');
        },
      },
    })[0],
  ).toMatch(/^windows.requests fails for 2025-03-31 \(no\)/);
  const members = [...Object.keys(deals)];
  forAll(
    [fc.constantFrom(...members), fc.anything({ withNullPrototype: true })],
    { numRuns: 30 },
    (member, value) => {
      expect(Array.isArray(said({ ...deals, [member]: value }))).toBe(true);
      expect(said(value).length).toBeGreaterThan(0);
    },
  );
  for (const part of ['request', 'windows', 'schedule', 'sample'] as const) {
    forAll(
      [fc.constantFrom(...Object.keys(deals[part])), fc.anything()],
      { numRuns: 10 },
      (member, value) => {
        said({ ...deals, [part]: { ...deals[part], [member]: value } });
      },
    );
  }
});

test('a misspelled option of a table is refused where it is declared', () => {
  const options = { name: 'deals', comment: 'Deals.', key: ['exchange'], fields: [], partitonBy: 'day' };
  expect(() => defineTable(options)).toThrow(
    'deals: defineTable knows no partitonBy, only name, comment, key',
  );
});

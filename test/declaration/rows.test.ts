import { expect, expectTypeOf, test } from 'vitest';
import { date, fromRequest, int4, int8, numeric, text } from '../../src/declaration/fields.ts';
import { defineFileSet } from '../../src/declaration/operation.ts';
import { rowsOf } from '../../src/declaration/rows.ts';
import { defineTable, type RowOf } from '../../src/declaration/table.ts';
import { readResponse } from '../../src/extract/index.ts';
import type { corporateEvents } from '../../src/operations/files/CorporateEvents.ts';
import { bhavcopy } from '../../src/operations/GetBhavCopyCM.ts';
import { operations } from '../../src/operations/registry.ts';
import { raw, requestedOf, SETTINGS } from '../extract/support.ts';

const table = defineTable({
  name: 'things',
  comment: 'Things.',
  key: ['exchange', 'thing_id', 'day'],
  fields: [
    text('ThingId', 'thing_id', 'Its id.', { required: true }),
    date('Day', 'day', 'Its day.', { required: true, orElse: ['Date'] }),
    text('Name', 'name', 'Its name.', { required: true }),
    int4('Year', 'year', 'Its year.'),
    int8('Size', 'size', 'Its size.', { unit: 'shares' }),
    numeric('Price', 'price', 'Its price.'),
    fromRequest('variant', 'text', 'What was requested.', () => 'all'),
  ],
});

/** A row with a value in each column that has one in every row. */
const row: RowOf<typeof table> = {
  exchange: 'NSE',
  thing_id: '1',
  day: '2025-02-28',
  name: 'One',
  year: null,
  size: null,
  price: null,
  variant: 'all',
  source_received_at: null,
  source_saved_at: null,
};

test('a row has the columns and values that the lines of the fields declare', () => {
  expect(Object.keys(row).toSorted()).toEqual(table.fields.map(({ column }) => column).toSorted());
  expectTypeOf(row.name).toEqualTypeOf<string>();
  expectTypeOf(row.year).toEqualTypeOf<number | null>();
  expectTypeOf(row.size).toEqualTypeOf<number | string | null>();
  expectTypeOf<RowOf<typeof bhavcopy>['close_price']>().toEqualTypeOf<number | string | null>();
  expectTypeOf<RowOf<typeof bhavcopy>['trade_date']>().toEqualTypeOf<string>();
  expectTypeOf<RowOf<typeof corporateEvents>['is_special']>().toEqualTypeOf<boolean | null>();
});

test.each(operations.map((operation) => [operation.name, operation] as const))(
  'what is read of the sample of %s has the values that the type of its rows says',
  (_, operation) => {
    const { batches } = readResponse(
      operation,
      requestedOf(operation),
      raw(JSON.stringify(operation.sample.response)),
      {
        ...SETTINGS,
        count: 'accept',
      },
    );
    const types = { boolean: ['boolean'], int2: ['number'], int4: ['number'], int8: ['number', 'string'] };
    expect(batches.length).toBeGreaterThan(0);
    for (const { table: declared, rows } of batches) {
      const { fields, key } = declared;
      for (const values of rows) {
        expect(Object.keys(values).toSorted()).toEqual(fields.map(({ column }) => column).toSorted());
        for (const { column, kind, required } of fields) {
          const isNeverNull = required === true || key.includes(column);
          const allowed = { ...types, numeric: ['number', 'string'], text: ['string'], date: ['string'] };
          expect([...{ ...allowed, datetime: ['string'] }[kind], ...(isNeverNull ? [] : ['null'])]).toContain(
            values[column] === null ? 'null' : typeof values[column],
          );
        }
      }
    }
  },
);

test('rows are typed by the table that they are rows of', () => {
  expect(rowsOf({ table, rows: [row] }, table)).toEqual([row]);
  expect(rowsOf({ table, rows: [row] }, bhavcopy)).toBeNull();
});

test('a column or a source field that is not declared does not compile', () => {
  const { name, comment, key, fields } = table;
  const shape = { table, dated: true, fullSet: 'none' } as const;
  const about = { name: 'Things', summary: 'Things' };
  const mistakes = [
    // @ts-expect-error there is no column of this name.
    () => row.thingid,
    // @ts-expect-error a column has the values of its kind.
    (): RowOf<typeof table> => ({ ...row, year: '2025' }),
    // @ts-expect-error what is required is never null.
    (): RowOf<typeof table> => ({ ...row, name: null }),
    // @ts-expect-error what is in the key is never null.
    (): RowOf<typeof table> => ({ ...row, thing_id: null }),
    // @ts-expect-error the prices of a bhav copy have another name.
    () => rowsOf({ table, rows: [] }, bhavcopy)?.map(({ close }) => close),
    // @ts-expect-error a key is made of columns.
    () => defineTable({ name, comment, fields, key: [...key, 'thing'] }),
    // @ts-expect-error partitions are by a column.
    () => defineTable({ name, comment, fields, key, partitionBy: 'date' }),
    // @ts-expect-error names are in columns.
    () => defineTable({ name, comment, fields, key, names: [{ symbol: 'Name', day: ['day'] }] }),
    // @ts-expect-error a shape is recognized by source fields.
    () => defineFileSet({ ...about, shapes: [{ ...shape, has: ['Id'] }] }),
    // @ts-expect-error the symbol of a shape is in a column of its table.
    () => defineFileSet({ ...about, shapes: [{ ...shape, has: ['Date'], symbolColumn: 'symbol' }] }),
  ];
  expect(mistakes).toHaveLength(10);
});

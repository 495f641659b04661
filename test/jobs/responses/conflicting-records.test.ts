import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Row } from '../../../src/declaration/table.ts';
import type { Extracted } from '../../../src/extract/types.ts';
import { resolveConflicts } from '../../../src/jobs/responses/conflicting-records.ts';
import prices from '../../../src/operations/GetBhavCopyCM.ts';
import { forAll } from '../../support/for-all.ts';

const { shapes } = prices;
const [{ table }] = shapes;
const BLANK = Object.fromEntries(table.fields.map(({ column }) => [column, null]));

const priceRow = (changes: Row): Row => ({
  ...BLANK,
  exchange: 'NSE',
  trade_date: '2025-08-29',
  symbol: 'A',
  series: 'EQ',
  ...changes,
});

const extractedOf = (rows: readonly Row[], rejects: Extracted['rejects'] = []): Extracted => ({
  batches: [{ table, rows: [...rows] }],
  rejects,
  fetched: rows.length + rejects.length,
  warnings: [],
  unknownFields: [],
  doubts: [],
  listsAll: true,
});

const records = fc.array(
  fc.record({
    symbol: fc.constantFrom('A', 'B'),
    close_price: fc.constantFrom(null, '0', '0.00', '7.5', '7.50', '8'),
    traded_quantity: fc.constantFrom(null, 0, 1, 2),
    instrument_full_name: fc.constantFrom(null, '', 'Acme'),
    source_received_at: fc.constantFrom(null, '2025-08-29T12:00:00Z'),
    source_saved_at: fc.constantFrom(null, null, '2025-08-29T11:00:00Z', '2025-08-29T12:00:00Z'),
  }),
  { maxLength: 7 },
);

/** The values of a record that other records of its key may contradict, equal values as equal texts. */
const valuesOf = ({ close_price, traded_quantity, instrument_full_name }: Row) =>
  [Number(close_price), Number(traded_quantity), instrument_full_name ?? ''].map((value, at) =>
    at === 0 && close_price === null ? '' : at === 1 && traded_quantity === null ? '' : `${value}`,
  );
const savedAt = (row: Row) => Date.parse(`${row.source_saved_at}`) || 0;
const isNothing = (value: string | undefined) => value === '' || value === '0';

/** What the merge stores of rows of one key. */
const stored = (rows: readonly Row[]) => rows.toSorted((a, b) => savedAt(a) - savedAt(b)).at(-1);

test('of records of one key the newest, equal ones, and the one with values are loaded; of others none', () => {
  forAll([records], { numRuns: 400 }, (drawn) => {
    const rows = drawn.map((changes) => priceRow(changes));
    const { batches, rejects, warnings } = resolveConflicts(extractedOf(rows), shapes);
    const kept = [...(batches[0]?.rows ?? [])];
    expect(kept.length + rejects.length).toBe(rows.length);
    for (const symbol of ['A', 'B']) {
      const rowsOfSymbol = rows.filter((row) => row.symbol === symbol);
      const loaded = kept.filter((row) => row.symbol === symbol);
      const last = Math.max(...rowsOfSymbol.map(savedAt));
      const newest = rowsOfSymbol.filter((row) => savedAt(row) === last).map(valuesOf);
      const full = newest.find((values) =>
        newest.every((others) => others.every((value, at) => value === values[at] || isNothing(value))),
      );
      if (rowsOfSymbol.length === 0) continue;
      const isWarned = warnings.some((text) => text.includes(`NSE ${symbol} EQ`));
      if (full === undefined) {
        expect(loaded).toEqual([]);
        for (const { position, record, problems } of rejects.filter(
          ({ position }) => rows[position]?.symbol === symbol,
        )) {
          expect(record).toMatchObject({ symbol, closePrice: rows[position]?.close_price ?? null });
          expect(problems.length).toBeGreaterThan(0);
          for (const { message } of problems) {
            const other = Number(/ in record (\d+), of the same key NSE (\w) EQ/.exec(message)?.[1]);
            expect(rows[other]?.symbol).toBe(symbol);
            expect(other).not.toBe(position);
          }
        }
      } else {
        expect(loaded).toHaveLength(rowsOfSymbol.length);
        expect(loaded).toEqual(expect.arrayContaining(rowsOfSymbol));
        // Of zero and blank, neither of which is a value, either may be stored.
        const plain = (values: readonly string[]) => values.map((value) => (isNothing(value) ? '' : value));
        expect(plain(valuesOf(stored(loaded) as Row))).toEqual(plain(full));
        expect(isWarned).toBe(new Set(newest.map(String)).size > 1);
      }
    }
  });
});

test('a contradiction names the values, the records, the key, its day and its instrument, among other rejects', () => {
  const rows = [
    priceRow({ symbol: 'A', close_price: '1377.00' }),
    priceRow({ symbol: 'B', close_price: '5' }),
    priceRow({ symbol: 'A', close_price: '1378.00' }),
  ];
  const other = { position: 1, record: {}, problems: [] };
  const { batches, rejects } = resolveConflicts(extractedOf(rows, [other]), shapes);
  expect(batches[0]?.rows).toEqual([rows[1]]);
  expect(rejects).toEqual([
    other,
    {
      position: 0,
      day: '2025-08-29',
      instrument: 'A',
      record: expect.objectContaining({ symbol: 'A', closePrice: '1377.00' }),
      problems: [
        {
          path: 'closePrice',
          message:
            'is "1377.00", and "1378.00" in record 3, of the same key NSE A EQ 2025-08-29: neither is stored',
        },
      ],
    },
    expect.objectContaining({ position: 3 }),
  ]);
});

test('any number of records of one key is settled in time', () => {
  const many = Array.from({ length: 20_000 }, (_, at) =>
    priceRow({ close_price: `${at % 2 === 0 ? 7 : 8}` }),
  );
  const { batches, rejects } = resolveConflicts(extractedOf(many), shapes);
  expect(batches[0]?.rows).toEqual([]);
  expect(rejects).toHaveLength(many.length);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import { operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { isScanned, requestedOf } from './support.ts';

/** A number as somebody may write it, and mostly zero. */
const spelled = fc
  .record({
    sign: fc.constantFrom('', '', '', '-', '+'),
    whole: fc.constantFrom('0', '0', '0', '', '00', '000', '500325', '7', '0'.repeat(20)),
    fraction: fc.constantFrom('', '', '.', '.0', '.00', '.50', `.${'0'.repeat(10)}`, `.${'0'.repeat(400)}1`),
    power: fc.constantFrom('', '', '', 'e0', 'E5', 'e-400'),
    padding: fc.constantFrom('', '', '', ' ', '  ', '\t'),
  })
  .map(
    ({ sign, whole, fraction, power, padding }) => `${padding}${sign}${whole}${fraction}${power}${padding}`,
  );

const text = fc.oneof(
  { weight: 6, arbitrary: spelled },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', ' ', '-', '0x0', '0b0', '0_0', 'NaN', 'null', '٠', '０', 'A0'),
  },
);

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The record of a sample with some values replaced, in JSON. */
const jsonOf = (record: object, changes: ReadonlyMap<string, string>, isText: boolean): string =>
  `{${Object.entries(record)
    .map(([key, value]) => {
      const change = changes.get(key);
      const token =
        change === undefined || isText || !JSON_NUMBER.test(change)
          ? JSON.stringify(change ?? value)
          : change;
      return `${JSON.stringify(key)}:${token}`;
    })
    .join()}}`;

const cellOf = (value: unknown): string => {
  const cell = value === null || value === undefined ? '' : String(value);
  return /[",]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
};

const csvOf = (record: object, changes: ReadonlyMap<string, string>): string =>
  Object.entries(record)
    .map(([key, value]) => changes.get(key) ?? cellOf(value))
    .join();

function recordOf({ sample }: Operation): Record<string, unknown> | undefined {
  const { response } = sample as { response: unknown };
  const list = Array.isArray(response) ? response : Object.values(response as object).find(Array.isArray);
  const record: unknown = list === undefined ? response : list[0];
  return typeof record === 'object' && record !== null ? (record as Record<string, unknown>) : undefined;
}

test('all operations are read', () => {
  expect(operations.length).toBeGreaterThanOrEqual(14);
});

test.each(operations.map((operation) => [operation.name, operation] as const))(
  'numbers in any spelling are read alike from small and from large responses: %s',
  (_, operation) => {
    const record = recordOf(operation);
    if (record === undefined) return;
    const keys = Object.keys(record);
    const requested = requestedOf(operation, { instruments: [] });
    // What names the instrument most of all, where a code of zero names none.
    const naming = operation.shapes.flatMap(({ namedBy = [] }) =>
      keys.filter((key) => namedBy.includes(key)),
    );
    const some = fc.oneof(
      fc.subarray(keys, { minLength: 1, maxLength: Math.min(3, keys.length) }),
      fc.constant(naming.length === 0 ? keys : naming),
    );
    const changed = fc
      .tuple(some, fc.array(text, { minLength: keys.length, maxLength: keys.length }))
      .map(([changing, texts]) => new Map(changing.map((key, at) => [key, texts[at] as string])));
    forAll(
      [fc.array(changed, { minLength: 1, maxLength: 20 }), fc.boolean()],
      { numRuns: 4 },
      (list, isText) => {
        const json = [new Map<string, string>(), ...list].map((one) => jsonOf(record, one, isText));
        isScanned(operation, requested, Buffer.from(`[${json.join()}]`));
        const csv = [
          keys.map(cellOf).join(),
          csvOf(record, new Map()),
          ...list.map((one) => csvOf(record, one)),
          '',
        ];
        isScanned(operation, requested, Buffer.from(csv.join('\n')));
      },
    );
  },
);

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseListInSlices } from '../../src/extract/json.ts';
import { forAll } from '../support/for-all.ts';

/** What a list is read as in slices of at least so many bytes; null if it has to be parsed as a whole. */
function readInSlices(body: Buffer, sliceBytes: number) {
  const records: unknown[] = [];
  const take = (position: number, record: unknown) => {
    expect(position).toBe(records.length);
    records.push(record);
  };
  const list = parseListInSlices(body, 'value', take, sliceBytes);
  return list === null ? null : { ...list, records, count: list.records };
}

/** A document with the mark of a list instead of its records. */
const marked = (document: unknown, mark: string) => {
  if (Array.isArray(document)) return [mark];
  const entries = Object.entries(document as object);
  return Object.fromEntries(entries.map(([key, value]) => [key, /^value$/i.test(key) ? [mark] : value]));
};

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({ unit: fc.constantFrom('}', ',', '{', ']', '[', '"', '\\', ' ', 'a'), maxLength: 12 }),
);
const value = fc.oneof(
  { weight: 3, arbitrary: text },
  { weight: 2, arbitrary: fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })) },
  { weight: 1, arbitrary: fc.constantFrom(null, true, {}, [], [{}, {}], [{ a: '},{' }, { b: [{}] }]) },
);
const record = fc.dictionary(
  text.filter((name) => name !== '__proto__'),
  value,
  { minKeys: 1, maxKeys: 4 },
);
const records = fc.array(record, { minLength: 1, maxLength: 30 });
const gap = fc.constantFrom('', '', ' ', '\n  ', '\r\n');

describe('a list in slices', () => {
  test('has the records that it has as a whole, wherever slices may end', () => {
    let inSlices = 0;
    forAll(
      [records, gap, fc.constantFrom('list', 'envelope', 'further'), fc.constantFrom(1, 20, 100, 10_000)],
      (list, space, kind, sliceBytes) => {
        const written = list.map((fields) => JSON.stringify(fields));
        const texts = written.join(`${space},${space}`);
        const json = {
          list: `${space}[${space}${texts}${space}]${space}`,
          envelope: `{"Count":${list.length},${space}"Value":[${texts}]}`,
          further: `{"value":[${texts}${space}],"others":[{"a":[]},{"b":"]}"}]}`,
        }[kind];
        const read = readInSlices(Buffer.from(json), sliceBytes);
        if (read === null) return;
        inSlices += 1;
        // JSON has no negative zero.
        expect(read.records).toEqual(written.map((fields) => JSON.parse(fields)));
        expect(read.count).toBe(list.length);
        expect(read.envelope).toEqual(marked(JSON.parse(json), read.mark));
      },
    );
    expect(inSlices).toBeGreaterThan(50);
  });

  test('is none where the document is broken or cut off, and never has other records', () =>
    forAll([records, fc.nat(), fc.constantFrom(1, 20, 100), fc.boolean()], (list, at, sliceBytes, isCut) => {
      const json = `{"Value":${JSON.stringify(list)}}`;
      const place = at % json.length;
      const broken = isCut ? json.slice(0, place) : `${json.slice(0, place)}}{${json.slice(place)}`;
      const body = Buffer.from(broken);
      const read = readInSlices(body, sliceBytes);
      if (read === null) return;
      // Two halves of a character that were torn apart are no UTF-8.
      const whole = JSON.parse(body.toString()) as { readonly Value: unknown[] };
      expect(read.records).toEqual(whole.Value);
    }));

  test('keeps every digit', () => {
    const body = Buffer.from(`[${Array(5).fill('{"a":12345678901234567890.5}').join()}]`);
    const read = readInSlices(body, 1);
    expect(
      read?.records.map((record) => String((record as { readonly a: string }).a).replace(/^.*:/s, '')),
    ).toEqual(Array(5).fill('12345678901234567890.5'));
  });

  test.each([
    '',
    'null',
    '[]',
    '[1,{"a":1}]',
    '{"rows":[{"a":1}]}',
    '{"a":{"b":1},"value":[{"a":1}]}',
    '{"value":"[{"}',
    `${' '.repeat(2_000)}[{"a":1}]`,
    `[{"a":1}]${' '.repeat(2_000)}`,
  ])('is left to the parser: %j', (json) => {
    expect(readInSlices(Buffer.from(json), 1)).toBeNull();
  });
});

import { expect, test } from 'vitest';
import { readResponse } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { raw, readAs, requestedOf, SETTINGS } from './support.ts';

const OPERATION = operationNamed('GetSeriesChange');
const [SAMPLE] = (OPERATION.sample.response as { Value: Record<string, unknown>[] }).Value;

/** The types and counts of fields that nobody declared, in records with these values. */
function observed(...records: readonly Record<string, unknown>[]) {
  const sent = records.map((others) => ({ ...SAMPLE, ...others }));
  const found = readAs(OPERATION.name, { Value: sent }).observed;
  const fields = found?.fields.filter(({ name }) => /^(My|_)/.test(name)) ?? [];
  return {
    records: found?.records,
    fields: fields.map(({ name, type, values, example }) => [name, type, values, example]),
  };
}

test.each([
  [['1.5', ' 007 ', '-2e3'], 'digits', '1.5'],
  [[1, '2'], 'number', '1'],
  [['1', 'A1'], 'text', '1'],
  [[1, 'A1'], 'mixed', '1'],
  [[true, false], 'boolean', 'true'],
  [['true', 'x'], 'text', 'true'],
  [[[1], []], 'list', '[1]'],
  [[{ a: 1 }], 'object', '{"a":1}'],
  [['\u0000'], 'text', '\\u0000'],
  [['x'.repeat(300)], 'text', 'x'.repeat(100)],
  [['02-27-2025'], 'text', '02-27-2025'],
] as const)('values %j are of the type %s', (values, type, example) => {
  const { fields } = observed(...values.map((value) => ({ MyField: value })));
  expect(fields).toEqual([['MyField', type, values.length, example]]);
});

test('null, blanks and hyphens are no values; a field need not be in all records', () => {
  expect(observed({ MyA: null, MyB: '' }, { MyA: ' ', MyC: '-' }, { MyC: 3, __proto__: 1 })).toEqual({
    records: 3,
    fields: [
      ['MyA', null, 0, null],
      ['MyB', null, 0, null],
      ['MyC', 'number', 1, '3'],
    ],
  });
});

test('records that are rejected count, and those that fit nothing; a response without records says nothing', () => {
  const other = readAs(OPERATION.name, { Value: [{ Entirely: 1, Other: 'x' }] });
  expect(other).toMatchObject({ rejects: [{ position: 0 }], observed: { records: 1 } });
  expect(other.observed?.fields.map(({ name }) => name)).toEqual(['Entirely', 'Other']);
  expect(readAs(OPERATION.name, { Value: [] }).observed).toBeUndefined();
});

test('names are observed in all records, values in one of eight; no response brings more than 300 names', () => {
  const records = Array.from({ length: 100 }, (_, at) => ({
    ...SAMPLE,
    MyField: at,
    ...(at === 99 ? { MyLast: 1 } : {}),
  }));
  const found = readAs(OPERATION.name, { Value: records }).observed;
  expect(found?.records).toBe(20);
  expect(found?.fields.find(({ name }) => name === 'MyField')).toMatchObject({ values: 20 });
  expect(found?.fields.find(({ name }) => name === 'MyLast')).toMatchObject({ values: 0, type: null });
  const wide = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`My${at}`, at]));
  expect(readAs(OPERATION.name, { Value: [{ ...SAMPLE, ...wide }] }).observed?.fields).toHaveLength(300);
});

test('the same in JSON, XML and CSV, but for numbers, which are texts there', () => {
  const record = { ...SAMPLE, MyNumber: 1.5, MyText: 'A&B', MyNull: null };
  const entries = Object.entries(record).map(
    ([name, value]) => [name, value === null ? '' : String(value)] as const,
  );
  const xml = entries.map(([name, value]) => `<${name}>${value.replace('&', '&amp;')}</${name}>`).join('');
  const csv = `${entries.map(([name]) => name).join(',')}\n${entries.map(([, value]) => value).join(',')}\n`;
  const read = (body: string) => {
    const found = readResponse(OPERATION, requestedOf(OPERATION), raw(body), SETTINGS).observed;
    return found?.fields
      .filter(({ name }) => name.startsWith('My'))
      .map(({ name, type, values, example }) => ({ name, type, values, example }));
  };
  const inTexts = [
    { name: 'MyNull', type: null, values: 0, example: null },
    { name: 'MyNumber', type: 'digits', values: 1, example: '1.5' },
    { name: 'MyText', type: 'text', values: 1, example: 'A&B' },
  ];
  expect(read(csv)).toEqual(inTexts);
  expect(read(`<ArrayOf><Item>${xml}</Item></ArrayOf>`)).toEqual(inTexts);
  expect(read(JSON.stringify({ Value: [record] }))).toEqual(
    inTexts.map((one) => (one.type === 'digits' ? { ...one, type: 'number' } : one)),
  );
});

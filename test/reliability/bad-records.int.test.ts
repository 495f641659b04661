import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Kind } from '../../src/declaration/fields.ts';
import { defaultOperations } from '../../src/operations/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import type { Database } from '../../src/postgres/database.ts';
import { openStore } from '../load/support.ts';
import { forAllAsync, setsOf } from '../support/for-all.ts';
import {
  bodyOf,
  difference,
  emptyTables,
  type Loaded,
  loadBody,
  rawJson,
  type SourceRecord,
  sampleOf,
  sentFields,
  storedRejects,
} from './hostile-records.ts';

let store: Database;
beforeAll(async () => {
  store = await openStore();
});

const names = defaultOperations.map(({ name }) => name);

/** Values no field of the kind may take, and values it must. */
const REJECTED: Record<Kind, readonly unknown[]> = {
  text: [{ a: 1 }, ['a'], true, 'a\u0000b', '\ud800', 'x'.repeat(200_000)],
  int2: [1.5, 'twelve', 40_000, {}, [1], true, rawJson('1e400')],
  int4: [1.5, 'twelve', 3_000_000_000, {}, [1], true, rawJson('1e400')],
  int8: [1.5, '12abc', 1e308, rawJson('1e400'), rawJson('92233720368547758070'), {}, [1], true, 'NaN'],
  numeric: ['abc', 'NaN', 'Infinity', '1e9999', rawJson('1e400'), {}, [1], true, '9'.repeat(2_000), '1,5'],
  boolean: ['maybe', 2, {}, []],
  date: ['02-30-2025', '2025-02-30', '13-01-2025', 'yesterday', {}, [1], true],
  datetime: ['02-30-2025 21:02:00', '02-27-2025 25:00:00', 'yesterday', {}, [1], true],
};
const TAKEN: Partial<Record<Kind, readonly unknown[]>> = {
  int8: [-5, '-5', ' 7 ', '1.0', rawJson('9007199254740991')],
  numeric: [-1.5, '-0.001', 1e308, rawJson('12345678901234567890.123456789'), '26.858792846497767'],
};

describe.each(names)('%s', (name) => {
  const operation = operationNamed(name);
  const good = sampleOf(operation);

  test('rejects what a field cannot hold, field by field, with its name; the others load', async () => {
    const [needless, needed] = [true, false].map((meaningless) =>
      sentFields(operation)
        // A value that is computed does without what cannot be read: a corporate action gets an id of its own.
        .filter(({ field }) => field.compute === undefined && (field.meaningless === true) === meaningless)
        .flatMap(({ key, field }) => REJECTED[field.kind].map((value) => ({ key, value }))),
    );
    const cases = needed ?? [];
    await emptyTables(store, operation);
    // What cannot be read in a field that means nothing is no reason to reject a record.
    const others = (needless ?? []).map(({ key, value }) => ({ ...good, [key]: value }));
    const records = [good, ...cases.map(({ key, value }) => ({ ...good, [key]: value })), good, ...others];
    const { windowId, extracted, counts } = await loadBody(store, operation, bodyOf(records));
    expect(counts).toMatchObject({ fetched: records.length, rejected: cases.length });
    const rejects = await storedRejects(store, windowId);
    expect(rejects.map(({ position }) => position)).toEqual(cases.map((_, at) => at + 1));
    for (const [at, { problems }] of rejects.entries()) {
      const { key } = cases[at] ?? { key: '' };
      expect(problems.map(({ path }) => path)).toContain(key);
      expect(problems.every(({ message }) => message.length > 5)).toBe(true);
    }
    await expectStored({ windowId, extracted, counts });
  });

  test('takes negative quantities, huge numbers and every digit', async () => {
    const cases = sentFields(operation).flatMap(({ key, field }) =>
      (TAKEN[field.kind] ?? []).map((value) => ({ ...good, [key]: value })),
    );
    await emptyTables(store, operation);
    const loaded = await loadBody(store, operation, bodyOf([good, ...cases]));
    const digits = loaded.extracted.rejects.filter(({ problems }) =>
      problems.every(({ message }) => !message.includes('more digits than can be read')),
    );
    expect(digits).toEqual([]);
    await expectStored(loaded);
  });
});

/** What is in market is what was accepted, all of it and nothing else; what was rejected is in etl.rejects. */
async function expectStored({ windowId, extracted, counts }: Loaded): Promise<void> {
  const accepted = extracted.batches.reduce((sum, { rows }) => sum + rows.length, 0);
  expect(counts?.fetched).toBe(accepted + extracted.rejects.length);
  for (const { table, rows } of extracted.batches) {
    expect(await difference(store, table, rows), table.name).toEqual({ strangers: 0, lost: 0 });
  }
  const rejects = await storedRejects(store, windowId);
  // A record that the response holds twice is one reject.
  const records = extracted.rejects.map(({ record }) => JSON.stringify(record));
  const first = extracted.rejects.filter((_, at) => records.indexOf(records[at] ?? '') === at);
  expect(rejects.map(({ position }) => position)).toEqual(first.map(({ position }) => position));
  expect(rejects.every(({ problems }) => problems.length > 0)).toBe(true);
}

const nasty = fc.oneof(
  fc.jsonValue({ depthSize: 'small' }),
  fc.string({ unit: 'binary' }),
  fc.double(),
  fc.bigInt().map((whole) => rawJson(String(whole))),
  fc.constantFrom<unknown>(
    null,
    '',
    ' ',
    0,
    -0,
    -1,
    true,
    [],
    {},
    [[]],
    { a: { b: {} } },
    1e308,
    -1e308,
    5e-324,
    rawJson('1e400'),
    rawJson('-1e400'),
    rawJson('0.1e-999'),
    '02-30-2025',
    '01-01-0001',
    '12-31-9999',
    '02-29-2025 00:00:00',
    '0000-00-00',
    'x'.repeat(150_000),
    '\u0000',
    'a\u0001\u001f\u007fb',
    '\ud800',
    '\udfff\ud800',
    '\u202e',
    "'; drop table market.bhavcopy_cm; --",
    '\\N',
    '\\.',
    '\t\n\r\\',
    '$1',
    '{}',
    '%s',
    rawJson(`${'['.repeat(20_000)}${']'.repeat(20_000)}`),
    rawJson(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`),
  ),
);

type Mutation = (record: SourceRecord) => unknown;
const keyOf = (record: SourceRecord, pick: number) =>
  Object.keys(record)[pick % Object.keys(record).length] ?? '';

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(fc.nat(), nasty).map(([pick, value]) => (record: SourceRecord) => ({
      ...record,
      [keyOf(record, pick)]: value,
    })),
  },
  fc
    .nat()
    .map(
      (pick) => (record: SourceRecord) =>
        Object.fromEntries(Object.entries(record).filter(([key]) => key !== keyOf(record, pick))),
    ),
  fc.tuple(fc.string(), nasty).map(([name, value]) => (record: SourceRecord) => ({
    ...record,
    [name]: value,
  })),
  // The same name again, in other letters.
  fc.tuple(fc.nat(), nasty).map(([pick, value]) => (record: SourceRecord) => ({
    ...record,
    [keyOf(record, pick).toUpperCase()]: value,
  })),
  // The very same name twice: JSON lets the last one count.
  fc.tuple(fc.nat(), fc.nat()).map(([pick, number]) => (record: SourceRecord) => {
    const key = keyOf(record, pick);
    return rawJson(`{${JSON.stringify(key)}:${number},${JSON.stringify(record).slice(1)}`);
  }),
  nasty.map((value) => () => value),
  fc.constant((record: SourceRecord) => ({ nested: record })),
  fc.constant((record: SourceRecord) => [record]),
);

test('mutated responses of any operation: stored or rejected, never half, and good neighbours load', async () => {
  let accepted = 0;
  let rejected = 0;
  await forAllAsync(
    [fc.constantFrom(...names), fc.array(mutation, { minLength: 1, maxLength: 6 })],
    { seed: 20_251_121, numRuns: 30 },
    async (name, changes) => {
      const operation = operationNamed(name);
      const good = sampleOf(operation);
      const bad = changes.map((change) => change(good));
      await emptyTables(store, operation);
      const loaded = await loadBody(store, operation, bodyOf([good, ...bad, good]));
      const { extracted, counts } = loaded;
      expect(counts?.fetched).toBe(bad.length + 2);
      const rejectedAt = extracted.rejects.map(({ position }) => position);
      expect(rejectedAt).not.toContain(0);
      expect(rejectedAt).not.toContain(bad.length + 1);
      await expectStored(loaded);
      rejected += rejectedAt.length;
      accepted += extracted.fetched - rejectedAt.length;
    },
  );
  // The mutations are worth their name: both ways out are taken often.
  expect(accepted).toBeGreaterThan(3 * setsOf(30));
  expect(rejected).toBeGreaterThan(setsOf(30));
});

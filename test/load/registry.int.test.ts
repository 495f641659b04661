import { beforeAll, describe, expect, test } from 'vitest';
import type { Operation, Shape } from '../../src/declaration/operation.ts';
import { operations } from '../../src/operations/registry.ts';
import type { Database } from '../../src/postgres/database.ts';
import {
  expectedRow,
  makeRecord,
  offlineSource,
  recordsOf,
  shapeOf,
  storedRows,
  widenedRequest,
} from '../support/expected.ts';
import { load, openStore } from './support.ts';

const shapes = operations.flatMap((operation) =>
  operation.shapes.map((shape) => [operation.name, shape.table.name, operation, shape] as const),
);

describe('from the source to the table and back', () => {
  const source = offlineSource();
  let store: Database;
  beforeAll(async () => {
    store = await openStore();
  });

  async function roundTrip(operation: Operation, shape: Shape, response: unknown) {
    const request = widenedRequest(operation);
    const body = Buffer.from(JSON.stringify(response));
    const read = source.read(operation, request, { body, contentType: 'text/plain', bytes: body.length });
    expect(read).toMatchObject({ rejects: [], warnings: [], unknownFields: [] });
    await store.pool.query(`truncate market.${shape.table.name}, market_history.${shape.table.name}`);
    const counts = await load(store, { batches: read.batches });
    const records = recordsOf(response);
    expect(counts).toMatchObject({ fetched: records.length, inserted: records.length });
    const memory = new Map<string, number>();
    const expected = records.map((record) => expectedRow(shape, request, record, memory));
    const rows = await storedRows(store, shape.table);
    expect(rows).toHaveLength(expected.length);
    expect(rows).toEqual(expect.arrayContaining(expected));
    expect(await load(store, { batches: read.batches })).toMatchObject({
      fetched: records.length,
      unchanged: records.length,
      inserted: 0,
      updated: 0,
    });
  }

  test.each(operations.map((operation) => [operation.name, operation] as const))(
    'the sample of %s comes back complete',
    async (_name, operation) => {
      await roundTrip(operation, shapeOf(operation, operation.sample.response), operation.sample.response);
    },
  );

  test.each(shapes)('%s: a full record comes back from %s', async (_operation, _table, operation, shape) => {
    await roundTrip(operation, shape, { Value: [makeRecord(shape)] });
  });
});

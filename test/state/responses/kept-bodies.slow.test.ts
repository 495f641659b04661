import { createHook } from 'node:async_hooks';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { transaction } from '../../../src/postgres/transaction.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { buildFact } from '../../../src/state/responses/response-facts.ts';
import {
  keepResponse,
  packBody,
  pruneBodies,
  readKeptResponse,
} from '../../../src/state/responses/responses.ts';
import { testDatabase } from '../../support/database.ts';

const DAY_MS = 86_400_000;
const NOW = Date.parse('2025-09-12T16:00:00Z');

async function openStore(): Promise<{ db: Database; windowId: number }> {
  const db = openDatabase({ url: (await testDatabase()).url, connections: 8 });
  const result = await db.pool.query<{ id: number }>(
    `with run as (insert into etl.runs (kind, requested_by, request, from_date, to_date)
       values ('backfill', 'test', '{}', '2025-09-12', '2025-09-12') returning id)
     insert into etl.windows (run_id, operation, exchange, from_date, to_date, state)
     select id, 'GetBhavCopyCM', 'NSE', '2025-09-12', '2025-09-12', 'running' from run returning id::int`,
  );
  return { db, windowId: result.rows[0]?.id ?? 0 };
}

/** It said nothing. */
const NOTHING = buildFact(
  { coverage: [], outcome: { state: 'loaded' }, doubts: [] },
  { to: '2025-09-12', instruments: [] },
);

async function keep(db: Database, windowId: number, text: string, daysAgo: number): Promise<void> {
  const packed = await packBody(db.drizzle, Buffer.from(text));
  const fetchedAt = new Date(NOW - daysAgo * DAY_MS);
  const position = await takePosition(db.drizzle);
  await transaction(db, (tx) =>
    keepResponse(tx, windowId, {
      ...{ packed, contentType: 'text/plain', calledOn: '2025-09-12', fetchedAt, position },
      fact: NOTHING,
    }),
  );
}

test('a response comes back as it was; the same body again is one small row', async () => {
  const { db, windowId } = await openStore();
  const text = JSON.stringify({
    Value: Array.from({ length: 5_000 }, (_, position) => ({ position, name: '₹ M&M' })),
  });
  await keep(db, windowId, text, 0);
  const stored = async () => (await db.pool.query('select xmin::text, ctid from etl.response_bodies')).rows;
  const before = await stored();
  await keep(db, windowId, text, 0);
  // The very same tuple: neither written again nor moved.
  expect(await stored()).toEqual(before);
  const counts = await db.pool.query(
    'select (select count(*)::int from etl.responses) as responses, count(*)::int as bodies from etl.response_bodies',
  );
  expect(counts.rows).toEqual([{ responses: 2, bodies: 1 }]);
  const ids = await db.pool.query<{ id: number }>('select id::int from etl.responses');
  for (const { id } of ids.rows) expect((await readKeptResponse(db.drizzle, id))?.body.toString()).toBe(text);
  expect(await readKeptResponse(db.drizzle, 0)).toBeNull();
  await db.close();
});

/** Counts the compressions and decompressions that begin in this test. */
function countZlib(): () => number {
  let begun = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === 'ZLIB') begun += 1;
    },
  }).enable();
  onTestFinished(() => void hook.disable());
  return () => begun;
}

test('a body that is kept is not compressed again, unless it was deleted meanwhile', async () => {
  const { db, windowId } = await openStore();
  const text = 'a record of the response\n'.repeat(10_000);
  const compressions = countZlib();
  await keep(db, windowId, text, 40);
  expect(compressions()).toBe(1);
  await keep(db, windowId, text, 40);
  expect(compressions()).toBe(1);
  const packed = await packBody(db.drizzle, Buffer.from(text));
  expect(compressions()).toBe(1);
  await db.pool.query('update etl.responses set hash = null');
  expect(await pruneBodies(db, true)).toMatchObject({ bodies: 1 });
  expect(await pruneBodies(db, false)).toMatchObject({ bodies: 1 });
  expect(await pruneBodies(db, false)).toEqual({ bodies: 0, bytes: 0 });
  const response = {
    packed,
    contentType: null,
    calledOn: '2025-09-12',
    fetchedAt: new Date(NOW),
    position: await takePosition(db.drizzle),
    fact: NOTHING,
  };
  await transaction(db, (tx) => keepResponse(tx, windowId, response));
  expect(compressions()).toBe(2);
  const { rows } = await db.pool.query<{ id: number }>('select id::int from etl.responses order by id');
  expect(rows).toHaveLength(3);
  expect((await readKeptResponse(db.drizzle, rows.at(-1)?.id ?? 0))?.body.toString()).toBe(text);
  await db.close();
});

test('a body that was compressed with gzip is read too; of an unknown encoding none is', async () => {
  const { db, windowId } = await openStore();
  await keep(db, windowId, 'once', 0);
  const { rows } = await db.pool.query<{ id: number }>('select id::int from etl.responses');
  const id = rows[0]?.id ?? 0;
  await db.pool.query("update etl.response_bodies set encoding = 'gzip', body = $1", [gzipSync('once')]);
  expect((await readKeptResponse(db.drizzle, id))?.body.toString()).toBe('once');
  await db.pool.query("update etl.response_bodies set encoding = 'zstd'");
  await expect(readKeptResponse(db.drizzle, id)).rejects.toThrow('the unknown encoding zstd');
  await db.close();
});

import { createHook } from 'node:async_hooks';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import { planReplay } from '../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../src/jobs/replay/work-replay.ts';
import { type Database, openDatabase } from '../../src/load/database/database.ts';
import { transaction } from '../../src/load/database/transaction.ts';
import { takePosition } from '../../src/load/state/position-sql.ts';
import { factOf } from '../../src/load/state/responses/response-facts.ts';
import {
  keepResponse,
  packBody,
  prunable,
  prune,
  readKeptResponse,
} from '../../src/load/state/responses/responses.ts';
import { reportRun } from '../../src/load/state/runs/reports.ts';
import { testDatabase } from '../support/database.ts';
import { openStore as openContext } from './import-support.ts';
import { ask, fetched, records, replay, rowsOf, type SourceRecord } from './replay-support.ts';

const DAY_MS = 86_400_000;
const NOW = Date.parse('2025-09-12T16:00:00Z');

async function openStore(): Promise<{ db: Database; windowId: number }> {
  const db = openDatabase({ url: (await testDatabase()).url, connections: 8 });
  const made = await db.pool.query<{ id: number }>(
    `with run as (insert into etl.runs (kind, requested_by, request, from_date, to_date)
       values ('backfill', 'test', '{}', '2025-09-12', '2025-09-12') returning id)
     insert into etl.windows (run_id, operation, exchange, from_date, to_date, state)
     select id, 'GetBhavCopyCM', 'NSE', '2025-09-12', '2025-09-12', 'running' from run returning id::int`,
  );
  return { db, windowId: made.rows[0]?.id ?? 0 };
}

/** It said nothing. */
const NOTHING = factOf({ coverage: [] }, { to: '2025-09-12', instruments: [] });

async function keep(db: Database, windowId: number, text: string, daysAgo: number): Promise<void> {
  const packed = await packBody(db.drizzle, Buffer.from(text));
  const fetchedAt = new Date(NOW - daysAgo * DAY_MS);
  const position = await takePosition(db.drizzle);
  await transaction(db, (tx) =>
    keepResponse(tx, windowId, {
      ...{ packed, contentType: 'text/plain', calledOn: '2025-09-12', fetchedAt, position },
      fact: NOTHING,
      resolvesRejects: true,
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

test('a body that is kept is not compressed again, unless it was pruned meanwhile', async () => {
  const { db, windowId } = await openStore();
  const text = 'a record of the response\n'.repeat(10_000);
  const compressions = countZlib();
  await keep(db, windowId, text, 40);
  expect(compressions()).toBe(1);
  await keep(db, windowId, text, 40);
  expect(compressions()).toBe(1);
  const packed = await packBody(db.drizzle, Buffer.from(text));
  expect(compressions()).toBe(1);
  expect((await prune(db, new Date(NOW))).bodies).toBe(1);
  const response = {
    packed,
    contentType: null,
    calledOn: '2025-09-12',
    fetchedAt: new Date(NOW),
    position: await takePosition(db.drizzle),
    fact: NOTHING,
    resolvesRejects: true,
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

test('pruning takes old responses, and bodies only when no response points to them', async () => {
  const { db, windowId } = await openStore();
  await keep(db, windowId, 'old only', 40);
  await keep(db, windowId, 'old and new', 40);
  await keep(db, windowId, 'old and new', 1);
  await keep(db, windowId, 'new only', 1);
  const before = new Date(NOW - 30 * DAY_MS);
  const foreseen = await prunable(db.drizzle, before);
  expect(foreseen).toMatchObject({ responses: 2, bodies: 1 });
  expect(await prune(db, before)).toEqual(foreseen);
  expect(await prune(db, before)).toEqual({ responses: 0, bodies: 0, bytes: 0 });
  expect((await db.pool.query('select from etl.response_bodies')).rowCount).toBe(2);
  await db.close();
});

test('bodies that are kept again while others prune are never lost, and nothing fails', async () => {
  const { db, windowId } = await openStore();
  const texts = Array.from({ length: 12 }, (_, position) => `body ${position}`);
  for (let round = 0; round < 8; round++) {
    await Promise.all([
      ...texts.map((text) => keep(db, windowId, text, 40)),
      prune(db, new Date(NOW - 30 * DAY_MS)),
      prune(db, new Date(NOW - 30 * DAY_MS)),
    ]);
  }
  await Promise.all([...texts.map((text) => keep(db, windowId, text, 0)), prune(db, new Date(NOW - DAY_MS))]);
  await prune(db, new Date(NOW - DAY_MS));
  const left = await db.pool.query('select from etl.responses join etl.response_bodies using (hash)');
  expect(left.rowCount).toBe(texts.length);
  expect((await db.pool.query('select from etl.response_bodies')).rowCount).toBe(texts.length);
  await db.close();
});

test('a late first load of an old response does not move back how far responses are pruned', async () => {
  const context = await openContext();
  const pruned = async () =>
    (await context.db.pool.query('select position::text, state::int from etl.pruned')).rows;
  const before = new Date(Date.UTC(2025, 7, 29, 16, 3, 30));
  const send = (minute: number) => fetched(minute, records(0, 20, { ClosePrice: minute }))(context);
  for (const minute of [1, 3]) await send(minute);
  await prune(context.db, before);
  const noted = await pruned();
  expect(noted).toMatchObject([{ state: 2 }]);
  for (const minute of [4, 2]) await send(minute);
  await prune(context.db, before);
  expect(await pruned()).toEqual(noted);
  // Neither is a rebuild refused, nor does what comes later lack what was pruned.
  const closes = async () =>
    (
      await context.db.pool.query(
        'select close_price::int as close, count(*)::int as rows from market.bhavcopy_cm group by 1',
      )
    ).rows;
  for (const minute of [4, 6]) {
    if (minute === 6) for (const one of [5, 6]) await send(one);
    expect(await replay(context, {}, { rebuild: true })).toMatchObject({ state: 'completed' });
    expect(await closes()).toEqual([{ close: minute, rows: 20 }]);
  }
});

test('a replay ends well while responses are pruned, also those of which nothing was loaded', async () => {
  const context = await openContext();
  const send = (minute: number, purpose: SourceRecord) =>
    ask(context, {
      operation: 'GetCorporateActionsCategories',
      from: '2025-08-29',
      sent: [purpose],
      calledAt: Date.UTC(2025, 7, 29, 16, minute),
      microseconds: 1,
    });
  for (let round = 0; round < 6; round += 1) {
    for (let minute = 0; minute < 8; minute += 1) await send(10 * round + minute, { Unknown: minute });
    await send(10 * round + 9, { CorporateActiontype: `Dividend ${round}`, PurposeCode: 'DP' });
    const runId = await planReplay(context, {}, { rebuild: round % 2 === 0 });
    const [report] = await Promise.all([
      workReplay(context, runId ?? 0, new AbortController().signal).then(() =>
        reportRun(context, runId ?? 0),
      ),
      prune(context.db, new Date()),
      prune(context.db, new Date()),
    ]);
    expect(report).toMatchObject({ state: 'completed', failures: [] });
  }
  const stored = await context.db.pool.query(
    'select count(*)::int as rows from market.corporate_action_categories',
  );
  expect(stored.rows).toEqual([{ rows: 1 }]);
});

describe('a rebuild', () => {
  const loaded = async () => {
    const context = await openContext();
    for (const minute of [1, 2, 3]) {
      await fetched(minute, records(0, 20 + minute, { ClosePrice: minute }))(context);
    }
    return context;
  };
  const work = async (context: Context, runId: number | null) => {
    await workReplay(context, runId ?? 0, new AbortController().signal);
    return reportRun(context, runId ?? 0);
  };

  const contents = async (context: Context) => [
    await rowsOf(context, 'market'),
    await rowsOf(context, 'market_history'),
  ];

  test('loses nothing where responses are pruned before it comes to them', async () => {
    const context = await loaded();
    const before = await contents(context);
    const runId = await planReplay(context, {}, { rebuild: true });
    expect(await prune(context.db, new Date())).toMatchObject({ responses: 3, bodies: 3 });
    expect(await work(context, runId)).toMatchObject({ state: 'completed' });
    expect(await contents(context)).toEqual(before);
  });

  test('changes nothing where a response is gone all the same', async () => {
    const context = await loaded();
    const before = await contents(context);
    const runId = await planReplay(context, {}, { rebuild: true });
    await context.db.pool.query('delete from etl.responses where id = (select max(id) from etl.responses)');
    expect(await work(context, runId)).toMatchObject({
      state: 'failed',
      failures: [
        {
          error: expect.stringMatching(
            /the response of load 3 is neither kept nor pruned: .* rows of GetBhavCopyCM, Deliveries NSE follow/,
          ),
        },
      ],
    });
    expect(await contents(context)).toEqual(before);
  });

  test('changes nothing where the response that withdrew rows is gone, and neither does a replay', async () => {
    const context = await loaded();
    await fetched(4, records(1, 23, { ClosePrice: 3 }))(context);
    const before = await rowsOf(context, 'market');
    await context.db.pool.query('delete from etl.responses where id = (select max(id) from etl.responses)');
    for (const rebuild of [true, false]) {
      expect(await replay(context, {}, { rebuild })).toMatchObject({
        state: 'failed',
        failures: [{ error: expect.stringContaining('the response of load 4 is neither kept nor pruned') }],
      });
    }
    expect(await rowsOf(context, 'market')).toEqual(before);
  });
});

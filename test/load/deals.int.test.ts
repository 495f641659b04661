import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../src/load/database/database.ts';
import { migrateDatabase } from '../../src/load/database/migrate.ts';
import { DEFAULT_VIEW_SETTINGS } from '../../src/load/state/coverage/completeness.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { randomFrom } from '../support/chaos/random.ts';
import { offlineSource } from './expected.ts';
import { emptyCopy, follow } from './follower.ts';
import { load, openStore } from './support.ts';

// Deals have no number: equal lines are deals of their own, and a later answer replaces its day.

const DAY = '2025-02-27';
const ANSWERS = 40;

interface Deal {
  readonly client: string;
  readonly quantity: number;
  readonly price: number;
}

let store: Database;
beforeAll(async () => {
  store = await openStore();
  const change = { names: ['GetBulkDeals'], to: 'enabled', by: 'test' } as const;
  await migrateDatabase(store, DEFAULT_VIEW_SETTINGS, change);
});

const lineOf = ({ client, quantity, price }: Deal) => `${client} ${quantity} ${price}`;

/** Loads an answer that lists these deals, and is later than all before. */
async function loadAnswer(deals: readonly Deal[], fetchedAt: Date) {
  const operation = operationNamed('GetBulkDeals');
  const [{ table }] = operation.shapes;
  const Value = deals.map(({ client, quantity, price }) => ({
    DealDate: '02-27-2025',
    ScripCode: 544072,
    ScripId: 'AIKPIPES',
    ClientName: client,
    DealType: 'B',
    Qty: quantity,
    QtyPct: 0.7,
    Price: price,
  }));
  const asked = { exchange: 'BSE', from: DAY, to: DAY, instruments: [], params: {}, calledOn: DAY };
  const body = Buffer.from(JSON.stringify({ Value }));
  const read = offlineSource().read(operation, asked, {
    body,
    contentType: 'text/plain',
    bytes: body.length,
  });
  expect(read.rejects).toEqual([]);
  const fullSets = [{ table, exchange: 'BSE', days: { from: DAY, to: DAY }, mayBeEmpty: false }];
  return load(store, { batches: read.batches, fullSets, exchange: 'BSE', fetchedAt });
}

const linesOf = async (relation: string) =>
  (
    await store.pool.query<{ line: string }>(
      `select concat_ws(' ', client_name, traded_quantity, trim_scale(deal_price)) as line from ${relation} order by 1`,
    )
  ).rows.map(({ line }) => line);

test('after each answer the day has its deals, equal ones as often as they are listed, and every past state is shown', async () => {
  const random = randomFrom(3);
  const pick = (below: number) => Math.floor(random() * below);
  const deal = (): Deal => ({
    client: `CLIENT ${pick(3)}`,
    quantity: 100 + pick(2),
    price: 81 + pick(2) / 2,
  });
  let deals = Array.from({ length: 8 }, deal);
  let fetched = Date.parse('2025-02-27T16:00:00Z');
  const seen: { readonly state: number; readonly lines: readonly string[] }[] = [];
  const [{ table }] = operationNamed('GetBulkDeals').shapes;
  const asked = { table: table.name, key: table.key, exchange: 'BSE' };
  const copy = emptyCopy();
  for (let at = 0; at < ANSWERS; at += 1) {
    // One or two lines are corrected, one is added or gone, and the order is another.
    deals = deals.map((one) => (pick(6) === 0 ? deal() : one)).sort(() => random() - 0.5);
    if (pick(4) === 0) deals.push(deal());
    if (pick(4) === 0 && deals.length > 7) deals.pop();
    await loadAnswer(deals, new Date(fetched));
    fetched += 60_000;
    const lines = deals.map(lineOf).sort();
    expect(await linesOf('market.bulk_deals')).toEqual(lines);
    // A copy that follows by changes alone has them, too.
    expect(await follow(store.pool, asked, copy)).toEqual([]);
    expect(copy.rows.size).toBe(lines.length);
    const { rows } = await store.pool.query<{ state: number }>('select market.state()::int as state');
    seen.push({ state: rows[0]?.state ?? 0, lines });
  }
  for (const { state, lines } of seen) expect(await linesOf(`market.bulk_deals_at(${state})`)).toEqual(lines);
  // The same answer in another order changes nothing.
  const again = await loadAnswer([...deals].reverse(), new Date(fetched));
  expect(again).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0, unchanged: deals.length });
});

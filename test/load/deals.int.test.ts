import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import type { Database } from '../../src/load/database/database.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { openStore } from '../jobs/import-support.ts';
import { enable, inCatalogue } from '../support/catalogue.ts';
import { randomFrom } from '../support/chaos/random.ts';
import { forAllAsync } from '../support/for-all.ts';
import { positionOf } from '../support/position.ts';
import { loadResponse as loadByPosition } from './as-worker.ts';
import { truncateSql } from './commute-support.ts';
import { offlineSource } from './expected.ts';
import { emptyCopy, follow } from './follower.ts';
import { load, newRun } from './support.ts';

// Deals have no number: equal lines are deals of their own, and a later response replaces its day.

const DAY = '2025-02-27';
const SECURITY = 'AIKPIPES';
const RESPONSES = 40;

interface Deal {
  readonly client: string;
  readonly quantity: number;
  readonly price: number;
}

let context: Context;
let store: Database;
beforeAll(async () => {
  context = await openStore();
  store = context.db;
  await enable(store, [inCatalogue('GetBulkDeals')]);
});

const lineOf = ({ client, quantity, price }: Deal) => `${client} ${quantity} ${price}`;

/** The response that lists these deals of a day. */
const bodyOf = (deals: readonly Deal[], day = DAY) =>
  Buffer.from(
    JSON.stringify({
      Value: deals.map(({ client, quantity, price }) => ({
        DealDate: `${day.slice(5)}-2025`,
        ScripCode: 544072,
        ScripId: SECURITY,
        ClientName: client,
        DealType: 'B',
        Qty: quantity,
        QtyPct: 0.7,
        Price: price,
      })),
    }),
  );

/** Loads a response that lists these deals, and is later than all before. */
async function loadResponse(deals: readonly Deal[], fetchedAt: Date) {
  const operation = operationNamed('GetBulkDeals');
  const [{ table }] = operation.shapes;
  const requested = { exchange: 'BSE', from: DAY, to: DAY, instruments: [], params: {}, calledOn: DAY };
  const body = bodyOf(deals);
  const read = offlineSource().read(operation, requested, {
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

test('after each response the day has its deals, equal ones as often as they are listed, and every past state is shown', async () => {
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
  const requested = { table: table.name, key: table.key, exchange: 'BSE' };
  const copy = emptyCopy();
  for (let at = 0; at < RESPONSES; at += 1) {
    // One or two lines are corrected, one is added or gone, and the order is another.
    deals = deals.map((one) => (pick(6) === 0 ? deal() : one)).sort(() => random() - 0.5);
    if (pick(4) === 0) deals.push(deal());
    if (pick(4) === 0 && deals.length > 7) deals.pop();
    await loadResponse(deals, new Date(fetched));
    fetched += 60_000;
    const lines = deals.map(lineOf).sort();
    expect(await linesOf('market.bulk_deals')).toEqual(lines);
    // A copy that follows by changes alone has them, too.
    expect(await follow(store.pool, requested, copy)).toEqual([]);
    expect(copy.rows.size).toBe(lines.length);
    const { rows } = await store.pool.query<{ state: number }>('select market.state()::int as state');
    seen.push({ state: rows[0]?.state ?? 0, lines });
  }
  for (const { state, lines } of seen)
    expect(await linesOf(`market_history.bulk_deals_at(${state})`)).toEqual(lines);
  // The same response in another order changes nothing.
  const again = await loadResponse([...deals].reverse(), new Date(fetched));
  expect(again).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0, unchanged: deals.length });
});

const drawnDeal = fc.record({
  client: fc.constantFrom('CLIENT 0', 'CLIENT 1'),
  quantity: fc.constantFrom(100, 101),
  price: fc.constant(81.5),
});

/** So few that no withdrawal is withheld: at most five rows of a day are gone at once. */
const drawnResponses = fc.array(
  fc.record({
    day: fc.constantFrom('2025-02-26', DAY),
    deals: fc.array(drawnDeal, { minLength: 1, maxLength: 3 }),
    extra: drawnDeal,
    order: fc.nat(1_000),
  }),
  { minLength: 6, maxLength: 6 },
);

/** How often a line is listed. */
function countsOf(deals: readonly Deal[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of deals.map(lineOf)) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

test('responses that come late: whatever the order, a day has what the last of them by position listed', async () => {
  const operation = operationNamed('GetBulkDeals');
  const runId = await newRun(store);
  await forAllAsync([drawnResponses], { numRuns: 2, seed: 20_250_829, endOnFailure: true }, async (drawn) => {
    await store.pool.query(truncateSql(['bulk_deals']));
    const responses = drawn.map(({ day, deals, extra, order }, at) => {
      // Two are about one security, and list a deal of it: what the others list stays.
      const isFull = at !== 2 && at !== 4;
      const listed = isFull ? deals : [extra];
      const calledAt = Date.parse('2025-02-27T16:00:00Z') + at * 60_000;
      return { day, listed, isFull, calledAt, position: positionOf(calledAt, at), order };
    });
    const expected = new Map<string, Map<string, number>>();
    for (const { day, listed, isFull } of responses) {
      const counts = new Map(isFull ? [] : expected.get(day));
      for (const [line, count] of countsOf(listed)) counts.set(line, Math.max(count, counts.get(line) ?? 0));
      expected.set(day, counts);
    }
    for (const { day, listed, isFull, calledAt, position } of responses.sort((a, b) => a.order - b.order)) {
      await loadByPosition(context, runId, {
        operation,
        exchange: 'BSE',
        from: day,
        to: day,
        instruments: isFull ? [] : [SECURITY],
        params: {},
        variant: '',
        filtered: false,
        position,
        calledAt,
        body: bodyOf(listed, day),
      });
    }
    const lines = [...expected].flatMap(([day, counts]) =>
      [...counts].flatMap(([line, count]) =>
        Array.from({ length: count }, (_, position) => `${day} ${line} ${position + 1}`),
      ),
    );
    const { rows } = await store.pool.query<{ line: string }>(
      `select concat_ws(' ', deal_date, client_name, traded_quantity, trim_scale(deal_price), ordinal) as line from market.bulk_deals`,
    );
    expect(rows.map(({ line }) => line).sort()).toEqual(lines.sort());
  });
}, 3_600_000);

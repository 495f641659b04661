import { beforeAll, expect, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import { dataSetNamed } from '../../src/operations/registry.ts';
import { randomFrom } from '../support/chaos/random.ts';
import { emptyCopy, follow } from '../support/follower.ts';
import { importInto, newFile, openStore } from '../support/import-support.ts';

// Deals have no number: equal lines of a list are deals of their own. A list may be of some securities only, so that what
// a later one lacks stays.

const LISTS = 25;

interface Deal {
  readonly client: string;
  readonly quantity: number;
  readonly price: number;
}

let context: Context;
beforeAll(async () => {
  context = await openStore();
});

const lineOf = ({ client, quantity, price }: Deal) => `${client} ${quantity} ${price}`;

let files = 0;

/** Imports a list of a day with these deals, which is later than all before. */
async function importList(deals: readonly Deal[]) {
  files += 1;
  const file = newFile(`bulk-${files}.csv`, [
    'Date,Symbol,Security Name,Client Name,Buy/Sell,Quantity Traded,Trade Price / Wght. Avg. Price,Remarks',
    ...deals.map(
      ({ client, quantity, price }) =>
        `27-FEB-2025,AIKPIPES,Aik Pipes,${client},BUY,"${quantity}",${price},-`,
    ),
  ]);
  const report = await importInto(context, [file], { force: true });
  expect(report).toMatchObject({ state: 'completed', rejected: 0 });
  return report;
}

const linesOf = async (relation: string) =>
  (
    await context.db.pool.query<{ line: string }>(
      `select concat_ws(' ', client_name, traded_quantity, trim_scale(deal_price)) as line from ${relation} order by 1`,
    )
  ).rows.map(({ line }) => line);

/** How often each line is listed. */
function countsOf(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

test('after each list the day has its deals, equal ones as often as one list has them, and every past state is shown', async () => {
  const random = randomFrom(3);
  const pick = (below: number) => Math.floor(random() * below);
  const deal = (): Deal => ({
    client: `CLIENT ${pick(3)}`,
    quantity: 100 + pick(2),
    price: 81 + pick(2) / 2,
  });
  let deals = Array.from({ length: 8 }, deal);
  const maxCounts = new Map<string, number>();
  const states: { readonly state: number; readonly lines: readonly string[] }[] = [];
  const [{ table }] = dataSetNamed('GetBulkDeals').shapes;
  const followed = { table: table.name, key: table.key, exchange: 'NSE' };
  const copy = emptyCopy();
  for (let at = 0; at < LISTS; at += 1) {
    // One or two lines are corrected, one is added or gone, and the order is another.
    deals = deals.map((known) => (pick(6) === 0 ? deal() : known)).sort(() => random() - 0.5);
    if (pick(4) === 0) deals.push(deal());
    if (pick(4) === 0 && deals.length > 7) deals.pop();
    await importList(deals);
    for (const [line, count] of countsOf(deals.map(lineOf)))
      maxCounts.set(line, Math.max(count, maxCounts.get(line) ?? 0));
    const lines = [...maxCounts].flatMap(([line, count]) => Array<string>(count).fill(line)).sort();
    expect(await linesOf('market.bulk_deals')).toEqual(lines);
    // A copy that follows by changes alone has them, too.
    expect(await follow(context.db.pool, followed, copy)).toEqual([]);
    expect(copy.rows.size).toBe(lines.length);
    const { rows } = await context.db.pool.query<{ state: number }>('select market.state()::int as state');
    states.push({ state: rows[0]?.state ?? 0, lines });
  }
  for (const { state, lines } of states)
    expect(await linesOf(`market_history.bulk_deals_at(${state})`)).toEqual(lines);
  // The same list in another order changes nothing.
  expect(await importList([...deals].reverse())).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0 });
});

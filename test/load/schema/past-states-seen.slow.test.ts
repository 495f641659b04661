import { expect, test } from 'vitest';
import type { Row } from '../../../src/declaration/table.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { randomFrom } from '../../support/chaos/random.ts';
import { bhavcopy, bhavRow, load, loadBhav, openPool, openStore } from '../support.ts';

const DAYS = ['2025-08-28', '2025-08-29'];
const WRITERS = 4;
const LOADS = 60;
const categories = operationNamed('GetCorporateActionsCategories').shapes.flatMap(({ table }) =>
  table.name === 'corporate_action_categories' ? [table] : [],
)[0];
if (categories === undefined) throw new Error('no operation declares the table of categories');

/** What a query sees: the number of its state, and all rows of two tables, in one snapshot. */
const SEEN = (bhav: string, category: string) => `
  select md5(concat(
    (select string_agg(t::text, '|' order by t::text) from ${bhav} t),
    (select string_agg(t::text, '|' order by t::text) from ${category} t))) as rows`;

test('thousands of states that were seen while loads were under way are shown again, to the row', async () => {
  const store = await openStore();
  const writers = Array.from({ length: WRITERS }, () => openPool(store.url, 2));
  // No two are fetched in one millisecond: responses without a body to the same requests would then be one response.
  let fetched = Date.now();
  // One that comes after a later one is refused, because no response is kept to fold it with.
  let refused = 0;
  const unlessLate = (error: Error) => {
    if (!error.message.includes('is not kept')) throw error;
    refused += 1;
  };
  const write = async (at: number) => {
    const random = randomFrom(7 + at);
    const pick = (below: number) => Math.floor(random() * below);
    const writer = writers[at] ?? store;
    for (let done = 0; done < LOADS; done += 1) {
      if (pick(4) === 0) {
        const rows = Array.from(
          { length: 8 },
          (_, code): Row => ({
            exchange: 'BSE',
            purpose_code: `P${code}`,
            corporate_action_type: String(pick(3)),
            source_received_at: null,
            source_saved_at: null,
          }),
        ).filter(() => pick(6) > 0);
        const fullSets = [{ table: categories, exchange: 'BSE', days: null, mayBeEmpty: false }];
        const batches = [{ table: categories, rows }];
        const response = { batches, fullSets, exchange: 'BSE', fetchedAt: new Date(fetched++) };
        await load(writer, response).catch(unlessLate);
        continue;
      }
      const day = DAYS[pick(DAYS.length)] as string;
      const rows = Array.from({ length: 30 }, (_, code) =>
        bhavRow({ symbol: `S${code}`, trade_date: day, close_price: String(pick(3)) }),
      ).filter(() => pick(12) > 0);
      const fullSets = [
        { table: bhavcopy, exchange: 'NSE', days: { from: day, to: day }, mayBeEmpty: false },
      ];
      await loadBhav(writer, rows, { fullSets, fetchedAt: new Date(fetched++) }).catch(unlessLate);
    }
  };
  let writing = true;
  const samples: { readonly state: number; readonly rows: string; readonly at: string }[] = [];
  const sample = async () => {
    const reader = openPool(store.url, 1);
    while (writing || samples.length < 2_000) {
      const result = await reader.pool.query(
        `select market.state()::int as state, clock_timestamp()::text as at, s.rows
           from (${SEEN('market.bhavcopy_cm', 'market.corporate_action_categories')}) s`,
      );
      samples.push(result.rows[0]);
    }
  };
  const sampling = Promise.all([sample(), sample()]);
  await Promise.all(writers.map((_, at) => write(at)));
  writing = false;
  await sampling;

  const states = new Map<number, string>();
  for (const state of new Set(samples.map((sample) => sample.state))) {
    const result = await store.pool.query(
      SEEN(
        `market_history.bhavcopy_cm_at(${state})`,
        `market_history.corporate_action_categories_at(${state})`,
      ),
    );
    states.set(state, result.rows[0].rows);
  }
  const deviations = samples.filter(({ state, rows }) => states.get(state) !== rows);
  console.log(`${samples.length} samples of ${states.size} states, ${deviations.length} deviations`);
  expect(samples.length).toBeGreaterThanOrEqual(2_000);
  expect(states.size).toBeGreaterThan(50);
  expect(deviations).toEqual([]);

  const numbers = await store.pool.query(
    'select count(*)::int as loads, min(state)::int as first, max(state)::int as last from etl.loads',
  );
  const loads = WRITERS * LOADS - refused;
  expect(numbers.rows).toEqual([{ loads, first: 1, last: loads }]);
  expect(refused).toBeLessThan((WRITERS * LOADS) / 2);
  const order = await store.pool.query(
    `select count(*)::int as backwards from etl.loads a join etl.loads b on b.state = a.state + 1
      where b.committed_at < a.committed_at`,
  );
  expect(order.rows).toEqual([{ backwards: 0 }]);
  // As of a moment: the last state that was committed by then.
  const asOf = await store.pool.query(
    `select l.state::int as state from etl.loads l where market.state(l.committed_at) <> (
       select max(m.state) from etl.loads m where m.committed_at <= l.committed_at)`,
  );
  expect(asOf.rows).toEqual([]);
});

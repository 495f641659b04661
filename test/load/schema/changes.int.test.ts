import { beforeAll, describe, expect, test } from 'vitest';
import type { Row, TableDefinition } from '../../../src/declaration/table.ts';
import { operationNamed, tables } from '../../../src/operations/registry.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { randomFrom } from '../../support/chaos/random.ts';
import { bhavcopy, bhavRow, load, loadBhav, openStore } from '../support.ts';

const DAYS = ['2024-12-30', '2025-08-28', '2025-08-29'];
const LOADS = 40;
const PAIRS = 50;
const categories = operationNamed('GetCorporateActionsCategories').shapes.find(
  ({ table }) => table.name === 'corporate_action_categories',
)?.table as TableDefinition;

type Values = Readonly<Record<string, unknown>>;

interface Change {
  readonly change: string;
  readonly now: Values;
  readonly old: Values | null;
}

let store: Database;
let newest: number;

beforeAll(async () => {
  store = await openStore();
  const random = randomFrom(11);
  const pick = (below: number) => Math.floor(random() * below);
  let fetched = Date.now();
  for (let done = 0; done < LOADS; done += 1) {
    const fetchedAt = new Date(fetched++);
    if (pick(3) === 0) {
      const rows = Array.from(
        { length: 6 },
        (_, code): Row => ({
          exchange: 'BSE',
          purpose_code: `P${code}`,
          corporate_action_type: String(pick(2)),
          source_received_at: null,
          source_saved_at: null,
        }),
      ).filter(() => pick(5) > 0);
      const fullSets = [{ table: categories, exchange: 'BSE', days: null, mayBeEmpty: false }];
      await load(store, { batches: [{ table: categories, rows }], fullSets, exchange: 'BSE', fetchedAt });
      continue;
    }
    const day = DAYS[pick(DAYS.length)] as string;
    const rows = Array.from({ length: 12 }, (_, code) =>
      bhavRow({ symbol: `S${code}`, trade_date: day, close_price: String(pick(3)) }),
    ).filter(() => pick(8) > 0);
    const fullSets = [{ table: bhavcopy, exchange: 'NSE', days: { from: day, to: day }, mayBeEmpty: false }];
    await loadBhav(store, rows, { fullSets, fetchedAt });
  }
  const { rows } = await store.pool.query<{ state: string }>('select market.state() as state');
  newest = Number(rows[0]?.state);
});

const rowsAt = async ({ name, key }: TableDefinition, state: number) => {
  const { rows } = await store.pool.query<{ row: Values }>(
    `select to_jsonb(t) as row from market_history.${name}_at($1) t`,
    [state],
  );
  return new Map(rows.map(({ row }) => [key.map((column) => row[column]).join('|'), row]));
};

/** The columns of `then` that are others in `now`. */
const differing = (then: Values, now: Values): Values =>
  Object.fromEntries(Object.entries(then).filter(([column, value]) => value !== now[column]));

async function changesBetween({ name, key }: TableDefinition, from: number, to: number) {
  const { rows } = await store.pool.query<{ change: string; row: Values; old: Values | null }>(
    `select c.change, to_jsonb(c) - 'change' - 'old' as row, c.old from market_history.${name}_changes($1, $2) c`,
    [from, to],
  );
  const changes = new Map<string, Change>();
  for (const { change, row, old } of rows) {
    const id = key.map((column) => row[column]).join('|');
    expect(changes.has(id), `${id} twice`).toBe(false);
    changes.set(id, { change, now: row, old });
  }
  return changes;
}

describe('what has changed between two states', () => {
  test.each([
    ['bhavcopy_cm', bhavcopy],
    ['corporate_action_categories', categories],
  ])('%s: the rows in which the tables of both differ', async (_, table) => {
    const random = randomFrom(5);
    const kinds = new Set<string>();
    // Every state in turn, and pairs of any distance.
    const pairs = Array.from({ length: PAIRS }, (_unused, at) => {
      if (at < newest) return [at, at + 1] as const;
      const from = Math.floor(random() * (newest + 1));
      return [from, from + Math.floor(random() * (newest + 1 - from))] as const;
    });
    const everListed: Set<string>[] = [];
    for (let state = 0; state <= newest; state += 1) {
      everListed.push(new Set([...(everListed.at(-1) ?? []), ...(await rowsAt(table, state)).keys()]));
    }
    for (const [from, to] of pairs) {
      const [before, after] = [await rowsAt(table, from), await rowsAt(table, to)];
      const changes = await changesBetween(table, from, to);
      const expected = new Set<string>();
      for (const [id, now] of after) {
        const then = before.get(id);
        if (then !== undefined && Object.keys(differing(then, now)).length === 0) continue;
        expected.add(id);
        const change =
          then !== undefined ? 'update' : everListed[from]?.has(id) === true ? 'relist' : 'insert';
        kinds.add(change);
        expect(changes.get(id)).toEqual({
          change,
          now,
          old: then === undefined ? null : differing(then, now),
        });
      }
      for (const [id, then] of before) {
        if (after.has(id)) continue;
        expected.add(id);
        kinds.add('withdraw');
        const change = changes.get(id);
        expect(change?.change).toBe('withdraw');
        // Its last values: those of its last revision in history.
        expect(change?.old).toEqual(differing(then, change?.now ?? {}));
      }
      expect([...changes.keys()].sort()).toEqual([...expected].sort());
    }
    expect([...kinds].sort()).toEqual(['insert', 'relist', 'update', 'withdraw']);
  });

  test('states that are reversed or do not exist are errors that say so', async () => {
    const read = (from: number, to: number) =>
      store.pool.query('select * from market_history.bhavcopy_cm_changes($1, $2)', [from, to]);
    await expect(read(3, 2)).rejects.toThrow('state 3 is after state 2');
    await expect(read(0, newest + 1)).rejects.toThrow(`there is no state ${newest + 1}`);
    await expect(read(-1, newest)).rejects.toThrow('there is no state -1');
    for (const states of [
      `null, ${newest}`,
      '1, null',
      'null, null',
      "null, null) where symbol = 'none' and (true",
    ]) {
      const query = store.pool.query(`select * from market_history.bhavcopy_cm_changes(${states})`);
      await expect(query).rejects.toThrow('there is no state null');
    }
    expect((await read(newest, newest)).rows).toEqual([]);
  });

  test('every table has the function, with a comment', async () => {
    const { rows } = await store.pool.query<{ name: string; comment: string | null }>(
      `select proname as name, obj_description(oid, 'pg_proc') as comment from pg_proc
        where pronamespace = 'market_history'::regnamespace and proname like '%\\_changes' and pronargs = 2`,
    );
    expect(rows.map(({ name }) => name).sort()).toEqual(tables.map(({ name }) => `${name}_changes`).sort());
    expect(rows.every(({ comment }) => comment?.includes('insert, update, withdraw or relist'))).toBe(true);
  });

  test('is inlined: conditions of the query reach the tables', async () => {
    const { rows } = await store.pool.query<{ 'QUERY PLAN': string }>(
      `explain select * from market_history.bhavcopy_cm_changes(${newest - 1}, ${newest}) where symbol = 'S1'`,
    );
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).not.toContain('Function Scan on bhavcopy_cm_changes');
    expect(plan).toMatch(/Cond: .*symbol = 'S1'/);
  });
});

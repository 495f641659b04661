import { expect, test } from 'vitest';
import type { TableDefinition } from '../../../src/declaration/table.ts';
import type { Context } from '../../../src/jobs/context.ts';
import { verifyRows } from '../../../src/jobs/replay/verify-rows.ts';
import { quote } from '../../../src/load/merge/merge-sql.ts';
import { tables } from '../../../src/operations/registry.ts';
import { randomFrom } from '../../support/chaos/random.ts';
import { runCli, runJson } from '../../support/cli.ts';
import { filledCopy } from '../../support/filled-database.ts';
import { setsOf } from '../../support/for-all.ts';
import { openStore } from '../../support/import-support.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { all, fetched, fixReading, records, replay } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const NEVER = new AbortController().signal;
const ignore = () => undefined;
const verify = (context: Context, filter: Parameters<typeof verifyRows>[1] = {}, signal = NEVER) =>
  verifyRows(context, filter, signal, ignore);

/** Tables with rows that responses have. */
async function filledTables({ db }: Context): Promise<TableDefinition[]> {
  const filled: TableDefinition[] = [];
  for (const table of tables) {
    if (table.name === 'corporate_events') continue;
    const { rowCount } = await db.pool.query(`select from market.${quote(table.name)} limit 1`);
    if (rowCount === 1) filled.push(table);
  }
  return filled;
}

const keyText = ({ key }: TableDefinition, row = 't') =>
  key.map((column) => `'${column}', ${row}.${quote(column)}::text`).join(', ');

/** How many rows were copied: each copy has a key of its own, because the history knows those of earlier ones. */
let copies = 0;

/**
 * Changes a row by hand at random, none twice: a value, all of it, or a copy of it with another key.
 *
 * @param taken the rows that were changed already, as table and key.
 * @returns null if all rows of the table are changed.
 */
async function changeByHand(
  { db }: Context,
  table: TableDefinition,
  random: () => number,
  taken: Set<string>,
): Promise<{ readonly problem: string; readonly name: string } | null> {
  const target = `market.${quote(table.name)}`;
  const name = (key: unknown) => `${table.name} ${JSON.stringify(key)}`;
  const { rows: all } = await db.pool.query<{ key: unknown; id: string }>(
    `select jsonb_build_object(${keyText(table)}) as key, (tableoid, ctid)::text as id from ${target} t order by 1`,
  );
  const free = all.filter(({ key }) => !taken.has(name(key)));
  const chosen = free[Math.floor(random() * free.length)];
  if (chosen === undefined) return null;
  taken.add(name(chosen.key));
  const isIt = `(t.tableoid, t.ctid)::text = '${chosen.id}'`;
  const returning = `returning jsonb_build_object(${keyText(table)}) as key`;
  const texts = table.fields.filter(({ column, kind }) => kind === 'text' && !table.key.includes(column));
  const change = Math.floor(random() * 3);
  const column = texts[Math.floor(random() * texts.length)]?.column;
  if (change === 0 && column !== undefined) {
    const { rows } = await db.pool.query(
      `update ${target} t set ${quote(column)} = coalesce(${quote(column)}, '') || 'x' where ${isIt} ${returning}`,
    );
    return { problem: 'differs', name: name(rows[0].key) };
  }
  // A copy needs a part of the key that may be any text.
  const other = table.key.find((name) =>
    table.fields.some((field) => field.column === name && field.kind === 'text' && name !== 'exchange'),
  );
  if (change === 1 || other === undefined) {
    const { rows } = await db.pool.query(`delete from ${target} t where ${isIt} ${returning}`);
    return { problem: 'missing', name: name(rows[0].key) };
  }
  copies += 1;
  const names = table.fields.map((field) => quote(field.column));
  const values = table.fields.map((field) =>
    field.column === other ? `${quote(field.column)} || '~${copies}'` : quote(field.column),
  );
  const audit = ['first_loaded_at', 'last_changed_at', 'revision', 'run_id', 'load_id'];
  const { rows } = await db.pool.query(
    `insert into ${target} as t (${[...names, ...audit].join(', ')})
     select ${[...values, ...audit].join(', ')} from ${target} t where ${isIt} ${returning}`,
  );
  taken.add(name(rows[0].key));
  return { problem: 'unexpected', name: name(rows[0].key) };
}

test.runIf(isSlowLayer)(
  'finds each change of a row by hand, of any table, and a replay takes it back',
  async () => {
    const context = await openStore((await filledCopy()).url);
    const filled = await filledTables(context);
    expect(filled.length).toBeGreaterThan(2);
    expect(await verify(context)).toMatchObject({
      isEqual: true,
      differing: 0,
      differences: [],
      continueFrom: null,
    });
    const random = randomFrom(7);
    let unexpected = 0;
    for (let left = setsOf(10); left > 0; left -= 50) {
      const expected = new Map<string, unknown>();
      const taken = new Set<string>();
      while (expected.size < Math.min(left, 50)) {
        const table = filled[Math.floor(random() * filled.length)] as TableDefinition;
        const change = await changeByHand(context, table, random, taken);
        if (change !== null) expected.set(change.name, change.problem);
      }
      const { differing, differences } = await verify(context);
      const listed = differences.map(({ table, key, problem }) => [
        `${table} ${JSON.stringify(key)}`,
        problem,
      ]);
      expect(new Map(listed as [string, unknown][])).toEqual(expected);
      expect(differing).toBe(expected.size);
      expect(differences.every(({ loadId }) => loadId > 0)).toBe(true);
      unexpected += [...expected.values()].filter((problem) => problem === 'unexpected').length;
      expect(await replay(context, {})).toMatchObject({ state: 'completed' });
      for (const table of filled)
        await context.db.pool.query(
          `delete from market.${quote(table.name)} t where concat_ws('', ${table.key.map(quote).join(', ')}) like '%~%'`,
        );
      expect(await verify(context)).toMatchObject({ isEqual: true });
    }
    expect(unexpected).toBeGreaterThan(0);
  },
  600_000,
);

test('names what differs as a person reads it, ends with 1, and continues where it was interrupted', async () => {
  const context = await openStore();
  const days = ['2021-08-20', '2025-08-29'];
  for (const day of days) {
    const [year = '', month = '', date = ''] = day.split('-');
    await fetched(1, records(0, 20, { TradDt: `${month}-${date}-${year}` }))(context, { day });
  }
  const { pool } = context.db;
  await pool.query(
    "update market.bhavcopy_cm set close_price = 1 where symbol = 'S003' and trade_date = '2025-08-29'",
  );
  await pool.query("delete from market.bhavcopy_cm where symbol = 'S004' and trade_date = '2025-08-29'");
  await pool
    .query(
      `insert into market.bhavcopy_cm select (jsonb_populate_record(t, '{"trade_date": "2024-08-29"}')).* from market.bhavcopy_cm t
      where symbol = 'S005' and trade_date = '2025-08-29'`,
    )
    .catch(async () => {
      await pool.query("select etl.ensure_year_partition('bhavcopy_cm', 2024)");
      await pool.query(
        `insert into market.bhavcopy_cm select (jsonb_populate_record(t, '{"trade_date": "2024-08-29"}')).* from market.bhavcopy_cm t
        where symbol = 'S005' and trade_date = '2025-08-29'`,
      );
    });
  const options = { env: { DATABASE_URL: context.config.DATABASE_URL ?? '' }, cwd: temporaryFolder() };
  const printed = await runCli(['verify'], options);
  expect(printed.code).toBe(1);
  const text = printed.stdout.replace(/\s+/g, ' ');
  expect(text).toContain('market.bhavcopy_cm: NSE S003 EQ 2025-08-29');
  expect(text).toMatch(/S003 .*has other values than the kept responses \(load \d+\)/);
  expect(text).toMatch(/S004 .*is missing \(load \d+\)/);
  expect(text).toMatch(/S005 .*is in no kept response, or was withdrawn by one \(load \d+\)/);
  expect(text).toContain('2 of 2 parts verified: 3 rows differ');
  expect(text).toContain('eod replay writes what the kept responses say');
  const old = await runJson<unknown>(['verify', 'GetBhavCopyCM', '--to', '2021-12-31'], options);
  expect(old).toMatchObject({ code: 0, json: { isEqual: true, parts: 1, of: 1, differences: [] } });

  const stopping = new AbortController();
  const first = await verifyRows(context, {}, stopping.signal, () => stopping.abort());
  expect(first).toMatchObject({ isEqual: null, parts: 1, of: 2, continueFrom: '2025-08-29' });
  const rest = await verify(context, { from: first.continueFrom ?? '' });
  expect(rest).toMatchObject({ isEqual: false, parts: 1, differing: 2, continueFrom: null });
});

test.runIf(isSlowLayer)('finds nothing while loads, late ones and replays go on beside it', async () => {
  const context = await openStore();
  await fetched(1, records(0, 40))(context);
  let working = true;
  const load = async () => {
    for (let minute = 2; minute < 22; minute += 2) {
      await fetched(minute + 1, records(minute % 4, 40, { ClosePrice: minute }))(context);
      await fetched(minute, records(0, 41, { ClosePrice: 3 }))(context);
    }
    await replay(context, {});
    working = false;
  };
  const loading = load();
  let times = 0;
  for (; working; times += 1) expect(await verify(context)).toMatchObject({ differing: 0 });
  await loading;
  expect(times).toBeGreaterThan(3);
  expect(await verify(context)).toMatchObject({ isEqual: true });
});

test('after a change of the code that reads responses it lists what a replay changes', async () => {
  const context = await openStore();
  await fetched(1, records(0, 20))(context);
  await fixReading(context, (sent) => {
    for (const record of sent.slice(0, 2)) record.ClosePrice = 7;
  });
  expect(await verify(context)).toMatchObject({ isEqual: false, differing: 2 });
  await replay(context, {});
  expect(await verify(context)).toMatchObject({ isEqual: true });
  expect(await all(context, 'select from market_history.bhavcopy_cm')).toHaveLength(2);
});

test('counts all rows of a day about which no response is kept, and lists the first hundred', async () => {
  const context = await openStore();
  await fetched(1, records(0, 1))(context);
  await context.db.pool.query("select etl.ensure_year_partition('bhavcopy_cm', 2024)");
  await context.db.pool.query(
    `insert into market.bhavcopy_cm
     select (jsonb_populate_record(t, jsonb_build_object('trade_date', '2024-08-29', 'symbol', 'X' || n))).*
       from market.bhavcopy_cm t, generate_series(1, 150) n`,
  );
  const verified = await verify(context);
  expect(verified).toMatchObject({ isEqual: false, differing: 150 });
  expect(verified.differences).toHaveLength(100);
});

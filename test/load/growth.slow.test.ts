import { execFile } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import type * as extractModule from '../../src/extract/index.ts';
import type { Source } from '../../src/extract/types.ts';
import type { Database } from '../../src/load/database/database.ts';
import { compareVersions } from '../../src/load/market/differences.ts';
import { columnComment } from '../../src/load/market/schema/comments-and-functions.ts';
import type * as migrateModule from '../../src/load/migrate.ts';
import { versionAt } from '../../src/load/state/loads/versions.ts';
import type { Operation } from '../../src/operations/operation.ts';
import type * as registryModule from '../../src/operations/registry.ts';
import { operations, tables } from '../../src/operations/registry.ts';
import type { Row, TableDefinition } from '../../src/operations/table.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { madeUp, offlineSource, requested, type SourceRecord } from './expected.ts';
import { load, openPool, openStore } from './support.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The line that is added to the fields of every table. */
const FIELD = `    text('addedLater', 'added_later', 'A field added later.'),\n`;

/** The file of one more operation. */
const OPERATION = `import { date, int8, text } from './fields.ts';
import { defineOperation } from './operation.ts';
import { defineTable } from './table.ts';

const table = defineTable({
  name: 'new_data_set',
  comment: 'A data set added later.',
  key: ['exchange', 'trade_date', 'symbol'],
  fields: [
    date('date', 'trade_date', 'Trading day.', { required: true }),
    text('symbol', 'symbol', 'Ticker symbol.', { required: true }),
    int8('quantity', 'quantity', 'Quantity.', { unit: 'shares' }),
  ],
});

export default defineOperation({
  name: 'GetNewDataSet',
  summary: 'A data set added later',
  exchanges: ['NSE'],
  request: { dates: 'day', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['symbol', 'quantity'], dated: true, fullSet: 'days' }],
  windows: { per: 'session' },
  schedule: { at: '21:50', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
  sample: {
    requested: { exchange: 'NSE', from: '2025-07-03', to: '2025-07-03', instruments: [], params: {} },
    response: { Value: [{ Date: '07-03-2025', Symbol: 'TCS', Quantity: 1200 }] },
  },
});
`;

/** A copy of the project in which every table has one field more, and one operation more is declared. */
let grown: {
  readonly migration: string;
  readonly migrateDatabase: typeof migrateModule.migrateDatabase;
  readonly operations: readonly Operation[];
  readonly tables: typeof registryModule.tables;
  readonly source: Source;
};

beforeAll(async () => {
  const copy = temporaryFolder();
  for (const name of ['src', 'migrations', 'drizzle.config.ts', 'package.json', 'tsconfig.json']) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const folder = join(copy, 'src/operations');
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue;
    const code = readFileSync(join(folder, name), 'utf8');
    const lists = code.replaceAll('  fields: [\n', `  fields: [\n${FIELD}`);
    // The fields of the daily files are in a list of their own.
    const grownLists = lists.replace(
      /(FIELDS: readonly \(.*\[\] = \[\n)/,
      `$1[null, ${FIELD.trim().replace(/,$/, '')}],`,
    );
    writeFileSync(join(folder, name), grownLists);
  }
  writeFileSync(join(folder, 'GetNewDataSet.ts'), OPERATION);

  const before = readdirSync(join(copy, 'migrations'));
  const kit = join(ROOT, 'node_modules/drizzle-kit/bin.cjs');
  await promisify(execFile)(process.execPath, [kit, 'generate'], { cwd: copy, timeout: 60_000 });
  const generated = readdirSync(join(copy, 'migrations')).filter((name) => !before.includes(name));
  expect(generated).toHaveLength(1);

  const inCopy = (path: string) => import(pathToFileURL(join(copy, path)).href);
  const registry: typeof registryModule = await inCopy('src/operations/registry.ts');
  const { migrateDatabase }: typeof migrateModule = await inCopy('src/load/migrate.ts');
  const migration = readFileSync(join(copy, 'migrations', generated[0] as string), 'utf8');
  const { createSource }: typeof extractModule = await inCopy('src/extract/index.ts');
  grown = {
    migration,
    migrateDatabase,
    operations: registry.operations,
    tables: registry.tables,
    source: offlineSource(createSource),
  };
});

/** One record of each shape of an operation, read from a response that has `also` among its fields. */
function batchesOf(source: Source, operation: Operation, also: SourceRecord = {}) {
  return operation.shapes.flatMap((shape) => {
    const body = Buffer.from(JSON.stringify({ Value: [{ ...madeUp(shape), ...also }] }));
    const request = requested(operation);
    const read = source.read(operation, request, { body, contentType: 'text/plain', bytes: body.length });
    expect(read).toMatchObject({ fetched: 1, rejects: [], unknownFields: [] });
    return read.batches;
  });
}

/** The fields that `changeRow` changes; a table of which every field is in the key has none. */
const changeable = ({ key, fields }: TableDefinition) =>
  fields.filter(({ kind, column }) => !key.includes(column) && ['text', 'int8', 'numeric'].includes(kind));

/** Gives another value to every column of a row that is not in the key. */
function changeRow(table: TableDefinition, row: Row): Row {
  const changes = changeable(table).map(
    ({ kind, column }) => [column, kind === 'text' ? 'changed' : 5] as const,
  );
  return { ...row, ...Object.fromEntries(changes) };
}

async function contentsOf({ pool }: Database, relation: string): Promise<Record<string, unknown>[]> {
  const found = await pool.query<{ row: Record<string, unknown> }>(
    `select to_jsonb(t) as row from ${relation} t order by to_jsonb(t)::text`,
  );
  return found.rows.map(({ row }) => row);
}

async function now({ pool }: Database): Promise<string> {
  const found = await pool.query<{ now: string }>('select clock_timestamp()::text as now');
  return found.rows[0]?.now ?? '';
}

/** The same rows with one column more, in whatever order. */
const withAdded = (rows: readonly Record<string, unknown>[]) =>
  expect.arrayContaining(rows.map((row) => ({ ...row, added_later: null })));

describe('a field added to every table, and one more operation', () => {
  let store: Database;
  /** What the tables held before the migration, and when. */
  let between: string;
  const before = new Map<string, Record<string, unknown>[]>();
  const relations = tables.flatMap(({ name }) => [`market.${name}`, `market_history.${name}`]);

  beforeAll(async () => {
    store = await openStore();
    for (const operation of operations) {
      for (const { table, rows } of batchesOf(offlineSource(), operation)) {
        await load(store, { batches: [{ table, rows }] });
        await load(store, { batches: [{ table, rows: Array.from(rows, (row) => changeRow(table, row)) }] });
      }
    }
    between = await now(store);
    for (const relation of relations) before.set(relation, await contentsOf(store, relation));
    for (const { name } of tables) {
      const asOf = `market_history.${name}_as_of('${between}')`;
      before.set(asOf, await contentsOf(store, asOf));
    }
    await grown.migrateDatabase(store);
    // A process of the new version has connections of its own.
    store = openPool(store.url);
  });

  test('are a line and a file: the generated migration only adds', () => {
    const statements = grown.migration.split('--> statement-breakpoint').map((one) => one.trim());
    const added = statements.filter((one) => /^ALTER TABLE \S+ ADD COLUMN "added_later" text;$/.test(one));
    const created = statements.filter((one) => /^CREATE TABLE "market(_history)?"\."new_data_set"/.test(one));
    expect(added).toHaveLength(2 * tables.length);
    expect(created).toHaveLength(2);
    const indexes = statements.filter((one) => /^CREATE INDEX "new_data_set_history_/.test(one));
    expect(indexes).toHaveLength(2);
    expect(statements).toHaveLength(added.length + created.length + indexes.length);
  });

  test('leave every row, revision and as-of response as it was, the new column null', async () => {
    for (const [relation, rows] of before) {
      const after = await contentsOf(store, relation);
      expect(after, relation).toHaveLength(rows.length);
      expect(after, relation).toEqual(withAdded(rows));
    }
    const filled = new Set(operations.flatMap(({ shapes }) => shapes.map(({ table }) => table)));
    const isFilled = (relation: string) =>
      [...filled].some(
        (table) =>
          new RegExp(`\\.${table.name}(_as_of.*)?$`).test(relation) &&
          (!relation.startsWith('market_history.') || changeable(table).length > 0),
      );
    expect([...before].filter(([relation, rows]) => rows.length === 0 && isFilled(relation))).toEqual([]);
  });

  test('have their comments on the table and on the history', async () => {
    const found = await store.pool.query<{ comment: string | null }>(
      `select col_description(attrelid, attnum) as comment from pg_attribute
        where attname = 'added_later' and attrelid::regclass::text ~ '^market(_history)?[.]'`,
    );
    const field = grown.tables[0]?.fields.find(({ column }) => column === 'added_later');
    const comment = field === undefined ? '' : columnComment(field);
    expect(found.rows).toEqual(Array.from({ length: 2 * tables.length }, () => ({ comment })));
    const table = await store.pool.query(
      "select obj_description('market.new_data_set'::regclass, 'pg_class') as comment",
    );
    expect(table.rows).toEqual([{ comment: 'A data set added later.' }]);
  });

  test('load, keep history and can be requested as of any moment', async () => {
    for (const operation of grown.operations) {
      const column = operation.name === 'GetNewDataSet' ? 'quantity' : 'added_later';
      const field = column === 'quantity' ? 'quantity' : 'addedLater';
      // The registry of this process does not know the new one, so that its loads are of another.
      const isKnown = operation.name !== 'GetNewDataSet';
      const of = isKnown ? { operation: operation.name } : {};
      const first = batchesOf(grown.source, operation, { [field]: 100 });
      await load(store, { ...of, batches: first });
      const then = await now(store);
      const second = batchesOf(grown.source, operation, { [field]: 200 });
      const rows = second.length;
      const again = { ...of, batches: second };
      expect(await load(store, again), operation.name).toMatchObject({ updated: rows });
      expect(await load(store, again), operation.name).toMatchObject({ unchanged: rows });

      for (const { table } of second) {
        const values = async (relation: string) => {
          const found = await contentsOf(store, relation);
          return found.map((row) => (row[column] === null ? null : Number(row[column])));
        };
        expect(await values(`market.${table.name}`)).toContain(200);
        expect(await values(`market_history.${table.name}`)).toContain(100);
        expect(await values(`market_history.${table.name}_as_of('${then}')`)).toContain(100);
        const old = await values(`market_history.${table.name}_as_of('${between}')`);
        expect(new Set(old)).toEqual(new Set(column === 'quantity' ? [] : [null]));
      }
      if (!isKnown) continue;
      const present = { at: await now(store), version: (await versionAt(store.drizzle, null)).version };
      const past = { at: then, version: (await versionAt(store.drizzle, then)).version };
      const compared = await compareVersions(store.pool, operation, { from: past, to: present }, 1_000);
      expect(compared, operation.name).toMatchObject({ updated: rows, inserted: 0, withdrawn: 0 });
      expect(compared.rows[0]?.columns).toEqual({ [column]: { old: '100', new: '200' } });
    }
  });

  test('reach the partitions of later years too', async () => {
    const partitioned = grown.operations.filter(({ shapes }) =>
      shapes.some(({ table }) => table.partitioned),
    );
    expect(partitioned.length).toBeGreaterThan(0);
    for (const { table, rows } of partitioned.flatMap((operation) =>
      batchesOf(grown.source, operation, { addedLater: 'later' }),
    )) {
      const day = { [String(table.dateColumn)]: '2031-01-02' };
      await load(store, { batches: [{ table, rows: Array.from(rows, (row) => ({ ...row, ...day })) }] });
      const stored = await contentsOf(store, `market_partitions.${table.name}_2031`);
      expect(stored).toMatchObject([{ added_later: 'later' }]);
    }
  });
});

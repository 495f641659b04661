import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { ClientBase } from 'pg';
import { usageError } from '../../../core/errors.ts';
import { migratedTables, tables } from '../../../operations/registry.ts';
import type { TableDefinition } from '../../../operations/table.ts';
import { quote } from '../merge/merge-sql.ts';
import { drizzleTables } from './drizzle-tables.ts';

/** What distinguishes a stored table from its declaration. */
interface Difference {
  readonly table: TableDefinition;
  /** The statements that create the table and its history, or add columns; none if that would lose data. */
  readonly statements: readonly string[];
  /** What was changed that would lose data, and what to do; null if nothing. */
  readonly refusal: { readonly problem: string; readonly remedy: string } | null;
}

/** A table as it is stored. */
interface StoredTable {
  /** With its schema. */
  readonly name: string;
  /** Types by column. */
  readonly columns: Readonly<Record<string, string>>;
  readonly key: readonly string[];
}

/**
 * Creates the tables of operations that the migrations do not know, and adds the columns that they lack.
 *
 * @throws PipelineError `usage` if a key or the type of a column is another one, because that would lose rows.
 */
export async function createDeclaredTables(client: ClientBase): Promise<void> {
  for (const { statements, refusal } of await declaredDifferences(client)) {
    if (refusal !== null) throw usageError(refusalText(refusal));
    for (const statement of statements) await client.query(statement);
  }
}

/** The sentence of a refusal. */
export const refusalText = ({ problem, remedy }: NonNullable<Difference['refusal']>) =>
  `${problem}, so ${remedy}`;

/** The tables of this database's own operations, besides those of migrations, that differ from their declaration. */
export async function declaredDifferences(client: Pick<ClientBase, 'query'>): Promise<Difference[]> {
  const declared = tables.filter((table) => !migratedTables.includes(table));
  if (declared.length === 0) return [];
  const stored = await readStored(
    client,
    declared.map(({ name }) => name),
  );
  const storedAs = (table: PgTable) => stored.find(({ name }) => name === nameOf(table, String));
  return declared.flatMap((table) => {
    const [live, history] = drizzleTables(table);
    const found = storedAs(live);
    const refusal = found === undefined ? null : refusalOf(table, found);
    const statements =
      refusal === null
        ? [...statementsOf(live, found, table), ...statementsOf(history, storedAs(history))]
        : [];
    return refusal === null && statements.length === 0 ? [] : [{ table, statements, refusal }];
  });
}

async function readStored(
  client: Pick<ClientBase, 'query'>,
  names: readonly string[],
): Promise<StoredTable[]> {
  const { rows } = await client.query<StoredTable>(
    `select n.nspname || '.' || c.relname as name, json_object_agg(a.attname, format_type(a.atttypid, a.atttypmod)) as columns,
            array(select k.attname::text from pg_index i join pg_attribute k on k.attrelid = i.indrelid and k.attnum = any (i.indkey)
                   where i.indrelid = c.oid and i.indisprimary order by 1) as key
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where n.nspname in ('market', 'market_history') and c.relkind in ('r', 'p') and c.relname = any ($1)
      group by n.nspname, c.oid`,
    [names],
  );
  return rows;
}

/** Postgres's own names of the types that it writes otherwise than they are declared. */
const TYPE_NAMES: Readonly<Record<string, string>> = { 'timestamp with time zone': 'timestamptz' };
const typeName = (type: string) => TYPE_NAMES[type] ?? type;

function refusalOf(table: TableDefinition, stored: StoredTable): Difference['refusal'] {
  const remedy = `give the table another name (a replay then fills it from the kept responses), or drop market.${table.name} and market_history.${table.name} first`;
  const key = [...table.key].sort();
  if (key.join() !== stored.key.join()) {
    const problem = `market.${table.name} has the key ${stored.key.join(', ')}, and the declaration ${key.join(', ')}: rows would be lost`;
    return { problem, remedy };
  }
  for (const { name, type } of columnsOf(drizzleTables(table)[0])) {
    const before = stored.columns[name];
    if (before === undefined || typeName(before) === typeName(type)) continue;
    const problem = `market.${table.name}.${name} is ${before}, and the declaration says ${type}: values would be lost`;
    return { problem, remedy };
  }
  return null;
}

const columnsOf = (table: PgTable) =>
  getTableConfig(table).columns.map((column) => ({
    name: column.name,
    type: column.getSQLType(),
    notNull: column.notNull,
  }));

/**
 * The statements that make a stored table, or none, what is declared.
 *
 * @param partitioned the definition, if the table is to be partitioned where it says so.
 */
function statementsOf(
  table: PgTable,
  stored: StoredTable | undefined,
  partitioned?: TableDefinition,
): string[] {
  if (stored === undefined) return createTable(table, partitioned);
  const missing = columnsOf(table).filter(({ name }) => stored.columns[name] === undefined);
  if (missing.length === 0) return [];
  const added = missing.map(({ name, type }) => `add column ${quote(name)} ${type}`);
  return [`alter table ${nameOf(table)} ${added.join(', ')}`];
}

function nameOf(table: PgTable, write: (name: string) => string = quote): string {
  const { schema = 'public', name } = getTableConfig(table);
  return `${schema}.${write(name)}`;
}

/** @param partitioned the definition, if the table is to be partitioned where it says so. */
function createTable(table: PgTable, partitioned?: TableDefinition): string[] {
  const { primaryKeys, indexes } = getTableConfig(table);
  const day = partitioned?.partitioned === true ? partitioned.dateColumn : null;
  const names = (columns: readonly unknown[]) =>
    columns.map((column) => quote((column as { readonly name: string }).name)).join(', ');
  const columns = columnsOf(table).map(
    ({ name, type, notNull }) => `${quote(name)} ${type}${notNull ? ' not null' : ''}`,
  );
  const keys = primaryKeys.map(
    (key) => `constraint ${quote(key.getName())} primary key (${names(key.columns)})`,
  );
  const byYear = day === null ? '' : ` partition by range (${quote(day)})`;
  return [
    `create table ${nameOf(table)} (${[...columns, ...keys].join(', ')})${byYear}`,
    ...indexes.map(({ config }) => {
      // The only condition is that of the index of withdrawn rows.
      const where = config.where === undefined ? '' : ' where withdrawn';
      return `create index ${quote(config.name ?? '')} on ${nameOf(table)} (${names(config.columns)})${where}`;
    }),
  ];
}

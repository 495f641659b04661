import type { Database } from '../../src/postgres/database.ts';

export interface Column {
  readonly table: string;
  readonly name: string;
}

/** Columns of all tables as they are. */
export async function columnsOf({ pool }: Database): Promise<Column[]> {
  const result = await pool.query<Column>(
    `select format('%I.%I', n.nspname, c.relname) as "table", quote_ident(a.attname) as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname in ('etl', 'market', 'market_history') and c.relkind in ('r', 'p')
      and c.relname not in ('migrations', 'repeatable_migrations', 'database_identity', 'derived')
    order by 1, a.attnum`,
  );
  return result.rows;
}

/** The rows of every table, of these columns alone. */
export async function contentsOf(
  store: Database,
  columns: readonly Column[],
): Promise<Map<string, unknown[]>> {
  const contents = new Map<string, unknown[]>();
  for (const table of new Set(columns.map((column) => column.table))) {
    const names = columns.filter((column) => column.table === table).map(({ name }) => name);
    const result = await store.pool.query(
      `select row_to_json(r)::text as row from (select ${names.join(', ')} from ${table}) r order by 1`,
    );
    contents.set(
      table,
      result.rows.map(({ row }) => row),
    );
  }
  return contents;
}

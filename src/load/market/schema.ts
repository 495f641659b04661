import type { ClientBase } from 'pg';
import { tables } from '../../operations/registry.ts';
import { columnComment, LOAD_AUDIT, type TableDefinition, VALIDITY } from '../../operations/table.ts';
import { list, quote } from './merge-sql.ts';

/**
 * Writes what the operation files declare beside the tables themselves, which migrations create: the
 * comments of `market` and `market_history`, and the as-of functions. Writes nothing that is there already.
 */
export async function writeMarketSchema(client: ClientBase): Promise<void> {
  await writeComments(client);
  await writeAsOfFunctions(client);
}

/** Every comment the declarations ask for, by the object as SQL names it. */
function declaredComments(): Map<string, string> {
  const declared = new Map<string, string>();
  for (const table of tables) {
    const columns = [
      ...table.fields.map((field) => [field.column, columnComment(field)] as const),
      ...Object.entries(LOAD_AUDIT),
    ];
    const add = (schema: string, comment: string, all: readonly (readonly [string, string])[]) => {
      const name = `${schema}.${quote(table.name)}`;
      declared.set(`table ${name}`, comment);
      for (const [column, text] of all) declared.set(`column ${name}.${quote(column)}`, text);
    };
    add('market', table.comment, columns);
    add('market_history', `Replaced revisions of market.${table.name}.`, [
      ...columns,
      ...Object.entries(VALIDITY),
    ]);
  }
  return declared;
}

async function writeComments(client: ClientBase): Promise<void> {
  const present = await client.query<{ object: string; comment: string | null }>(`
    select format('table %I."%s"', n.nspname, c.relname) as object, obj_description(c.oid, 'pg_class') as comment
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('market', 'market_history') and c.relkind in ('r', 'p')
    union all
    select format('column %I."%s"."%s"', n.nspname, c.relname, a.attname), col_description(c.oid, a.attnum)
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where n.nspname in ('market', 'market_history') and c.relkind in ('r', 'p')`);
  const current = new Map(present.rows.map((row) => [row.object, row.comment]));
  for (const [object, comment] of declaredComments()) {
    if (current.get(object) === comment) continue;
    await client.query(`comment on ${object} is ${client.escapeLiteral(comment)}`);
  }
}

/**
 * `market.<table>_as_of(ts)`: the table as a query at that moment would have seen it: rows whose
 * present revision began by then, and the replaced revision that was the row then.
 */
async function writeAsOfFunctions(client: ClientBase): Promise<void> {
  const found = await client.query<{ name: string; body: string }>(
    "select proname as name, prosrc as body from pg_proc where pronamespace = 'market'::regnamespace",
  );
  const bodies = new Map(found.rows.map((row) => [row.name, row.body]));
  const columns = await storedColumns(client);
  for (const table of tables) {
    const name = `${table.name}_as_of`;
    const body = asOfBody(table, columns.get(table.name) ?? []);
    if (bodies.get(name) === body) continue;
    await client.query(`create or replace function market.${quote(name)}(ts timestamptz)
      returns setof market.${quote(table.name)} language sql stable as ${client.escapeLiteral(body)}`);
    await client.query(
      `comment on function market.${quote(name)}(timestamptz) is ${client.escapeLiteral(
        `market.${table.name} as a query at that moment would have seen it; rows withdrawn by then carry withdrawn_at.`,
      )}`,
    );
  }
}

/**
 * The columns of each table of `market` in the order of the stored table, which is what its row type goes
 * by. It is not the order of the declaration: a column added by a later migration comes last.
 */
async function storedColumns(client: ClientBase): Promise<Map<string, string[]>> {
  const found = await client.query<{ name: string; columns: string[] }>(
    `select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'market'::regnamespace and c.relkind in ('r', 'p') group by c.oid`,
  );
  return new Map(found.rows.map((row) => [row.name, row.columns]));
}

function asOfBody({ name }: TableDefinition, columns: readonly string[]): string {
  return `
  select ${list(columns)} from market.${quote(name)} where last_changed_at <= ts
  union all
  select ${list(columns)} from market_history.${quote(name)} where valid_from <= ts and ts < valid_to`;
}

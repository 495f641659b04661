import type { ClientBase } from 'pg';
import { tables } from '../../../operations/registry.ts';
import { columnComment, LOAD_AUDIT, type TableDefinition, VALIDITY } from '../../../operations/table.ts';
import { LOADS } from '../../state/loads/loads.ts';
import { list, quote } from '../merge/merge-sql.ts';

/**
 * Writes what the operation files declare apart from the tables, which migrations create: the comments of `market` and
 * `market_history`, and the functions of past versions. Writes only what differs.
 */
export async function writeMarketSchema(client: ClientBase): Promise<void> {
  await writeComments(client);
  await writePastFunctions(client);
}

/** Every comment of the declarations, by the object's name in SQL. */
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
    add('market_history', `Replaced and withdrawn revisions of market.${table.name}.`, [
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
 * `market.<table>_at(state)`: the table exactly as a query of that version saw it: rows whose current revision was loaded
 * by then, and the replaced revisions that were the rows then; an error if there is no such version, or if a rebuild has
 * replaced the history of the table since.
 * `market.<table>_as_of(ts)`: the same in the last version that was committed by then.
 */
async function writePastFunctions(client: ClientBase): Promise<void> {
  const found = await client.query<{ name: string; body: string }>(
    "select proname as name, prosrc as body from pg_proc where pronamespace = 'market'::regnamespace",
  );
  const bodies = new Map(found.rows.map((row) => [row.name, row.body]));
  const columns = await storedColumns(client);
  for (const table of tables) {
    const past = [
      {
        name: `${table.name}_at`,
        argument: 'state bigint',
        value: '$1',
        condition: `market.is_state($1, '${table.name}') and `,
        when: 'in that state',
      },
      {
        name: `${table.name}_as_of`,
        argument: 'ts timestamptz',
        value: 'market.state($1)',
        condition: `market.is_state(market.state($1), '${table.name}') and `,
        when: 'in the last state committed by that moment',
      },
    ];
    for (const { name, argument, value, condition, when } of past) {
      const body = pastBody(table, columns.get(table.name) ?? [], value, condition);
      if (bodies.get(name) === body) continue;
      await client.query(`create or replace function market.${quote(name)}(${argument})
        returns setof market.${quote(table.name)} language sql stable as ${client.escapeLiteral(body)}`);
      const comment = `market.${table.name} exactly as a query ${when} saw it.`;
      await client.query(`comment on function market.${quote(name)} is ${client.escapeLiteral(comment)}`);
    }
  }
}

/**
 * The columns of each table of `market` in the order of its row type. It is not the order of the declaration: a column
 * that a later migration added comes last.
 */
async function storedColumns(client: ClientBase): Promise<Map<string, string[]>> {
  const found = await client.query<{ name: string; columns: string[] }>(
    `select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'market'::regnamespace and c.relkind in ('r', 'p') group by c.oid`,
  );
  return new Map(found.rows.map((row) => [row.name, row.columns]));
}

/**
 * Simple enough for Postgres to inline it, so that conditions of the query reach the tables.
 *
 * @param condition depends on no row, so it is evaluated once and first, even if no row is found.
 */
function pastBody(
  { name }: TableDefinition,
  columns: readonly string[],
  version: string,
  condition: string,
): string {
  // A subquery, so that it is evaluated once and not for each row.
  const then = `(select ${version})`;
  return `
  select ${list(columns, 't.')} from market.${quote(name)} t
    join ${LOADS} written on written.id = t.load_id where ${condition}written.state <= ${then}
  union all
  select ${list(columns, 't.')} from market_history.${quote(name)} t
    join ${LOADS} written on written.id = t.load_id join ${LOADS} replaced on replaced.id = t.replaced_by_load_id
   where ${condition}written.state <= ${then} and replaced.state > ${then}`;
}

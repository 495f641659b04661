import type { ClientBase } from 'pg';
import { tables } from '../../../operations/registry.ts';
import { columnComment, LOAD_AUDIT, VALIDITY } from '../../../operations/table.ts';
import { quote } from '../merge/merge-sql.ts';
import { writePastFunctions } from './past-functions.ts';

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

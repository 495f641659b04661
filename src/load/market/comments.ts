import type { ClientBase } from 'pg';
import { tables } from '../../operations/registry.ts';
import { columnComment, LOAD_AUDIT, VALIDITY } from '../../operations/table.ts';
import { quote } from './merge-sql.ts';

/** Every comment the declarations ask for, by the object as SQL names it. */
function wantedComments(): Map<string, string> {
  const wanted = new Map<string, string>();
  for (const table of tables) {
    const columns = [
      ...table.fields.map((field) => [field.column, columnComment(field)] as const),
      ...Object.entries(LOAD_AUDIT),
    ];
    const add = (schema: string, comment: string, all: readonly (readonly [string, string])[]) => {
      const name = `${schema}.${quote(table.name)}`;
      wanted.set(`table ${name}`, comment);
      for (const [column, text] of all) wanted.set(`column ${name}.${quote(column)}`, text);
    };
    add('market', table.comment, columns);
    add('market_history', `Replaced revisions of market.${table.name}.`, [
      ...columns,
      ...Object.entries(VALIDITY),
    ]);
  }
  return wanted;
}

/** Writes those comments of the data tables that differ from the declarations; usually none. */
export async function writeComments(client: ClientBase): Promise<void> {
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
  for (const [object, comment] of wantedComments()) {
    if (current.get(object) === comment) continue;
    await client.query(`comment on ${object} is ${client.escapeLiteral(comment)}`);
  }
}

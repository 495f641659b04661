import type { ClientBase } from 'pg';
import { LOAD_AUDIT, VALIDITY } from '../../declaration/table.ts';
import { tables } from '../../operations/registry.ts';
import { etlDescriptions } from '../../state/schema/describe.ts';
import '../../state/schema/instrument-tables.ts';
import '../../state/schema/waiting.ts';
import '../../state/schema/knowledge.ts';
import '../../state/schema/source-tables.ts';
import '../../state/schema/load-results.ts';
import '../../state/schema/work.ts';
import { columnComment } from '../../declaration/column-comment.ts';
import { quote } from '../merge/merge-sql.ts';
import { writePastFunctions } from './past-functions.ts';

// For the pages, which need the modules above that declare the tables.
export { etlDescriptions };

/** The comments of the schemas. */
const SCHEMA_COMMENTS: Readonly<Record<string, string>> = {
  etl: 'What the pipeline knows about its own work.',
  market:
    'Market data, one table per data set: what the source lists now. Rows that it no longer lists are in market_history.',
  market_history:
    'Replaced and withdrawn revisions of the tables of market, with the time each was valid and the load that ended it.',
  market_partitions: 'Yearly partitions of the tables of market; query market instead.',
};

/**
 * Writes what the schema and the operation files declare apart from the tables, which migrations create: all comments, and
 * the functions of past states. Writes only what differs.
 */
export async function writeCommentsAndFunctions(client: ClientBase): Promise<void> {
  await writeComments(client);
  await writePastFunctions(client);
}

/** Every comment of the declarations, by the object's name in SQL. */
function declaredComments(): Map<string, string> {
  const declared = new Map(
    Object.entries(SCHEMA_COMMENTS).map(([schema, comment]) => [`schema ${schema}`, comment]),
  );
  const addAll = (
    kind: string,
    name: string,
    comment: string,
    columns: readonly (readonly [string, string])[],
  ) => {
    declared.set(`${kind} ${name}`, comment);
    for (const [column, text] of columns) declared.set(`column ${name}.${quote(column)}`, text);
  };
  for (const { kind, name, comment, columns } of etlDescriptions())
    addAll(kind, `etl.${quote(name)}`, comment, Object.entries(columns));
  for (const table of tables) {
    const columns = [
      ...table.fields.map((field) => [field.column, columnComment(field)] as const),
      ...Object.entries(LOAD_AUDIT),
    ];
    const name = quote(table.name);
    addAll('table', `market.${name}`, table.comment, columns);
    addAll('table', `market_history.${name}`, `Replaced and withdrawn revisions of market.${table.name}.`, [
      ...columns,
      ...Object.entries(VALIDITY),
    ]);
  }
  return declared;
}

async function writeComments(client: ClientBase): Promise<void> {
  const present = await client.query<{ object: string; comment: string | null }>(
    `
    select format('schema %s', n.nspname) as object, obj_description(n.oid, 'pg_namespace') as comment
      from pg_namespace n where n.nspname = any ($1)
    union all
    select format('%s %I."%s"', case c.relkind when 'v' then 'view' else 'table' end, n.nspname, c.relname),
           obj_description(c.oid, 'pg_class')
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = any ($1) and c.relkind in ('r', 'p', 'v')
    union all
    select format('column %I."%s"."%s"', n.nspname, c.relname, a.attname), col_description(c.oid, a.attnum)
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where n.nspname = any ($1) and c.relkind in ('r', 'p', 'v')`,
    [Object.keys(SCHEMA_COMMENTS)],
  );
  const current = new Map(present.rows.map((row) => [row.object, row.comment]));
  for (const [object, comment] of declaredComments()) {
    if (current.get(object) === comment) continue;
    await client.query(`comment on ${object} is ${client.escapeLiteral(comment)}`);
  }
}

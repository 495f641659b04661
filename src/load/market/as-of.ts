import type { ClientBase } from 'pg';
import { tables } from '../../operations/registry.ts';
import { LOAD_AUDIT, type TableDefinition } from '../../operations/table.ts';
import { list, quote } from './merge-sql.ts';

/**
 * `market.<table>_as_of(ts)`: the table as a query at that moment would have seen it: rows whose
 * present revision began by then, and the replaced revision that was the row then.
 */
function asOfBody(table: TableDefinition): string {
  const columns = [...table.fields.map((field) => field.column), ...Object.keys(LOAD_AUDIT)];
  return `
  select ${list(columns)} from market.${quote(table.name)} where last_changed_at <= ts
  union all
  select ${list(columns)} from market_history.${quote(table.name)} where valid_from <= ts and ts < valid_to`;
}

/** Makes, or brings up to date, the as-of function of every table. */
export async function writeAsOfFunctions(client: ClientBase): Promise<void> {
  const present = await client.query<{ name: string; body: string }>(
    "select proname as name, prosrc as body from pg_proc where pronamespace = 'market'::regnamespace",
  );
  const bodies = new Map(present.rows.map((row) => [row.name, row.body]));
  for (const table of tables) {
    const name = `${table.name}_as_of`;
    const body = asOfBody(table);
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

import type { ClientBase } from 'pg';
import type { TableDefinition } from '../../declaration/table.ts';
import { namesFilling, tables } from '../../operations/registry.ts';
import { LOADS } from '../../state/loads/loads.ts';
import { list, quote } from '../merge/merge-sql.ts';

/** A function of `market_history` about what a table was, as it should be in the database. */
interface PastFunction {
  readonly name: string;
  readonly args: string;
  readonly returns: string;
  readonly body: string;
  readonly comment: string;
}

/** A column of a table as it is stored. */
interface StoredColumn {
  readonly name: string;
  readonly type: string;
}

/** Writes the functions of past states of each table; only those that differ. */
export async function writePastFunctions(client: ClientBase): Promise<void> {
  const result = await client.query<{ name: string; body: string }>(
    "select proname as name, prosrc as body from pg_proc where pronamespace = 'market_history'::regnamespace",
  );
  const bodies = new Map(result.rows.map((row) => [row.name, row.body]));
  const stored = await storedColumns(client);
  for (const table of tables) {
    for (const { name, args, returns, body, comment } of pastFunctions(table, stored.get(table.name) ?? [])) {
      const before = bodies.get(name);
      if (before === body) continue;
      // Its columns may be others, and Postgres does not replace those of a function.
      if (before !== undefined && returns.startsWith('table'))
        await client.query(`drop function market_history.${quote(name)}`);
      await client.query(`create or replace function market_history.${quote(name)}(${args})
        returns ${returns} language sql stable as ${client.escapeLiteral(body)}`);
      await client.query(
        `comment on function market_history.${quote(name)} is ${client.escapeLiteral(comment)}`,
      );
    }
  }
}

/**
 * The columns of each table of `market` in the order of its row type. It is not the order of the declaration: a column
 * that a later migration added comes last.
 */
async function storedColumns(client: ClientBase): Promise<Map<string, StoredColumn[]>> {
  const result = await client.query<{ name: string; columns: StoredColumn[] }>(
    `select c.relname as name,
            json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) order by a.attnum) as columns
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'market'::regnamespace and c.relkind in ('r', 'p') group by c.oid`,
  );
  return new Map(result.rows.map((row) => [row.name, row.columns]));
}

/**
 * `market_history.<table>_at(state)`: the table exactly as a query of that state saw it: rows whose current revision was loaded
 * by then, and the replaced revisions that were the rows then; an error if there is no such state.
 * `market_history.<table>_as_of(ts)`: the same in the last state that was committed by then.
 * `market_history.<table>_changes(from_state, to_state)`: each row in which two states differ.
 */
function pastFunctions(table: TableDefinition, stored: readonly StoredColumn[]): PastFunction[] {
  const { name } = table;
  const columns = stored.map((column) => column.name);
  const rows = `setof market.${quote(name)}`;
  const isState = (value: string) => `etl.is_state(${value}, '${name}')`;
  return [
    {
      name: `${name}_at`,
      args: 'state bigint',
      returns: rows,
      body: pastBody(table, columns, '$1', isState('$1')),
      comment: `market.${name} exactly as a query in that state saw it.`,
    },
    {
      name: `${name}_as_of`,
      args: 'ts timestamptz',
      returns: rows,
      body: pastBody(table, columns, 'market.state($1)', isState('market.state($1)')),
      comment: `market.${name} exactly as a query in the last state committed by that moment saw it.`,
    },
    {
      name: `${name}_changes`,
      args: 'from_state bigint, to_state bigint',
      returns: `table (change text, ${stored.map((column) => `${quote(column.name)} ${column.type}`).join(', ')}, old jsonb)`,
      body: changesBody(table, columns),
      comment: `The rows in which market.${name} differs between two states: change is insert, update, withdraw or relist; the columns are those of to_state (of a withdrawn row its last), old has those that differ as they were in from_state.`,
    },
  ];
}

/**
 * Simple enough for Postgres to inline it, so that conditions of the query reach the tables.
 *
 * @param condition depends on no row, so it is evaluated once and first, even if no row is found.
 */
function pastBody(
  { name }: TableDefinition,
  columns: readonly string[],
  stateNumber: string,
  condition: string,
): string {
  // A subquery, so that it is evaluated once and not for each row.
  const then = `(select ${stateNumber})`;
  return `
  select ${list(columns, 't.')} from market.${quote(name)} t
    join ${LOADS} written on written.id = t.load_id where ${condition} and written.state <= ${then}
  union all
  select ${list(columns, 't.')} from market_history.${quote(name)} t
    join ${LOADS} written on written.id = t.load_id join ${LOADS} replaced on replaced.id = t.replaced_by_load_id
   where ${condition} and written.state <= ${then} and replaced.state > ${then}`;
}

/**
 * Only rows of the days that the loads between the two states have changed are read, by the keys of the tables.
 *
 * `after`: rows of the second state that were written since the first. `before`: rows of the first one that were
 * replaced since. A row of `before` alone was withdrawn; one of `after` alone is new, or listed again.
 */
function changesBody(table: TableDefinition, columns: readonly string[]): string {
  const { name, dateColumn, key } = table;
  const [live, history] = [`market.${quote(name)}`, `market_history.${quote(name)}`];
  const names = namesFilling([table])
    .map((operation) => `'${operation}'`)
    .join(', ');
  const own = (row: string) => list(columns, `${row}.`);
  const sameKey = (a: string, b: string) =>
    key.map((column) => `${a}.${quote(column)} = ${b}.${quote(column)}`).join(' and ');
  const days = (row: string) =>
    dateColumn === null ? '' : ` and ${row}.${quote(dateColumn)} between l.changed_from and l.changed_to`;
  // A null must not make the conditions false before are_states has said that it is no state.
  const [first, last] = ['coalesce($1, -1)', 'coalesce($2, -1)'];
  const between = `l.state > ${first} and l.state <= ${last} and l.operation in (${names}) and l.changed_from is not null`;
  const ofLoad = (row: string) => `${row}.exchange = l.exchange${days(row)}`;
  const after = `
    select ${own('t')} from ${LOADS} l join ${live} t on ${ofLoad('t')} and t.load_id = l.id where ${between}
    union all
    select ${own('t')} from ${LOADS} l join ${history} t on ${ofLoad('t')} and t.load_id = l.id
      join ${LOADS} replaced on replaced.id = t.replaced_by_load_id and replaced.state > ${last} where ${between}`;
  const before = `
    select ${own('t')} from ${LOADS} l join ${history} t on ${ofLoad('t')} and t.replaced_by_load_id = l.id
      join ${LOADS} written on written.id = t.load_id and written.state <= ${first} where ${between}`;
  /** The columns of a former row that differ. */
  const old = (then: string, now: string) =>
    `(select coalesce(jsonb_object_agg(d.key, d.value), '{}') from jsonb_each(to_jsonb(${then})) d where d.value is distinct from to_jsonb(${now}) -> d.key)`;
  const existed = `exists (select from ${history} h join ${LOADS} written on written.id = h.load_id
      where ${sameKey('h', 'a')} and h.revision < a.revision and written.state <= ${first})`;
  return `
  select case when b.load_id is not null then 'update' when a.revision > 1 and ${existed} then 'relist' else 'insert' end,
      ${own('a')}, case when b.load_id is not null then ${old('b', 'a')} end
    from (${after}) a left join (${before}) b on ${sameKey('b', 'a')}
   where etl.are_states($1, $2, '${name}')
  union all
  select 'withdraw', ${own('w')}, ${old('b', 'w')}
    from (${before}) b join lateral (
      select ${own('h')}, h.withdrawn, h.replaced_by_load_id from ${history} h join ${LOADS} written on written.id = h.load_id
       where ${sameKey('h', 'b')} and written.state <= ${last} order by h.revision desc limit 1) last on last.withdrawn
    join ${LOADS} replaced on replaced.id = last.replaced_by_load_id and replaced.state <= ${last}
    cross join lateral (select ${own('last')}) w
   where etl.are_states($1, $2, '${name}') and not exists (
      select from ${live} t join ${LOADS} written on written.id = t.load_id and written.state <= ${last} where ${sameKey('t', 'b')})`;
}

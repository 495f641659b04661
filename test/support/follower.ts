import type { Pool } from 'pg';

/** A copy of the rows that a table has of an exchange. */
export interface Copy {
  /** The state that it is equal to; 0: it is empty. */
  state: number;
  /** Each row as JSON, by its key. */
  readonly rows: Map<string, string>;
}

export const emptyCopy = (): Copy => ({ state: 0, rows: new Map() });

/**
 * Brings a copy to the newest state by the changes since its own.
 *
 * @returns the rows in which it differs from the table then.
 */
export async function follow(
  pool: Pool,
  {
    table,
    key,
    exchange,
  }: { readonly table: string; readonly key: readonly string[]; readonly exchange: string },
  copy: Copy,
): Promise<string[]> {
  const client = await pool.connect();
  const id = (row: string) => `concat_ws('|', ${key.map((column) => `${row}.${column}`).join(', ')})`;
  const changed = async (from: number, to: number) =>
    client.query<{ change: string; id: string; row: string }>({
      name: `changes of ${table}`,
      text: `select c.change, ${id('c')} as id, (to_jsonb(c) - 'change' - 'old')::text as row
        from market_history.${table}_changes($1, $2) c where c.exchange = $3`,
      values: [from, to, exchange],
    });
  try {
    await client.query('begin isolation level repeatable read');
    const { rows: states } = await client.query<{ state: string }>('select market.state() as state');
    const to = Number(states[0]?.state);
    const { rows: changes } = await changed(copy.state, to);
    copy.state = to;
    const wrong: string[] = [];
    for (const { change, id: name, row } of changes) {
      const isNew = change === 'insert' || change === 'relist';
      if (copy.rows.has(name) === isNew) wrong.push(`${table} ${change} ${name}`);
      if (change === 'withdraw') copy.rows.delete(name);
      else copy.rows.set(name, row);
    }
    const { rows: stored } = await client.query<{ id: string; row: string }>({
      name: `rows of ${table}`,
      text: `select ${id('t')} as id, to_jsonb(t)::text as row from market.${table} t where t.exchange = $1`,
      values: [exchange],
    });
    for (const record of stored)
      if (copy.rows.get(record.id) !== record.row) wrong.push(`${table} ${record.id} differs`);
    if (copy.rows.size !== stored.length) wrong.push(`${table} ${copy.rows.size} rows, not ${stored.length}`);
    return wrong;
  } finally {
    await client.query('rollback');
    client.release();
  }
}

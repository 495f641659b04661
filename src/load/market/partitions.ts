import type { Row, TableDefinition } from '../../operations/table.ts';
import type { Database } from '../database/database.ts';

const made = new WeakMap<Database, Set<string>>();

/** Makes the yearly partitions these rows need, in transactions of their own. */
export async function ensurePartitions(
  database: Database,
  table: TableDefinition,
  rows: readonly Row[],
): Promise<void> {
  const column = table.dateColumn;
  if (!table.partitioned || column === null) return;
  let known = made.get(database);
  if (known === undefined) {
    known = new Set();
    made.set(database, known);
  }
  const years = new Set(rows.map((row) => (row[column] as string).slice(0, 4)));
  for (const year of years) {
    const name = `${table.name}_${year}`;
    if (known.has(name)) continue;
    await database.pool.query('select etl.ensure_year_partition($1, $2)', [table.name, Number(year)]);
    known.add(name);
  }
}

import type { PoolClient } from 'pg';
import type { TableDefinition } from '../../operations/table.ts';
import { quote } from './merge-sql.ts';

/** Which stored values an input leaves as they are, because it knows less than others do. */
export interface Standing {
  /** Columns it has nothing on, or only something vaguer: they are filled where nothing is stored. */
  readonly columns: readonly string[];
  /** Numbers it rounds: a stored one that differs by less than this stands. */
  readonly rounded: Readonly<Record<string, number>>;
}

/**
 * Puts the stored values that stand into the staged rows, so that the merge neither sees a difference
 * nor writes one. To be called between COPY and merge, with the locks of the days held.
 *
 * @param days first and last day staged, where the table has a date column.
 */
export async function keepStored(
  client: PoolClient,
  table: TableDefinition,
  { columns, rounded }: Standing,
  days: readonly string[],
): Promise<void> {
  const kept = columns.map((column) => `${quote(column)} = coalesce(t.${quote(column)}, s.${quote(column)})`);
  const exact = Object.entries(rounded).map(([column, within]) => {
    const [old, fresh] = [`t.${quote(column)}`, `s.${quote(column)}`];
    return `${quote(column)} = case when abs(${old} - ${fresh}) < ${Number(within)} then ${old} else ${fresh} end`;
  });
  if (kept.length + exact.length === 0) return;
  const same = table.key.map((column) => `t.${quote(column)} = s.${quote(column)}`).join(' and ');
  const bounded =
    table.dateColumn === null ? '' : `and t.${quote(table.dateColumn)} between $1::date and $2::date`;
  await client.query(
    `update pg_temp.${quote(`stage_${table.name}`)} s set ${[...kept, ...exact].join(', ')}
       from market.${quote(table.name)} t where ${same} ${bounded}`,
    [...days],
  );
}

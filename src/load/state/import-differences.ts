import type { Pool } from 'pg';
import type { TableDefinition } from '../../operations/table.ts';
import {
  CHANGE_SQL,
  type Change,
  describeDifference,
  type RowDifference,
  type Texts,
  textsSql,
} from '../market/differences.ts';
import { list, quote } from '../market/merge-sql.ts';

export interface Listing {
  readonly limit: number;
  /** Columns whose stored values may have been rounded, and to what. */
  readonly rounded: Readonly<Record<string, number>>;
}

/**
 * Where a window's records and the rows stored before it differ: what it changed, withdrew or listed
 * again, and what it inserted into a day that had rows already. At most `limit` rows: first where the
 * two contradict each other, then where one fills what the other left open.
 */
export async function windowDifferences(
  pool: Pool,
  table: TableDefinition,
  windowId: number,
  { limit, rounded }: Listing,
): Promise<RowDifference[]> {
  const day = quote(table.dateColumn ?? 'trade_date');
  const same = table.key.map((column) => `b.${quote(column)} = a.${quote(column)}`).join(' and ');
  const contradicts = table.fields
    .filter(({ column }) => !table.key.includes(column))
    .map(({ column }) => contradiction(quote(column), rounded[column]))
    .join(' or ');
  const found = await pool.query<{ change: Change; before: Texts | null; after: Texts }>(
    `select ${CHANGE_SQL} as change, case when b.revision is not null then ${textsSql(table, 'b')} end as before,
       ${textsSql(table, 'a')} as after
     from etl.windows w
     join market.${quote(table.name)} a on a.run_id = w.run_id and a.exchange = w.exchange
       and a.${day} between w.from_date and w.to_date
       -- The days' locks keep other loads out between the two.
       and a.last_changed_at between w.started_at and w.finished_at
     left join market_history.${quote(table.name)} b on ${same} and b.valid_to = a.last_changed_at
     where w.id = $1 and (b.revision is not null or w.updated + w.unchanged + w.stale + w.withdrawn > 0)
     order by b.revision is null, a.withdrawn_at is not null or (${contradicts}) is true desc, ${list(table.key, 'a.')} limit $2`,
    [windowId, limit],
  );
  return found.rows.map((row) => describeDifference(table, row));
}

/** Do before and after say different things of a column? Null where either says nothing. */
function contradiction(column: string, step: number | undefined): string {
  const differs = `a.${column} <> b.${column}`;
  if (step === undefined) return differs;
  return `(${differs} and not (b.${column} % ${step} = 0 and abs(a.${column} - b.${column}) < ${step}))`;
}

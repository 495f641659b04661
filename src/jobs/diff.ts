import type { Pool } from 'pg';
import { usageError } from '../core/errors.ts';
import {
  CHANGE_SQL,
  type Change,
  describeDifference,
  type RowDifference,
  type Texts,
  textsSql,
} from '../load/differences.ts';
import { list, quote } from '../load/merge-sql.ts';
import type { Operation } from '../operations/operation.ts';
import type { TableDefinition } from '../operations/table.ts';

export interface Difference {
  readonly operation: string;
  /** The two moments compared, ISO 8601: what was there at the first and at the second. */
  readonly from: string;
  readonly to: string;
  readonly inserted: number;
  readonly changed: number;
  readonly withdrawn: number;
  readonly relisted: number;
  /** At most so many as were asked for. */
  readonly rows: readonly RowDifference[];
}

/** What differs in an operation's tables between two moments, from their revisions. */
export async function difference(
  pool: Pool,
  operation: Operation,
  between: { readonly from: Date; readonly to: Date },
  limit: number,
): Promise<Difference> {
  const counts = { inserted: 0, changed: 0, withdrawn: 0, relisted: 0 };
  const rows: RowDifference[] = [];
  for (const { table } of operation.shapes) {
    const totals = await pool.query<{ change: Change; rows: number }>(
      `${compared(table)} select change, count(*)::int as rows from compared group by 1`,
      [between.from, between.to],
    );
    for (const total of totals.rows) counts[total.change] += total.rows;
    const shown = await pool.query<{ change: Change; before: Texts | null; after: Texts }>(
      `${compared(table)} select change, before, after from compared order by ${list(table.key)} limit $3`,
      [between.from, between.to, limit - rows.length],
    );
    rows.push(...shown.rows.map((row) => describeDifference(table, row)));
  }
  return {
    operation: operation.name,
    from: between.from.toISOString(),
    to: between.to.toISOString(),
    ...counts,
    rows,
  };
}

/** Rows with a revision that began after $1 and by $2, as they were at both moments. */
function compared(table: TableDefinition): string {
  const name = quote(table.name);
  const keys = list(table.key);
  return `
    with touched as (
      select ${keys} from market.${name} where last_changed_at > $1 and last_changed_at <= $2
      union select ${keys} from market_history.${name} where valid_from > $1 and valid_from <= $2
    ), compared as (
      select ${list(table.key, 'a.')}, case when b.revision is not null then ${textsSql(table, 'b')} end as before,
        ${textsSql(table, 'a')} as after, ${CHANGE_SQL} as change
      from touched join market.${quote(`${table.name}_as_of`)}($2) a using (${keys})
      left join market.${quote(`${table.name}_as_of`)}($1) b using (${keys})
    )`;
}

/** When a run had ended, or now where it is still open. */
export async function endOfRun(pool: Pool, runId: number): Promise<Date> {
  const found = await pool.query<{ end: Date }>(
    'select coalesce(finished_at, clock_timestamp()) as end from etl.runs where id = $1',
    [runId],
  );
  const run = found.rows[0];
  if (run === undefined) throw usageError(`there is no run ${runId} ("eod runs" lists them)`);
  return run.end;
}

import type { Pool } from 'pg';
import { usageError } from '../core/errors.ts';
import { list, quote } from '../load/merge-sql.ts';
import type { Operation } from '../operations/operation.ts';
import type { TableDefinition } from '../operations/table.ts';

export type Change = 'inserted' | 'changed' | 'withdrawn' | 'relisted';

export interface RowDifference {
  readonly table: string;
  readonly change: Change;
  readonly key: Readonly<Record<string, string | null>>;
  /** Columns that differ, old and new; empty for inserted and withdrawn rows. */
  readonly columns: Readonly<Record<string, { readonly old: string | null; readonly new: string | null }>>;
}

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
    const shown = await pool.query<{ change: Change; before: Sent | null; after: Sent }>(
      `${compared(table)} select change, before, after from compared order by ${list(table.key)} limit $3`,
      [between.from, between.to, limit - rows.length],
    );
    rows.push(...shown.rows.map((row) => describe(table, row)));
  }
  return {
    operation: operation.name,
    from: between.from.toISOString(),
    to: between.to.toISOString(),
    ...counts,
    rows,
  };
}

/** Data columns of a row as text, so that no digit is lost on the way. */
type Sent = Readonly<Record<string, string | null>>;

function texts(table: TableDefinition, row: string): string {
  // jsonb_build_object takes 50 pairs; concatenated objects take any number.
  const pairs = table.fields.map(({ column }) => `'${column}', ${row}.${quote(column)}::text`);
  const parts: string[] = [];
  for (let at = 0; at < pairs.length; at += 40)
    parts.push(`jsonb_build_object(${pairs.slice(at, at + 40).join(', ')})`);
  return `(${parts.join(' || ')})`;
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
      select ${list(table.key, 'a.')}, case when b.revision is not null then ${texts(table, 'b')} end as before,
        ${texts(table, 'a')} as after, case
          when b.revision is null then 'inserted'
          when b.withdrawn_at is null and a.withdrawn_at is not null then 'withdrawn'
          when b.withdrawn_at is not null and a.withdrawn_at is null then 'relisted'
          else 'changed' end as change
      from touched join market.${quote(`${table.name}_as_of`)}($2) a using (${keys})
      left join market.${quote(`${table.name}_as_of`)}($1) b using (${keys})
    )`;
}

function describe(
  table: TableDefinition,
  { change, before, after }: { change: Change; before: Sent | null; after: Sent },
): RowDifference {
  const key = Object.fromEntries(table.key.map((column) => [column, after[column] ?? null]));
  return {
    table: `market.${table.name}`,
    change,
    key,
    columns: before === null ? {} : changedColumns(before, after),
  };
}

/** Columns in which two versions of a row differ. */
function changedColumns(before: Sent, after: Sent): RowDifference['columns'] {
  return Object.fromEntries(
    Object.keys(after)
      .filter((column) => before[column] !== after[column])
      .map((column) => [column, { old: before[column] ?? null, new: after[column] ?? null }]),
  );
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

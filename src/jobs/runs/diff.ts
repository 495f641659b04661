import type { Pool } from 'pg';
import { usageError } from '../../core/errors.ts';
import {
  CHANGE_SQL,
  type Change,
  describeDifference,
  type RowDifference,
  type Texts,
  textsSql,
} from '../../load/market/differences.ts';
import { list, quote } from '../../load/market/merge-sql.ts';
import type { Operation } from '../../operations/operation.ts';
import type { TableDefinition } from '../../operations/table.ts';

/** Two moments, ISO 8601 and as exact as Postgres keeps them: a run may end within a millisecond of its last row. */
export interface Between {
  readonly from: string;
  readonly to: string;
}

/** The two moments compared: what was there at the first, and at the second. */
export interface Difference extends Between {
  readonly operation: string;
  readonly inserted: number;
  readonly changed: number;
  readonly withdrawn: number;
  readonly relisted: number;
  /** At most so many as were asked for; corrections first, new rows last. */
  readonly rows: readonly RowDifference[];
  /** Rows that differ beyond those. */
  readonly notListed: number;
}

/** What differs in an operation's tables between two moments, from their revisions. */
export async function difference(
  pool: Pool,
  operation: Operation,
  between: Between,
  limit: number,
): Promise<Difference> {
  const { from, to } = between;
  const counts = { inserted: 0, changed: 0, withdrawn: 0, relisted: 0 };
  const rows: RowDifference[] = [];
  for (const { table } of operation.shapes) {
    const totals = await pool.query<{ change: Change; rows: number }>(
      `${compared(table)} select change, count(*)::int as rows from compared group by 1`,
      [from, to],
    );
    for (const total of totals.rows) counts[total.change] += total.rows;
    const shown = await pool.query<{ change: Change; before: Texts | null; after: Texts }>(
      `${compared(table)} select change, before, after from compared
        order by array_position(array['changed', 'withdrawn', 'relisted', 'inserted'], change), ${list(table.key)} limit $3`,
      [from, to, limit - rows.length],
    );
    rows.push(...shown.rows.map((row) => describeDifference(table, row)));
  }
  const all = counts.inserted + counts.changed + counts.withdrawn + counts.relisted;
  return { operation: operation.name, from, to, ...counts, rows, notListed: all - rows.length };
}

/**
 * Rows with a revision that began after $1 and by $2, as they were at both moments. Those that are at
 * the end what they were at the start (a correction taken back) do not differ.
 */
function compared(table: TableDefinition): string {
  const name = quote(table.name);
  const keys = list(table.key);
  const values = table.fields.map(({ column }) => column).filter((column) => !table.key.includes(column));
  return `
    with touched as (
      select ${keys} from market.${name} where last_changed_at > $1 and last_changed_at <= $2
      union select ${keys} from market_history.${name} where valid_from > $1 and valid_from <= $2
    ), compared as (
      select ${list(table.key, 'a.')}, case when b.revision is not null then ${textsSql(table, 'b')} end as before,
        ${textsSql(table, 'a')} as after, ${CHANGE_SQL} as change
      from touched join market.${quote(`${table.name}_as_of`)}($2) a using (${keys})
      left join market.${quote(`${table.name}_as_of`)}($1) b using (${keys})
      where b.revision is null or (a.withdrawn_at is null) <> (b.withdrawn_at is null)
        or row(${list(values, 'a.')}) is distinct from row(${list(values, 'b.')})
    )`;
}

const MOMENT = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`;

/**
 * From the end of one run to the end of another, or to now where that one is still open.
 *
 * @throws PipelineError `usage` when there is no such run, or the two cannot be compared in this order.
 */
export async function betweenRuns(pool: Pool, first: number, second: number): Promise<Between> {
  if (first === second) throw usageError(`--between names run ${first} twice; name two runs`);
  const { rows } = await pool.query<{ id: number; end: string; open: boolean }>(
    `select id::int, finished_at is null as open,
       to_char(coalesce(finished_at, clock_timestamp()) at time zone 'utc', ${MOMENT}) as end
     from etl.runs where id = any($1)`,
    [[first, second]],
  );
  const [from, to] = [first, second].map((runId) => {
    const run = rows.find(({ id }) => id === runId);
    if (run === undefined) throw usageError(`there is no run ${runId} ("eod runs" lists them)`);
    return run;
  }) as [(typeof rows)[number], (typeof rows)[number]];
  if (from.open) throw usageError(`run ${first} has not ended: nothing can be compared with its end`);
  if (from.end > to.end) {
    throw usageError(`run ${first} ended after run ${second}: use --between ${second} ${first}`);
  }
  return { from: from.end, to: to.end };
}

/**
 * From a moment to now.
 *
 * @param then a day and time with its zone, as Postgres reads them.
 * @throws PipelineError `usage` for a moment to come.
 */
export async function fromThenToNow(pool: Pool, then: string): Promise<Between> {
  const { rows } = await pool.query<Between & { future: boolean }>(
    `select to_char(at at time zone 'utc', ${MOMENT}) as "from", at > now as future,
       to_char(now at time zone 'utc', ${MOMENT}) as "to"
     from (select $1::timestamptz as at, clock_timestamp() as now) moments`,
    [then],
  );
  const { future, ...between } = rows[0] as (typeof rows)[number];
  if (future) throw usageError(`--since: ${between.from} is in the future`);
  return between;
}

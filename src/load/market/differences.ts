import type { ClientBase, Pool } from 'pg';
import type { Field } from '../../operations/fields.ts';
import type { Operation } from '../../operations/operation.ts';
import { tables } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import { list, quote } from './merge-sql.ts';

export type Change = 'inserted' | 'changed' | 'withdrawn' | 'relisted';

/** How one row differs between two moments. Values are text, so that no digit is lost on the way. */
export interface RowDifference {
  readonly table: string;
  readonly change: Change;
  readonly key: Readonly<Record<string, string | null>>;
  /** Columns that differ, old and new; empty for rows that were not there before. */
  readonly columns: Readonly<Record<string, { readonly old: string | null; readonly new: string | null }>>;
}

/** Data columns of a row, as text. */
type Texts = Readonly<Record<string, string | null>>;

/** An SQL expression for the data columns of `row` as a jsonb object of texts. */
function textsSql(table: TableDefinition, row: string): string {
  // jsonb_build_object takes 50 pairs; concatenated objects take any number.
  const pairs = table.fields.map(({ column }) => `'${column}', ${row}.${quote(column)}::text`);
  const parts: string[] = [];
  for (let at = 0; at < pairs.length; at += 40) {
    parts.push(`jsonb_build_object(${pairs.slice(at, at + 40).join(', ')})`);
  }
  return `(${parts.join(' || ')})`;
}

/** An SQL expression for what became of a row: `b` before, `a` after; `b` may be missing. */
const CHANGE_SQL = `case
    -- Also what came and went: a reader of the table does not see it.
    when b.withdrawn_at is null and a.withdrawn_at is not null then 'withdrawn'
    when b.revision is null then 'inserted'
    when b.withdrawn_at is not null and a.withdrawn_at is null then 'relisted'
    else 'changed' end`;

/** A decimal without the zeros at its end: 10.50 and 10.5 are one number. */
function plain(decimal: string | null | undefined): string | null {
  return decimal?.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '') ?? null;
}

/** A difference for people and JSON, its columns in the order of the table. */
function describeDifference(
  table: TableDefinition,
  { change, before, after }: { change: Change; before: Texts | null; after: Texts },
): RowDifference {
  const key = Object.fromEntries(table.key.map((column) => [column, after[column] ?? null]));
  const differing =
    before === null
      ? []
      : table.fields.filter((field) => differs(field, before, after)).map(({ column }) => column);
  const columns = Object.fromEntries(
    differing.map((column) => [column, { old: before?.[column] ?? null, new: after[column] ?? null }]),
  );
  return { table: `market.${table.name}`, change, key, columns };
}

function differs({ column, kind }: Field, before: Texts, after: Texts): boolean {
  return kind === 'numeric'
    ? plain(before[column]) !== plain(after[column])
    : before[column] !== after[column];
}

/** A difference that jsonb has kept, and so sorted its own way, with its columns in the order of the table again. */
export function inTableOrder(difference: RowDifference): RowDifference {
  const table = tables.find(({ name }) => `market.${name}` === difference.table);
  const columns = table?.fields.map(({ column }) => column) ?? [];
  const ordered = <Value>(values: Readonly<Record<string, Value>>) =>
    Object.fromEntries(
      Object.entries(values).sort(([left], [right]) => columns.indexOf(left) - columns.indexOf(right)),
    );
  return { ...difference, key: ordered(difference.key), columns: ordered(difference.columns) };
}

/** Some of the rows this transaction has written, of every kind of change. */
export async function sampleDifferences(
  client: ClientBase,
  table: TableDefinition,
  runId: number,
  each: number,
): Promise<RowDifference[]> {
  const same = table.key.map((column) => `b.${quote(column)} = a.${quote(column)}`).join(' and ');
  const found = await client.query<{ change: Change; before: Texts | null; after: Texts }>(
    `with written as (
       select ${CHANGE_SQL} as change, case when b.revision is not null then ${textsSql(table, 'b')} end as before,
         ${textsSql(table, 'a')} as after, ${list(table.key, 'a.')}
       from market.${quote(table.name)} a
       left join market_history.${quote(table.name)} b on ${same} and b.valid_to = a.last_changed_at
       -- Rows of this transaction carry its number, or after a savepoint a later one.
       where a.run_id = $1 and age(a.xmin) <= age(pg_current_xact_id()::xid)
     ), numbered as (
       select *, row_number() over (partition by change order by ${list(table.key)}) as place from written
     )
     select change, before, after from numbered where place <= $2 order by change, place`,
    [runId, each],
  );
  return found.rows.map((row) => describeDifference(table, row));
}

/** What a load has stored, as far as its rows are known by it. */
export interface LoadFacts {
  readonly runId: number;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  /** Some of its records were stored before: its days had rows already. */
  readonly hadRows: boolean;
}

export interface Listing {
  readonly limit: number;
  /** Columns whose stored values may have been rounded, and to what. */
  readonly rounded: Readonly<Record<string, number>>;
}

/**
 * Where the records of a load and the rows stored before it differ: what it changed, withdrew or listed
 * again, and what it inserted into a day that had rows already. At most `limit` rows: first where the
 * two contradict each other, then where one fills what the other left open.
 */
export async function differencesOfLoad(
  pool: Pool,
  table: TableDefinition,
  load: LoadFacts,
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
     from market.${quote(table.name)} a
     left join market_history.${quote(table.name)} b on ${same} and b.valid_to = a.last_changed_at
     where a.run_id = $1 and a.exchange = $2 and a.${day} between $3 and $4
       -- The days' locks keep other loads out between the two.
       and a.last_changed_at between $5 and $6 and (b.revision is not null or $7)
     order by b.revision is null, a.withdrawn_at is not null or (${contradicts}) is true desc, ${list(table.key, 'a.')} limit $8`,
    [load.runId, load.exchange, load.from, load.to, load.startedAt, load.finishedAt, load.hadRows, limit],
  );
  return found.rows.map((row) => describeDifference(table, row));
}

/** Do before and after say different things of a column? Null where either says nothing. */
function contradiction(column: string, step: number | undefined): string {
  const differs = `a.${column} <> b.${column}`;
  if (step === undefined) return differs;
  return `(${differs} and not (b.${column} % ${step} = 0 and abs(a.${column} - b.${column}) < ${step}))`;
}

/** Two moments, ISO 8601 and as exact as Postgres keeps them: a run may end within a millisecond of its last row. */
export interface Moments {
  readonly from: string;
  readonly to: string;
}

/** The two moments compared: what was there at the first, and at the second. */
export interface MomentDifference extends Moments {
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
export async function compareMoments(
  pool: Pool,
  operation: Operation,
  moments: Moments,
  limit: number,
): Promise<MomentDifference> {
  const { from, to } = moments;
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

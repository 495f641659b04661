import type { ClientBase } from 'pg';
import type { Field } from '../../operations/fields.ts';
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
export type Texts = Readonly<Record<string, string | null>>;

/** An SQL expression for the data columns of `row` as a jsonb object of texts. */
export function textsSql(table: TableDefinition, row: string): string {
  // jsonb_build_object takes 50 pairs; concatenated objects take any number.
  const pairs = table.fields.map(({ column }) => `'${column}', ${row}.${quote(column)}::text`);
  const parts: string[] = [];
  for (let at = 0; at < pairs.length; at += 40) {
    parts.push(`jsonb_build_object(${pairs.slice(at, at + 40).join(', ')})`);
  }
  return `(${parts.join(' || ')})`;
}

/** An SQL expression for what became of a row: `b` before, `a` after; `b` may be missing. */
export const CHANGE_SQL = `case
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
export function describeDifference(
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

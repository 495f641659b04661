import type { ClientBase } from 'pg';
import type { DayRange } from '../../core/days.ts';
import type { Field } from '../../operations/fields.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Change, RowDifference } from '../state/runs/reports.ts';
import { list, quote } from './merge/merge-sql.ts';

type Queryable = Pick<ClientBase, 'query'>;

/** Data columns of a row, as text. */
type Texts = Readonly<Record<string, string | null>>;

interface Changed {
  readonly change: Change;
  readonly before: Texts | null;
  readonly after: Texts;
}

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

/** A decimal without zeros at its end: 10.50 and 10.5 are the same number. */
function plain(decimal: string | null | undefined): string | null {
  return decimal?.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '') ?? null;
}

/** A difference for people and JSON, its columns in the order of the table. */
function describeDifference(table: TableDefinition, { change, before, after }: Changed): RowDifference {
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

/**
 * SQL for the rows that a load wrote: `a` as it left them, `b` as it found them (for a row that was listed again, its
 * last revision), and the kind of change. With underscores, names of columns of the tables stay free. $1: the load.
 */
function writtenSql(table: TableDefinition, where: string): string {
  const [live, history] = [`market.${quote(table.name)}`, `market_history.${quote(table.name)}`];
  const same = table.key.map((column) => `b.${quote(column)} = a.${quote(column)}`).join(' and ');
  const columns = table.fields.map(({ column }) => column);
  return `
      select case when b.revision is null then 'inserted' when b.withdrawn then 'relisted' else 'updated' end as _change,
        ${list(columns, 'a.')}, to_jsonb(b) as _found, case when b.revision is not null then ${textsSql(table, 'b')} end as _before,
        ${textsSql(table, 'a')} as _after
      from ${live} a left join ${history} b on ${same} and b.revision = a.revision - 1 where a.load_id = $1 ${where}
      union all
      select 'withdrawn', ${list(columns, 'a.')}, to_jsonb(a), ${textsSql(table, 'a')}, ${textsSql(table, 'a')}
      from ${history} a where a.replaced_by_load_id = $1 and a.withdrawn ${where}`;
}

/**
 * Where the records of a load differ from the rows stored before it: rows that it changed, withdrew or listed again,
 * and rows that it inserted into a day that had rows already. At most `limit` rows: first those where both have
 * different values, then those where only one has a value.
 *
 * @param listing.rounded columns whose stored values may have been rounded, and the step that they were rounded to.
 */
export async function differencesOfLoad(
  client: Queryable,
  table: TableDefinition,
  load: DayRange & { readonly loadId: number; readonly exchange: string },
  listing: { readonly limit: number; readonly rounded: Readonly<Record<string, number>> },
): Promise<RowDifference[]> {
  // Where rows have no day, all of the load are of its days.
  const isInDays = (row = '') =>
    `${table.dateColumn === null ? '$3' : row + quote(table.dateColumn)}::date between $3 and $4`;
  const contradicts = table.fields
    .filter(({ column }) => !table.key.includes(column))
    .map(({ column }) => contradiction(quote(column), listing.rounded[column]))
    .join(' or ');
  const history = `market_history.${quote(table.name)}`;
  // New rows are differences only if the days had rows before.
  const hadRows = `exists (select from market.${quote(table.name)} where exchange = $2 and ${isInDays()} and load_id <> $1
    union all select from ${history} where exchange = $2 and ${isInDays()} and replaced_by_load_id = $1)`;
  const text = `select _change as change, _before as before, _after as after
       from (${writtenSql(table, `and a.exchange = $2 and ${isInDays('a.')}`)}) a,
         jsonb_populate_record(null::${history}, a._found) b
      where a._before is not null or ${hadRows}
      order by a._before is null, a._change = 'withdrawn' or (${contradicts}) is true desc, ${list(table.key, 'a.')} limit $5`;
  const { loadId, exchange, from, to } = load;
  const { rows } = await client.query<Changed>(text, [loadId, exchange, from, to, listing.limit]);
  return rows.map((row) => describeDifference(table, row));
}

/** The condition that a column has different values before and after; null if either is null. */
function contradiction(column: string, step: number | undefined): string {
  const differs = `a.${column} <> b.${column}`;
  if (step === undefined) return differs;
  return `(${differs} and not (b.${column} % ${step} = 0 and abs(a.${column} - b.${column}) < ${step}))`;
}

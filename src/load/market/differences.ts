import type { ClientBase } from 'pg';
import type { Field } from '../../operations/fields.ts';
import { type DataSet, tablesFilledBy } from '../../operations/operation.ts';
import type { TableDefinition } from '../../operations/table.ts';
import { LOADS } from '../state/loads/loads.ts';
import type { readWindowLoad } from '../state/runs/outcomes.ts';
import type { Change, RowDifference } from '../state/runs/reports.ts';
import { isWithinYears, list, quote } from './merge/merge-sql.ts';

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

/** What is read of the rows that a load wrote. With underscores, names of columns of the tables stay free. */
const CHANGED = '_change as change, _before as before, _after as after';

/**
 * SQL for the rows that a load wrote: `a` as it left them, `b` as it found them (for a row that was listed again, its
 * last revision), and the kind of change. $1: the load.
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

/** Runs a query for changed rows: the kind of change, and the texts before and after. */
async function readDifferences(
  client: Queryable,
  table: TableDefinition,
  text: string,
  values: readonly unknown[],
): Promise<RowDifference[]> {
  const { rows } = await client.query<Changed>(text, [...values]);
  return rows.map((row) => describeDifference(table, row));
}

/** The order in which changes are listed: corrections first. */
const inOrder = (change: string) =>
  `array_position(array['updated', 'withdrawn', 'relisted', 'inserted'], ${change})`;

/** Some of the rows of these days that a load has written. @param each how many of each kind of change. */
export function sampleDifferences(
  client: Queryable,
  table: TableDefinition,
  { loadId, days }: { readonly loadId: number; readonly days: readonly string[] },
  each: number,
): Promise<RowDifference[]> {
  const text = `with written as (${writtenSql(table, isWithinYears(table, days, 'a'))}
     ), numbered as (
       select *, row_number() over (partition by _change order by ${list(table.key)}) as _place from written
     )
     select ${CHANGED} from numbered where _place <= $2 order by ${inOrder('_change')}, _place`;
  return readDifferences(client, table, text, [loadId, each]);
}

/**
 * Where the records of a load differ from the rows stored before it: rows that it changed, withdrew or listed again,
 * and rows that it inserted into a day that had rows already. At most `limit` rows: first those where both have
 * different values, then those where only one has a value.
 *
 * @param listing.rounded columns whose stored values may have been rounded, and the step that they were rounded to.
 */
export function differencesOfLoad(
  client: Queryable,
  table: TableDefinition,
  load: NonNullable<Awaited<ReturnType<typeof readWindowLoad>>>,
  listing: { readonly limit: number; readonly rounded: Readonly<Record<string, number>> },
): Promise<RowDifference[]> {
  const day = quote(table.dateColumn ?? 'trade_date');
  const contradicts = table.fields
    .filter(({ column }) => !table.key.includes(column))
    .map(({ column }) => contradiction(quote(column), listing.rounded[column]))
    .join(' or ');
  const history = `market_history.${quote(table.name)}`;
  // New rows count as differences only if the days had rows before.
  const hadRows = `exists (select from market.${quote(table.name)} where exchange = $2 and ${day} between $3 and $4 and load_id <> $1
    union all select from ${history} where exchange = $2 and ${day} between $3 and $4 and replaced_by_load_id = $1)`;
  const text = `select ${CHANGED}
       from (${writtenSql(table, `and a.exchange = $2 and a.${day} between $3 and $4`)}) a,
         jsonb_populate_record(null::${history}, a._found) b
      where a._before is not null or ${hadRows}
      order by a._before is null, a._change = 'withdrawn' or (${contradicts}) is true desc, ${list(table.key, 'a.')} limit $5`;
  const { loadId, exchange, from, to } = load;
  return readDifferences(client, table, text, [loadId, exchange, from, to, listing.limit]);
}

/** The condition that a column has different values before and after; null if either is null. */
function contradiction(column: string, step: number | undefined): string {
  const differs = `a.${column} <> b.${column}`;
  if (step === undefined) return differs;
  return `(${differs} and not (b.${column} % ${step} = 0 and abs(a.${column} - b.${column}) < ${step}))`;
}

/** A moment, ISO 8601 with all digits, and the last version committed by then. */
export interface VersionAndTime {
  readonly at: string;
  readonly version: number;
}

/** Two versions compared. */
export type VersionDifference = Awaited<ReturnType<typeof compareVersions>>;

/** The two versions that are compared. */
export interface Versions {
  readonly from: VersionAndTime;
  readonly to: VersionAndTime;
}

/**
 * What differs in the tables of a data set between two versions, from their revisions. Lists at most `limit` rows,
 * updated ones first and new ones last, and says how many more there are.
 */
export async function compareVersions(
  client: Queryable,
  dataSet: DataSet,
  { from, to }: Versions,
  limit: number,
) {
  const counts = { inserted: 0, updated: 0, withdrawn: 0, relisted: 0 };
  const rows: RowDifference[] = [];
  for (const table of tablesFilledBy(dataSet)) {
    const totals = await client.query<{ change: Change; rows: number }>(
      `${compared(table)} select change, count(*)::int as rows from compared group by 1`,
      [from.version, to.version],
    );
    for (const total of totals.rows) counts[total.change] += total.rows;
    const shown = `${compared(table)} select change, before, after from compared
        order by ${inOrder('change')}, ${list(table.key)} limit $3`;
    const bounds = [from.version, to.version, limit - rows.length];
    for (const row of await readDifferences(client, table, shown, bounds)) rows.push(row);
  }
  const all = counts.inserted + counts.updated + counts.withdrawn + counts.relisted;
  return {
    operation: dataSet.name,
    from: from.at,
    to: to.at,
    states: { from: from.version, to: to.version },
    ...counts,
    rows,
    notListed: all - rows.length,
  };
}

/**
 * Rows that loads after version $1 and up to version $2 wrote or withdrew, as they were in both. Rows that are the
 * same in both (a correction that was taken back) are left out. Rows that came and went in between count as withdrawn.
 */
function compared(table: TableDefinition): string {
  const name = quote(table.name);
  const keys = list(table.key);
  const values = table.fields.map(({ column }) => column).filter((column) => !table.key.includes(column));
  const same = table.key.map((column) => `h.${quote(column)} = k.${quote(column)}`).join(' and ');
  return `
    with loaded as materialized (
      select id from ${LOADS} where state > $1::bigint and state <= $2::bigint
    ), touched as (
      select ${keys} from market.${name} where load_id in (select id from loaded)
      union select ${keys} from market_history.${name}
       where load_id in (select id from loaded) or replaced_by_load_id in (select id from loaded)
    ), compared as (
      select ${list(table.key, 'k.')},
        case when b.revision is not null then ${textsSql(table, 'b')} when a.revision is not null and w.revision is not null then ${textsSql(table, 'w')} end as before,
        case when a.revision is not null then ${textsSql(table, 'a')} else ${textsSql(table, 'w')} end as after,
        case when a.revision is null then 'withdrawn' when b.revision is not null then 'updated'
          when w.revision is not null then 'relisted' else 'inserted' end as change
      from touched k
      left join market.${quote(`${table.name}_at`)}($2) a using (${keys})
      left join market.${quote(`${table.name}_at`)}($1) b using (${keys})
      left join lateral (
        -- The last withdrawn revision: by the end if the row is gone then, else by the start.
        select h.* from market_history.${name} h join ${LOADS} l on l.id = h.replaced_by_load_id
         where ${same} and h.withdrawn and l.state <= case when a.revision is null then $2::bigint else $1::bigint end
         order by h.revision desc limit 1) w on true
      where a.revision is null or b.revision is null
        or row(${list(values, 'a.')}) is distinct from row(${list(values, 'b.')})
    )`;
}

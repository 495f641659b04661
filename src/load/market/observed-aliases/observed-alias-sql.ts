import { UNKNOWN_DAY } from '../../../core/days.ts';
import type { Naming, TableDefinition } from '../../../operations/table.ts';
import { quote } from '../merge/merge-sql.ts';

/** The key of `etl.observed_aliases`, without exchange and source. */
const KEY = ['symbol', 'series', 'isin', 'scrip_code', 'name', 'link'] as const;

/** The statements that update `etl.observed_aliases` from one table, for one way in which its rows name instruments. */
interface ObservedAliasSql {
  /**
   * Whether the first or last day of an observed alias may be wrong, because one of these loads withdrew or renamed a row of
   * that day. $1: exchange, $2: loads, $3 to the last: first and last day of each range of days that they changed, if the
   * table has days.
   *
   * @param ranges how many ranges.
   */
  readonly areOutdated: (ranges: number) => string;
  /**
   * Inserts the aliases of the rows of these loads, and extends the days of known ones. Returns whether instruments may
   * have to be identified anew. Parameters as for `areOutdated`. All loads of a transaction in one statement: Postgres keeps
   * every version of an alias until the transaction ends, and looks at each of them in the next statement.
   */
  readonly observe: (ranges: number) => string;
  /** Inserts the aliases of all rows of an exchange, or extends the days of known ones. $1: exchange. */
  readonly observeAll: string;
}

/** The zone of the exchanges, for the days of date-times. */
const ZONE = 'Asia/Kolkata';

const built = new WeakMap<TableDefinition, readonly ObservedAliasSql[]>();

/** The statements for a table, one set for each way in which its rows name instruments. */
export function observedAliasSql(table: TableDefinition): readonly ObservedAliasSql[] {
  let all = built.get(table);
  if (all === undefined) {
    all = table.names.map((naming) => build(table, naming));
    built.set(table, all);
  }
  return all;
}

function build(table: TableDefinition, naming: Naming): ObservedAliasSql {
  const target = `market.${quote(table.name)}`;
  const source = `'${table.name}'`;
  // Loads are compared with a list, not joined, because the planner takes days that it has no statistics of to be empty,
  // and would compare each row with each load.
  const writtenBy = (row: string, column: string, ranges: number) =>
    `${row}.exchange = $1 and ${row}.${column} = any($2::bigint[])${ofDays(row, ranges)}`;
  // Said of each side of a join: the planner locks the partitions that may have rows of these days, and no others.
  const ofDays = (row: string, ranges: number) => {
    const { dateColumn } = table;
    if (dateColumn === null) return '';
    const days = Array.from(
      { length: ranges },
      (_, at) => `${row}.${quote(dateColumn)} between $${3 + 2 * at}::date and $${4 + 2 * at}::date`,
    );
    return ` and (${days.join(' or ')})`;
  };
  const day = (row: string) => dayOf(table, naming, row);
  const keyExpressions = (row: string) => keyOf(table, naming, row);
  const keyColumns = (row: string) =>
    keyExpressions(row)
      .map((expression, at) => `${expression} as ${KEY[at]}`)
      .join(', ');
  const alias = (row: string) => `${keyColumns(row)}, ${day(row)} as day`;
  const named = (row: string) => [...keyExpressions(row), day(row)].join(', ');
  const columns = namingColumns(table, naming);
  const key = (row: string) => KEY.map((column) => `${row}.${column}`).join(', ');
  const sameKey = (left: string, right: string) =>
    KEY.map((column) => `${left}.${column} = ${right}.${column}`).join(' and ');
  // Looked up one by one. Joined, each row would be compared with each alias where the planner takes both to be few,
  // which it does once autovacuum has found the table empty.
  const stored = (row: string) => `lateral (
            select * from etl.observed_aliases s
             where s.exchange = ${row}.exchange and s.source = ${row}.source and ${sameKey('s', row)} limit 1)`;
  const insert = (rows: string) => `
        insert into etl.observed_aliases as s (exchange, source, ${KEY.join(', ')}, first_seen, last_seen) ${rows}
            on conflict on constraint observed_aliases_key do update
           set first_seen = least(s.first_seen, excluded.first_seen), last_seen = greatest(s.last_seen, excluded.last_seen)`;
  const sameRow = table.key.map((column) => `h.${quote(column)} = t.${quote(column)}`).join(' and ');
  // Grouped by the columns as they are first, because there are many rows and few names: their texts are cut after that.
  // Without the offset, Postgres would move the condition on the names inside, and cut the texts of each row for it.
  const aliases = (rows: string) => `
    select exchange, ${source} as source, ${KEY.join(', ')}, min(first_day) as first_seen, max(last_day) as last_seen
      from (select t.exchange, ${keyColumns('t')}, t.first_day, t.last_day
              from (select ${columns}, min(${day('t')}) as first_day, max(${day('t')}) as last_day
                      from ${rows} group by ${columns} offset 0) as t) as named
     where (symbol <> '' or isin <> '' or scrip_code > 0) and first_day is not null
     group by exchange, ${KEY.join(', ')}`;
  return {
    areOutdated: (ranges) => `
      with gone as (
        select distinct ${key('was')}, was.day
          from (select h.withdrawn, ${alias('h')}, row(${named('h')}) is distinct from row(${named('t')}) as differs
                  from market_history.${quote(table.name)} h
                  -- Looked up one by one as well: the planner takes days to be empty, and would read the whole day for each.
                  left join lateral (select * from ${target} t where ${sameRow}${ofDays('t', ranges)} limit 1) t on true
                 where ${writtenBy('h', 'replaced_by_load_id', ranges)}) as was
         where was.withdrawn or was.differs
      )
      select exists (
        select from (select g.*, $1 as exchange, ${source} as source from gone g) as g cross join ${stored('g')} as s
         where g.day in (s.first_seen, s.last_seen)) as outdated`,
    observe: (ranges) => `
      with observed as materialized (
        select n.*, s.id, s.instrument_id, s.precedence, s.first_seen as since
          from (${aliases(`${target} t where ${writtenBy('t', 'load_id', ranges)}`)}) as n left join ${stored('n')} as s on true
         where s.id is null or n.first_seen < s.first_seen or n.last_seen > s.last_seen
      ), written as (
        ${insert(`select exchange, source, ${KEY.join(', ')}, first_seen, last_seen from observed`)}
      )
      -- Of a second line the last day counts too: it is of the share that had the ISIN then. Of a name that another
      -- instrument has had since as well: the one that is seen with it again gets it back.
      select exists (select from observed o where id is null or first_seen < since or precedence = 2 or exists (
        select from etl.alias_owners w
         where w.exchange = o.exchange and w.kind in ('series', 'symbol') and w.symbol = o.symbol and w.series in ('', o.series)
           and w.valid_to = 'infinity' and w.instrument_id <> o.instrument_id)) as changed`,
    observeAll: insert(aliases(`${target} t where t.exchange = $1`)),
  };
}

/** Longer values are cut, because Postgres limits the size of index entries; real ones are shorter. */
const LENGTHS = { symbol: 200, series: 50, isin: 50, name: 200 } as const;

/** Columns of the table, as alias t, that an alias is made of. */
function namingColumns({ key, names }: TableDefinition, naming: Naming): string {
  const { symbol, series, isin, scripCode, name } = naming;
  const columns = ['exchange', symbol, series, isin, scripCode, name, ...(names.length > 1 ? key : [])];
  const own = columns.filter((column) => column !== undefined);
  return [...new Set(own)].map((column) => `t.${quote(column)}`).join(', ');
}

/** The key of a row's alias, as expressions over the row's columns. */
function keyOf(table: TableDefinition, naming: Naming, row: string): string[] {
  const text = (column: string | undefined, length: number) =>
    column === undefined ? "''::text" : `coalesce(left(${row}.${quote(column)}, ${length}), '')`;
  const linked = table.names.length > 1 ? table.key.map((column) => `${row}.${quote(column)}`) : [];
  return [
    text(naming.symbol, LENGTHS.symbol),
    text(naming.series, LENGTHS.series),
    text(naming.isin, LENGTHS.isin),
    naming.scripCode === undefined ? '0::bigint' : `coalesce(${row}.${quote(naming.scripCode)}, 0)::bigint`,
    text(naming.name, LENGTHS.name),
    linked.length === 0 ? "''::text" : `md5(concat_ws('|', ${linked.join(', ')}))`,
  ];
}

/** The day on which the instrument of a row had the names, as an expression over the row's columns. */
function dayOf(table: TableDefinition, naming: Naming, row: string): string {
  const days = naming.day.map((column) => {
    const field = table.fields.find((one) => one.column === column);
    return field?.kind === 'datetime'
      ? `(${row}.${quote(column)} at time zone '${ZONE}')::date`
      : `nullif(${row}.${quote(column)}, date '${UNKNOWN_DAY}')`;
  });
  return `coalesce(${days.join(', ')})${naming.dayBefore === true ? ' - 1' : ''}`;
}

import { UNKNOWN_DAY } from '../../core/days.ts';
import { MARKET_ZONE } from '../../core/exchanges.ts';
import type { Naming, TableDefinition } from '../../declaration/table.ts';
import { quote } from '../merge/merge-sql.ts';

/** The key of `etl.observed_aliases`, without exchange and source. */
const KEY = ['symbol', 'series', 'isin', 'scrip_code', 'name', 'link'] as const;

/** True if each row shows its names on its own day, so that the rows of some days have all names of these days. */
export function hasDaysOfRows({ names, dateColumn }: TableDefinition): boolean {
  return names.every(({ day, dayBefore }) => day.length === 1 && day[0] === dateColumn && dayBefore !== true);
}

/**
 * Makes `etl.observed_aliases` what it is by the rows of some days of a table, and by what it says of all other days.
 * Returns `changed`, whether instruments may have to be identified anew, and `lost`, whether a name was seen on one of
 * these days first or last, is not any more, and was seen on other days as well: then it stays as it is, because only
 * more days tell. $1: exchange, $2 and $3: first and last day.
 *
 * Measured with 1.4 million rows on two busy cores: two days take 0.2 s, a year 0.9 s, all days 5 s.
 */
export function observeStatement(table: TableDefinition): string {
  const key = (row: string) => KEY.map((column) => `${row}.${column}`).join(', ');
  const isSameKey = KEY.map((column) => `s.${column} = o.${column}`).join(' and ');
  const rows = table.names.map((naming) => namedRows(table, naming)).join(' union all ');
  return `
    with observed as materialized (
      select ${KEY.join(', ')}, min(first_day) as first_seen, max(last_day) as last_seen from (${rows}) as named
       where (symbol <> '' or isin <> '' or scrip_code > 0) and first_day is not null
       group by ${KEY.join(', ')}
    ), compared as materialized (
      select ${key('o')}, s.id, s.precedence, s.instrument_id, s.first_seen as known_first, s.last_seen as known_last,
             case when s.first_seen < $2::date then s.first_seen else o.first_seen end as first_seen,
             case when s.last_seen > $3::date then s.last_seen else o.last_seen end as last_seen
        from observed o
        -- Looked up one by one. Joined, each row would be compared with each alias where the planner takes both to be few,
        -- which it does once autovacuum has found the table empty.
        left join lateral (
          select * from etl.observed_aliases s
           where s.exchange = $1 and s.source = '${table.name}' and ${isSameKey} limit 1) as s on true
    ), gone as materialized (
      select s.id, s.first_seen >= $2::date and s.last_seen <= $3::date as is_whole from etl.observed_aliases s
       where s.exchange = $1 and s.source = '${table.name}'
         and (s.first_seen between $2::date and $3::date or s.last_seen between $2::date and $3::date)
         and s.id not in (select c.id from compared c where c.id is not null)
    ), deleted as (
      -- Not joined, for the same reason.
      delete from etl.observed_aliases s where s.id = any(array(select g.id from gone g where g.is_whole))
    ), written as (
      insert into etl.observed_aliases as s (exchange, source, ${KEY.join(', ')}, first_seen, last_seen)
      select $1, '${table.name}', ${key('c')}, c.first_seen, c.last_seen from compared c
       where c.id is null or c.first_seen <> c.known_first or c.last_seen <> c.known_last
          on conflict on constraint observed_aliases_key do update
         set first_seen = excluded.first_seen, last_seen = excluded.last_seen
    )
    -- Of a second line the last day counts too: it is of the share that had the ISIN then. Of a name that another
    -- instrument has had since as well: the one that is seen with it again gets it back.
    select exists (select from gone where is_whole) or exists (
             select from compared c where c.id is null or c.first_seen <> c.known_first or c.last_seen < c.known_last
                or (c.last_seen > c.known_last and (c.precedence = 2 or exists (
                  select from etl.alias_owners w
                   where w.exchange = $1 and w.kind in ('series', 'symbol') and w.symbol = c.symbol
                     and w.series in ('', c.series) and w.valid_to = 'infinity' and w.instrument_id <> c.instrument_id)))) as changed,
           exists (select from gone where not is_whole) as lost`;
}

/**
 * The names that rows of the days have. Grouped by the columns as they are first, because there are many rows and few
 * names: their texts are cut after that. Without the offset, Postgres would move the condition on the names inside, and
 * cut the texts of each row for it.
 */
function namedRows(table: TableDefinition, naming: Naming): string {
  const columns = namingColumns(table, naming);
  const names = buildAliasKey(table, naming, 't').map((expression, at) => `${expression} as ${KEY[at]}`);
  const day = buildAliasDay(table, naming, 't');
  const isOfDays =
    table.dateColumn !== null && hasDaysOfRows(table)
      ? ` and t.${quote(table.dateColumn)} between $2::date and $3::date`
      : '';
  return `
      select ${names.join(', ')}, t.first_day, t.last_day
        from (select ${columns}, min(${day}) as first_day, max(${day}) as last_day
                from market.${quote(table.name)} t where t.exchange = $1${isOfDays}
               group by ${columns} offset 0) as t`;
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
function buildAliasKey(table: TableDefinition, naming: Naming, row: string): string[] {
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
function buildAliasDay(table: TableDefinition, naming: Naming, row: string): string {
  const days = naming.day.map((column) => {
    const field = table.fields.find((declared) => declared.column === column);
    return field?.kind === 'datetime'
      ? `(${row}.${quote(column)} at time zone '${MARKET_ZONE}')::date`
      : `nullif(${row}.${quote(column)}, date '${UNKNOWN_DAY}')`;
  });
  return `coalesce(${days.join(', ')})${naming.dayBefore === true ? ' - 1' : ''}`;
}

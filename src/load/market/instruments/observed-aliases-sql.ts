import type { Naming, TableDefinition } from '../../../operations/table.ts';
import { quote } from '../merge-sql.ts';

/** What tells one sighting from another, beside exchange and source; see schema/instruments.ts. */
const KEY = ['symbol', 'series', 'isin', 'scrip_code', 'name', 'link'] as const;

/** The statements that keep `etl.observed_aliases` in step with one table, per naming of its rows. */
export interface ObservedAliasSql {
  /**
   * Sightings that rows of a run no longer bear out, because they say something else now or were
   * withdrawn, on the first or last day of the sighting. $1: exchange, $2: run, $3, $4: first and last day.
   */
  readonly doubt: string;
  /** Looks up anew when sightings were. $1: exchange, $2: their ids, $3: their symbols, none empty or of SYMBOL_LENGTH. */
  readonly lookUp: string;
  /** The same where the symbols do not tell the rows. $1: exchange, $2: their ids. */
  readonly lookUpAll: string;
  /** What the rows of a run say. Answers with those whose identity is to be told. Parameters as above. */
  readonly see: string;
  /** What all rows of an exchange say, whatever the run, where none of its sightings are there yet. $1: exchange. */
  readonly seeAll: string;
}

/** The days of names are Indian ones, as the exchanges are. */
const ZONE = 'Asia/Kolkata';

const built = new WeakMap<TableDefinition, readonly ObservedAliasSql[]>();

/** The statements for a table, one set per naming; none where its rows name no instrument. */
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
  const dated = table.dateColumn === null ? '' : ` and t.${quote(table.dateColumn)} between $3 and $4`;
  const written = `t.exchange = $1 and t.run_id = $2${dated}`;
  const said = (row: string) => `${sayings(table, naming, row).join(', ')}`;
  const key = (row: string) => KEY.map((column) => `${row}.${column}`).join(', ');
  const sameKey = (left: string, right: string) =>
    KEY.map((column) => `${left}.${column} = ${right}.${column}`).join(' and ');
  const named = `(symbol <> '' or isin <> '' or scrip_code > 0) and day is not null`;
  const sameRow = table.key.map((column) => `h.${quote(column)} = t.${quote(column)}`).join(' and ');
  const seen = (where: string) => `
    select exchange, ${source} as source, ${KEY.join(', ')}, min(day) as first_seen, max(day) as last_seen
      from (select t.exchange, ${said('t')} from ${target} t where ${where}t.withdrawn_at is null) as rows
     where ${named} group by exchange, ${KEY.join(', ')}`;
  const byDay = naming.dayBefore !== true && naming.day.length === 1 && naming.day[0] === table.dateColumn;
  const everyRow = (narrowed: string) => `
        select s.id, min(r.day) as first_seen, max(r.day) as last_seen
          from etl.observed_aliases s
          left join (select ${said('t')} from ${target} t
                      where t.exchange = $1 and t.withdrawn_at is null ${narrowed}) as r on ${sameKey('s', 'r')}
         where s.id = any($2) group by s.id`;
  // From each end inwards to the first row that says so: years of rows lie between. What this very run
  // says of days outside is yet to be seen.
  const outermost = (direction: 'asc' | 'desc') => {
    const day = `t.${quote(table.dateColumn ?? '')}`;
    return `lateral (
            select ${day} as day from ${target} t cross join lateral (select ${said('t')}) as r
             where t.exchange = $1 and t.withdrawn_at is null and t.${quote(naming.symbol)} = s.symbol
               and ${day} between s.first_seen and s.last_seen and ${sameKey('s', 'r')}
             order by ${day} ${direction} limit 1)`;
  };
  const bothEnds = `
        select s.id, earliest.day as first_seen, latest.day as last_seen
          from etl.observed_aliases s
          left join ${outermost('asc')} as earliest on true
          left join ${outermost('desc')} as latest on true
         where s.id = any($2) and s.symbol = any($3)`;
  const lookUp = (found: string) => `
      with now as materialized (${found}
      ), moved as (
        update etl.observed_aliases s set first_seen = now.first_seen, last_seen = now.last_seen
          from now where s.id = now.id and now.first_seen is not null
      )
      delete from etl.observed_aliases s using now where s.id = now.id and now.first_seen is null`;
  return {
    doubt: `
      with gone as (
        select distinct ${key('was')}, was.day
          from (select t.withdrawn_at, ${said('h')}, row(${expressions(table, naming, 'h')}) is distinct from row(${expressions(table, naming, 't')}) as differs
                  from ${target} t join market_history.${quote(table.name)} h on ${sameRow} and h.valid_to = t.last_changed_at
                 where ${written} and h.withdrawn_at is null) as was
         where was.withdrawn_at is not null or was.differs
      )
      select distinct s.id, s.symbol, s.isin, s.scrip_code
        from etl.observed_aliases s join gone g on ${sameKey('s', 'g')}
       where s.exchange = $1 and s.source = ${source} and g.day in (s.first_seen, s.last_seen)`,
    lookUp: lookUp(byDay ? bothEnds : everyRow(`and t.${quote(naming.symbol)} = any($3)`)),
    lookUpAll: lookUp(everyRow('')),
    see: `
      with judged as materialized (
        select n.*, s.id, s.instrument_id, s.first_seen as since, s.last_seen as until
          from (${seen(`${written} and `)}) as n left join lateral (
            select * from etl.observed_aliases s
             where s.exchange = n.exchange and s.source = n.source and ${sameKey('s', 'n')} limit 1) as s on true
         where s.id is null or n.first_seen < s.first_seen or n.last_seen > s.last_seen
      ), added as (
        insert into etl.observed_aliases (exchange, source, ${KEY.join(', ')}, first_seen, last_seen)
        select exchange, source, ${KEY.join(', ')}, first_seen, last_seen from judged where id is null
      ), moved as (
        update etl.observed_aliases s
           set first_seen = least(s.first_seen, j.first_seen), last_seen = greatest(s.last_seen, j.last_seen)
          from judged j where s.id = j.id
      )
      select distinct symbol, isin, scrip_code from judged j
       where id is null or (first_seen < since and ${contested()})`,
    seeAll: `insert into etl.observed_aliases (exchange, source, ${KEY.join(', ')}, first_seen, last_seen) ${seen('t.exchange = $1 and ')}`,
  };
}

/**
 * Being seen earlier changes an identity only where the order of days decides it: where the symbol or
 * the instrument has been seen with another ISIN (BSE: scrip code) as well.
 */
function contested(): string {
  const other = `case when o.exchange = 'BSE' then o.scrip_code <> j.scrip_code else o.isin <> j.isin end`;
  return `(exists (select from etl.observed_aliases o where o.exchange = j.exchange and o.symbol = j.symbol and ${other})
        or exists (select from etl.observed_aliases o where o.instrument_id = j.instrument_id and ${other}))`;
}

/** Of longer symbols a sighting keeps the beginning only. */
export const SYMBOL_LENGTH = 200;

/** Why these lengths: a name sits in an index, whose entries Postgres limits; real ones are shorter. */
const LENGTHS = { symbol: SYMBOL_LENGTH, series: 50, isin: 50, name: 200 } as const;

/** What a row says, as expressions over its columns: those of KEY, then the day. */
function expressions(table: TableDefinition, naming: Naming, row: string): string[] {
  const text = (column: string | undefined, length: number) =>
    column === undefined ? "''::text" : `coalesce(left(${row}.${quote(column)}, ${length}), '')`;
  const linked = table.names.length > 1 ? table.key.map((column) => `${row}.${quote(column)}`) : [];
  const days = naming.day.map((column) => {
    const field = table.fields.find((one) => one.column === column);
    return field?.kind === 'datetime'
      ? `(${row}.${quote(column)} at time zone '${ZONE}')::date`
      : `${row}.${quote(column)}`;
  });
  return [
    text(naming.symbol, LENGTHS.symbol),
    text(naming.series, LENGTHS.series),
    text(naming.isin, LENGTHS.isin),
    naming.scripCode === undefined ? '0::bigint' : `coalesce(${row}.${quote(naming.scripCode)}, 0)::bigint`,
    text(naming.name, LENGTHS.name),
    linked.length === 0 ? "''::text" : `md5(concat_ws('|', ${linked.join(', ')}))`,
    `coalesce(${days.join(', ')})${naming.dayBefore === true ? ' - 1' : ''}`,
  ];
}

const sayings = (table: TableDefinition, naming: Naming, row: string) =>
  expressions(table, naming, row).map((expression, at) => `${expression} as ${[...KEY, 'day'][at]}`);

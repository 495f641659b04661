import type { Shape } from '../../../operations/operation.ts';
import { comparedDay, listedInFull } from '../../../operations/registry.ts';
import type { TableDefinition } from '../../../operations/table.ts';
import { LOADS } from '../../state/loads/loads.ts';
import { DAY_ROWS, replaceDayRows } from '../../state/withdrawals.ts';
import {
  type ApplySql,
  AUDIT,
  archive,
  builtOnce,
  differs,
  list,
  MOMENT,
  mergeStatement,
  type Parts,
  partsOf,
  quote,
  rankedRecords,
  sourceTime,
  storedRow,
  withdrawStatement,
  type Years,
} from '../merge/merge-sql.ts';

/** The statements that fold the responses of a table in temporary tables and store the result, see fold.ts. */
interface FoldSql extends ApplySql {
  /** Creates the temporary tables; they are dropped with the transaction. */
  readonly create: string;
  /** Makes the statistics of the temporary tables. */
  readonly analyze: string;
  /** Makes those of the records of the response that is being loaded. */
  readonly analyzeOwn: string;
  /** Creates one more, for the records of the response that is being loaded. */
  readonly createOwn: string;
  /** Deletes the staged records of rows that are there already. */
  readonly skipKnown: string;
  /** Copies rows into the temporary table; their last values are those of the load audit. */
  readonly copyNew: string;
  /** The table of the records of the response that is being loaded. */
  readonly own: string;
  /** Keeps the staged records there, ranked within each key. */
  readonly noteOwn: string;
  /**
   * Writes the stored rows that differ from the result, with all of their values, and counts the records of the
   * response that is being loaded. Newer values of rows that are no longer listed go to the history, so that they
   * return if the row is listed again. $1: run, $2: load, $3: days, $4: when the response was fetched.
   */
  readonly store: string;
  /** Withdraws the stored rows that are not in the result. $1: load, $2: exchange, $3: days. */
  readonly withdrawRest: string;
  /** Like `store`, where no response is being loaded: counts the rows of the result. $1: run, $2: load. */
  readonly storePart: string;
  /**
   * Deletes the past revisions of the keys of which the result has other rows or revisions, and counts these keys and the
   * rows of the result. $1: exchange, $2: days, $3: instruments.
   */
  readonly forget: string;
  /** After `forget`: writes rows and revisions of these keys as they are in the result, and counts the rows. Same parameters. */
  readonly replace: string;
  /** Finds a staged record for which the order of responses matters. $1: when the response was fetched. */
  readonly hasConflict: string;
  /**
   * Begins with the rows and the history of a version. $1: exchange, $2: days, $3: instruments, $4: the version, $5:
   * the position.
   */
  readonly begin: readonly string[];
  /** The same, but only rows whose keys the records of the response that is being loaded have. */
  readonly beginOwn: readonly string[];
  /** Stores the most rows that each day ever had. $1: exchange, $2: days. */
  readonly storeDayRows: string;
}

/** The statements for a table and for rows of these days, see `mergeSql`. */
export const foldSql = builtOnce(build);

function build(table: TableDefinition, years: Years | null): FoldSql {
  const lists = listedInFull(table);
  const temporary = (name: string) => quote(`fold_${name}${table.name}`);
  const tables = {
    target: `pg_temp.${temporary('')}`,
    history: `pg_temp.${temporary('history_')}`,
    dayRows: `pg_temp.${temporary('days_')}`,
  };
  const market = partsOf(table, { years });
  const folded = partsOf(table, { tables, years: null });
  const own = `pg_temp.${temporary('own_')}`;
  const { sameKey, stage } = folded;
  const compared = comparedDay(table);
  const day = compared === null ? '' : quote(compared);
  return {
    target: tables.target,
    // The statements need no index but the primary keys.
    create: [
      `create temp table ${temporary('')} (like ${market.target}, primary key (${list(table.key)})) on commit drop`,
      `create temp table ${temporary('history_')} (like ${market.history}, primary key (${list([...table.key, 'revision'])})) on commit drop`,
      `create temp table ${temporary('days_')} (like ${DAY_ROWS}, primary key (table_name, exchange, day, position)) on commit drop`,
    ].join('; '),
    // Of the key alone: of fifty columns it takes as long as the merge.
    analyze: `analyze ${tables.target} (${list(table.key)}); analyze ${tables.history} (${list(table.key)})`,
    analyzeOwn: `analyze ${own} (${list(table.key)})`,
    createOwn: `create temp table ${temporary('own_')} on commit drop as select s.*, 0::bigint as _rank from ${stage} s with no data`,
    merge: { text: mergeStatement(table, folded) },
    withdraw: { text: withdrawStatement(table, folded) },
    skipKnown: `delete from ${stage} s using ${tables.target} t where ${sameKey('s', 't')}`,
    copyNew: `copy ${tables.target} (${list([...folded.columns, ...AUDIT])}) from stdin`,
    own,
    noteOwn: `insert into ${own} ${rankedRecords(table, folded)}`,
    store: storeStatement(table, market, folded, { own, lists }),
    storePart: storeStatement(table, market, folded, null),
    withdrawRest: `
    with gone as materialized (
      select ${list(table.key, 's.')}, ${MOMENT} as _moment from (
        select ${list(table.key, 't.')} from ${market.target} t where t.exchange = $2 and ${day === '' ? '$3::date[] is not null' : `t.${day} = any($3::date[])`}
        except select ${list(table.key, 'f.')} from ${tables.target} f) s join ${storedRow(market)} on true
    ), archived as (
      ${archive(market, `gone s join ${storedRow(market)} on true`, { withdrawn: true, where: 'true', load: '$1' })}
    ), withdrawn as (
      delete from ${market.target} t using gone s where ${sameKey('t', 's')}${market.isWithin('t')}
    )
    select from gone`,
    // Where the saved time of a row is that of a call, which call it is depends on all responses that came before.
    hasConflict: `select from ${stage} s join ${storedRow(market)} on true
      where ${differs(market.values, { fetchedAt: '$1' })}
         and not coalesce(${sourceTime('source_saved_at', { fetchedAt: '$1' })} < t.source_saved_at, false)
         or s.source_saved_at = $1::timestamptz
         or exists (select from ${LOADS} l where l.fetched_at = t.source_saved_at) limit 1`,
    begin: beginStatements(table, market, folded, isOfPart(table, lists)),
    beginOwn: beginStatements(
      table,
      market,
      folded,
      (row) => `${isConcerned(table, market, { own, lists }, row, '$2')} and ${isAnyPart('$3')}`,
    ),
    ...replaceStatements(table, market, folded, isOfPart(table, lists)),
    storeDayRows: replaceDayRows(table.name, tables.dayRows),
  };
}

function storeStatement(
  table: TableDefinition,
  parts: Parts,
  folded: Parts,
  /** Null if no response is being loaded: then all that was folded is concerned. */
  late: { readonly own: string; readonly lists: Shape['fullSet'] } | null,
): string {
  const { target, history, columns, sameKey } = parts;
  const concerned = (row: string) => (late === null ? 'true' : isConcerned(table, parts, late, row, '$3'));
  const data = columns.filter((column) => !table.key.includes(column));
  const row = (prefix: string) => `row(${list(data, prefix)})`;
  const agrees = `not ${differs(folded.values, { now: 'c', record: 'o', fetchedAt: '$4' })}`;
  return `
    with last as materialized (
      select f.*, true as _live from (select ${list(columns)} from ${folded.target}) f where ${concerned('f')}
      union all
      (select distinct on (${list(table.key, 'h.')}) ${list(columns, 'h.')}, false from ${folded.history} h
        where h.withdrawn and ${concerned('h')} and not exists (select from ${folded.target} f where ${sameKey('f', 'h')})
        order by ${list(table.key, 'h.')}, h.revision desc)
    ), compared as materialized (
      select s.*, ${MOMENT} as _moment, w.revision as _withdrawn, w.valid_to as _ended, w.first_loaded_at as _first, case
          when t.revision is not null then case when ${row('t.')} is distinct from ${row('s.')} then 'update' else 'none' end
          when s._live then case when w.revision is null then 'insert' else 'relist' end
          when w.revision is null or ${row('w.')} is distinct from ${row('s.')} then 'remember' else 'none' end as _action
        from last s left join ${storedRow(parts)} on true
        left join lateral (select * from ${history} w where t.revision is null and w.withdrawn and ${sameKey('w', 's')}
          order by w.revision desc limit 1) w on true
    ), inserted as (
      insert into ${target} (${list([...columns, ...AUDIT])})
      select ${list(columns)}, statement_timestamp(), statement_timestamp(), 1, $1, $2
        from compared where _action = 'insert' order by ${list(table.key)}
    ), relisted as (
      insert into ${target} (${list([...columns, ...AUDIT])})
      select ${list(columns, 's.')}, w.first_loaded_at,
        greatest(statement_timestamp(), w.valid_to + interval '1 microsecond'), w.revision + 1, $1, $2
        from compared s join ${history} w on ${sameKey('w', 's')} and w.revision = s._withdrawn where s._action = 'relist'
    ), remembered as (
      insert into ${history} (${list([...columns, ...AUDIT])}, valid_from, valid_to, withdrawn, replaced_by_load_id)
      select ${list(columns, 's.')}, coalesce(s._first, begins), begins, coalesce(s._withdrawn, 0) + 1, $1, $2, begins,
        begins + interval '1 microsecond', true, $2
        from compared s, greatest(statement_timestamp(), s._ended) as begins where s._action = 'remember'
    ), archived as (
      ${archive(parts, `compared s join ${storedRow(parts)} on true`, { withdrawn: false, where: "s._action = 'update'", load: '$2' })}
    ), updated as (
      update ${target} t set ${data.map((column) => `${quote(column)} = s.${quote(column)}`).join(', ')},
        last_changed_at = s._moment, revision = t.revision + 1, run_id = $1, load_id = $2
        from compared s where s._action = 'update' and ${sameKey('t', 's')}${parts.isWithin('t')}
    )${
      late === null
        ? `
    select count(*) filter (where _action = 'insert') as inserted, count(*) filter (where _action in ('update', 'relist')) as updated,
      count(*) filter (where _live and _action = 'none') as unchanged, count(*) filter (where _action <> 'none') as changed,
      count(*) filter (where _action <> 'none') as written from compared`
        : `, counted as (
      select c._action, c._live and ${agrees} as agrees from ${late.own} o join compared c on ${sameKey('c', 'o')} where o._rank = 1
    )
    select (select count(*) from ${late.own} where _rank > 1) as duplicate,
      count(*) filter (where _action = 'insert') as inserted,
      count(*) filter (where _action in ('update', 'relist') and agrees) as updated,
      count(*) filter (where _action = 'none' and agrees) as unchanged,
      count(*) filter (where _action <> 'insert' and not agrees) as stale,
      (select count(*) from compared where _action <> 'none') as written
      from counted`
    }`;
}

/** Copies what `market_history.<table>_at` and the history have of a version. */
function beginStatements(
  table: TableDefinition,
  market: Parts,
  folded: Parts,
  isIncluded: (row: string) => string,
): string[] {
  const { target, history, columns } = market;
  const concerned = (row: string) => `${row}.exchange = $1 and ${isIncluded(row)}${market.isWithin(row)}`;
  const isKnownBy = (condition: string) =>
    `exists (select from ${LOADS} l where ${condition} and l.state <= $4)`;
  const isKnown = (load: string) => isKnownBy(`l.id = ${load}`);
  const copied = [...columns, ...AUDIT];
  const then = copied.map((column) => (column === 'last_changed_at' ? 'h.valid_from' : `h.${quote(column)}`));
  return [
    `insert into ${folded.target} (${list(copied)})
     select ${list(copied, 't.')} from ${target} t where ${concerned('t')} and ${isKnown('t.load_id')}
     union all
     select ${then.join(', ')} from ${history} h
      where ${concerned('h')} and ${isKnown('h.load_id')} and not ${isKnown('h.replaced_by_load_id')}`,
    `insert into ${folded.history} select h.* from ${history} h where ${concerned('h')} and ${isKnown('h.replaced_by_load_id')}`,
    // Those of an older database have no position if it is not known.
    `insert into ${folded.dayRows} select d.* from ${DAY_ROWS} d
      where d.table_name = '${table.name}' and d.exchange = $1 and d.day = any($2::date[]) and ${isAnyPart('$3')}
        and (d.position = '-infinity' or ${isKnownBy('l.position = d.position')})`,
  ];
}

/** True: a statement has to name each of its parameters. */
const isAnyPart = (instruments: string) => `(${instruments}::text[] is null or true)`;

/**
 * The condition that a row is of the days, $2, or instruments, $3, that are folded anew: where a table has no days that
 * responses list in full, of these instruments or, if that is null, any row.
 */
function isOfPart(table: TableDefinition, lists: Shape['fullSet']): (row: string) => string {
  return (row) => {
    if (lists === 'days' && table.dateColumn !== null) {
      return `${row}.${quote(table.dateColumn)} = any($2::date[]) and ${isAnyPart('$3')}`;
    }
    const isRequested = hasRequestedSymbol(table) ? `upper(${row}.symbol) = any($3::text[])` : 'true';
    return `$2::date[] is not null and ($3::text[] is null or ${isRequested})`;
  };
}

/**
 * True if the instrument of a request is in the key of a table, so that responses about others have no row in common.
 */
export const hasRequestedSymbol = ({ fields, key }: TableDefinition): boolean =>
  key.includes('symbol') && fields.some(({ column, from }) => column === 'symbol' && from === 'request');

/** The condition that a row is one of those that the folded responses are about. */
function isConcerned(
  table: TableDefinition,
  { sameKey }: Parts,
  { own, lists }: { readonly own: string; readonly lists: Shape['fullSet'] },
  row: string,
  days: string,
): string {
  if (lists === 'none') {
    return `${days}::date[] is not null and exists (select from ${own} o where ${sameKey('o', row)})`;
  }
  const day = comparedDay(table);
  return day === null ? `${days}::date[] is not null` : `${row}.${quote(day)} = any(${days}::date[])`;
}

function replaceStatements(
  { key }: TableDefinition,
  market: Parts,
  folded: Parts,
  isOfPart: (row: string) => string,
): Pick<FoldSql, 'forget' | 'replace'> {
  const { target, history, columns, sameKey, isWithin } = market;
  const all = [...columns, ...AUDIT];
  const written = all.filter((column) => !key.includes(column));
  const isStored = (row: string) => `${row}.exchange = $1 and ${isOfPart(row)}${isWithin(row)}`;
  // Each with one join, which takes a third of the time of looking for rows that only one of the two has, and back.
  const differing = (stored: string, made: string, numbers: readonly string[]) => `
        select ${key.map((column) => `coalesce(t.${quote(column)}, f.${quote(column)}) as ${quote(column)}`).join(', ')}
          from (select * from ${stored} t where ${isStored('t')}) t full join ${made} f on ${sameKey('t', 'f')} and t.revision = f.revision
         where (${list([...columns, ...numbers], 't.')}) is distinct from (${list([...columns, ...numbers], 'f.')})`;
  const changed = `changed as materialized (${differing(target, folded.target, ['revision'])}
        union${differing(history, folded.history, ['revision', 'withdrawn'])})`;
  return {
    forget: `
    with ${changed}, forgotten as (
      delete from ${history} h using changed c where ${sameKey('h', 'c')} and ${isStored('h')}
    )
    select (select count(*) from changed) as changed, (select count(*) from ${folded.target}) as unchanged`,
    replace: `
    with ${changed}, past as (
      insert into ${history} select h.* from ${folded.history} h join changed c on ${sameKey('h', 'c')}
    ), inserted as (
      insert into ${target} (${list(all)}) select ${list(all, 'f.')} from ${folded.target} f join changed c on ${sameKey('f', 'c')}
       where not exists (select from ${target} t where ${sameKey('t', 'f')}${isWithin('t')}) order by ${list(key, 'f.')} returning 1
    ), updated as (
      update ${target} t set ${written.map((column) => `${quote(column)} = f.${quote(column)}`).join(', ')}
        from ${folded.target} f join changed c on ${sameKey('f', 'c')} where ${sameKey('t', 'f')}${isWithin('t')} returning 1
    ), deleted as (
      delete from ${target} t using changed c where ${sameKey('t', 'c')} and ${isStored('t')}
         and not exists (select from ${folded.target} f where ${sameKey('f', 't')}) returning 1
    ), counts as (
      select (select count(*) from inserted) as inserted, (select count(*) from updated) as updated, (select count(*) from deleted) as withdrawn
    )
    select inserted, updated, withdrawn, inserted + updated as written, (select count(*) from ${folded.target}) - inserted - updated as unchanged
      from counts`,
  };
}

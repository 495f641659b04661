import type { TableDefinition } from '../../declaration/table.ts';
import { comparedDay, listedInFull } from '../../operations/registry.ts';
import { LOADS } from '../../state/loads/loads.ts';
import {
  type ApplySql,
  AUDIT,
  archive,
  buildParts,
  builtOnce,
  differs,
  list,
  MOMENT,
  mergeStatement,
  type Parts,
  quote,
  sourceTime,
  storedRow,
  withdrawStatement,
  type Years,
} from '../merge/merge-sql.ts';

/** The statements that fold the responses of a table into a copy and settle the differences, see fold.ts. */
interface FoldSql extends ApplySql {
  /** Creates the copy, the temporary tables of rows and history; they are dropped with the transaction. */
  readonly createCopy: string;
  /** Makes the statistics of the copy. */
  readonly analyzeCopy: string;
  /** Copies rows into the copy; their last values are those of the load audit. */
  readonly copyNew: string;
  /** Creates a table of the keys of the staged records. */
  readonly noteKeys: string;
  /** Deletes the rows of the copy that have none of these keys. */
  readonly keepNotedKeys: string;
  /**
   * Writes the stored rows that differ from the copy, with all of their values, and counts. Newer values of rows that
   * are no longer listed go to the history, so that they return if the row is listed again. $1: run, $2: load.
   */
  readonly settle: string;
  /** Withdraws the stored rows that the copy does not have. $1: exchange, $2: days, $3: load. */
  readonly withdrawUnlisted: string;
  /** Selects the stored rows that differ from the copy. $1: exchange, $2: days, $3: instruments, null: all. */
  readonly selectDifferences: string;
  /**
   * Selects a row if no row of the exchange, $1, and the instruments, $3, is stored or ever was. Of days, `areNew` of
   * `mergeSql` says it, by the order of an index.
   */
  readonly isEmpty: string;
  /** Stores all of the copy where nothing is stored, rows and history, and counts. */
  readonly storeCopy: string;
  /** Finds a staged record for which the order of responses matters. $1: when the response was fetched. */
  readonly hasConflict: string;
}

/** The statements for a table and for rows of these days, see `mergeSql`. */
export const foldSql = builtOnce(build);

function build(table: TableDefinition, years: Years | null): FoldSql {
  const temporary = (name: string) => quote(`fold_${name}${table.name}`);
  const market = buildParts(table, { years });
  const copy = buildParts(table, {
    tables: {
      target: `pg_temp.${temporary('')}`,
      history: `pg_temp.${temporary('history_')}`,
      mostRows: () => 'null',
    },
    years: null,
  });
  const keys = `pg_temp.${temporary('keys_')}`;
  const all = list([...copy.columns, ...AUDIT]);
  return {
    target: copy.target,
    // The statements need no index but the primary keys.
    createCopy: `create temp table ${temporary('')} (like ${market.target}, primary key (${list(table.key)})) on commit drop;
      create temp table ${temporary('history_')} (like ${market.history}, primary key (${list([...table.key, 'revision'])})) on commit drop`,
    // Of the key alone: of fifty columns it takes as long as the merge.
    analyzeCopy: `analyze ${copy.target} (${list(table.key)}); analyze ${copy.history} (${list(table.key)})`,
    copyNew: `copy ${copy.target} (${all}) from stdin`,
    noteKeys: `create temp table ${temporary('keys_')} on commit drop as select distinct ${list(table.key)} from ${copy.stage}`,
    keepNotedKeys: `delete from ${copy.target} f where not exists (select from ${keys} k where ${copy.sameKey('k', 'f')})`,
    merge: { text: mergeStatement(table, copy) },
    withdraw: { text: withdrawStatement(table, copy) },
    settle: settleStatement(table, market, copy),
    withdrawUnlisted: withdrawUnlistedStatement(table, market, copy),
    selectDifferences: selectDifferences(table, market, copy),
    isEmpty: isEmptyStatement(table, market),
    storeCopy: `
    with past as (insert into ${market.history} select * from ${copy.history}),
      live as (insert into ${market.target} (${all}) select ${all} from ${copy.target} order by ${list(table.key)})
    select (select count(*) from ${copy.target})::float8 as inserted,
      (select count(*) from ${copy.target})::float8 + (select count(*) from ${copy.history}) as changed,
      array(select load_id::float8 from ${copy.target} union select load_id from ${copy.history}
        union select replaced_by_load_id from ${copy.history}) as loads`,
    // Where the saved time of a row is that of a call, which call it is depends on all responses that came before.
    hasConflict: `select from ${copy.stage} s join ${storedRow(market)} on true
      where (
          ${differs(market.values, { fetchedAt: '$1' })}
          and not coalesce(${sourceTime('source_saved_at', { fetchedAt: '$1' })} < t.source_saved_at, false)
        )
        or s.source_saved_at = $1::timestamptz
        or exists (select from ${LOADS} l where l.fetched_at = t.source_saved_at)
      limit 1`,
  };
}

/**
 * `compared`, for a statement: the rows of the copy, and the last revisions of those that it withdrew, each with what is
 * to be done with the stored row.
 */
function comparing(table: TableDefinition, market: Parts, copy: Parts): string {
  const { history, columns, sameKey } = market;
  const key = (prefix: string) => list(table.key, prefix);
  const data = columns.filter((column) => !table.key.includes(column));
  const row = (prefix: string) => `row(${list(data, prefix)})`;
  return `
    last as materialized (
      select f.*, true as _live from (select ${list(columns)}, load_id as _load from ${copy.target}) f
      union all
      (select distinct on (${key('h.')}) ${list(columns, 'h.')}, h.load_id, false from ${copy.history} h
        where h.withdrawn and not exists (select from ${copy.target} f where ${sameKey('f', 'h')})
        order by ${key('h.')}, h.revision desc)
    ), compared as materialized (
      select s.*, ${MOMENT} as _moment, t.load_id as _stored_load, w.revision as _withdrawn, w.valid_to as _ended, w.first_loaded_at as _first, case
          when t.revision is not null and ${row('t.')} is distinct from ${row('s.')} then 'update' when t.revision is not null then 'none'
          when s._live and w.revision is null then 'insert' when s._live then 'relist'
          when w.revision is null or ${row('w.')} is distinct from ${row('s.')} then 'remember' else 'none' end as _action
        from last s left join ${storedRow(market)} on true
        left join lateral (select * from ${history} w where t.revision is null and w.withdrawn and ${sameKey('w', 's')}
          order by w.revision desc limit 1) w on true
    )`;
}

/** Selects the keys of the stored rows of an exchange, $1, and days, $2, that the copy does not have. */
function unlistedRows(table: TableDefinition, market: Parts, copy: Parts): string {
  const day = comparedDay(table);
  return `
      select ${list(table.key, 't.')} from ${market.target} t where t.exchange = $1 and ${
        day === null ? '$2::date[] is not null' : `t.${quote(day)} = any($2::date[])`
      }${market.isWithin('t')}
      except select ${list(table.key, 'f.')} from ${copy.target} f`;
}

function withdrawUnlistedStatement(table: TableDefinition, market: Parts, copy: Parts): string {
  return `
    with gone as materialized (
      select ${list(table.key, 's.')}, ${MOMENT} as _moment
        from (${unlistedRows(table, market, copy)}) s join ${storedRow(market)} on true
    ), archived as (
      ${archive(market, `gone s join ${storedRow(market)} on true`, { withdrawn: true, where: 'true', load: '$3' })}
    ), withdrawn as (
      delete from ${market.target} t using gone s where ${market.sameKey('t', 's')}${market.isWithin('t')}
    )
    select from gone`;
}

/** Selects what is wrong with stored rows, their keys, and the loads that wrote them; of missing ones, the response. */
function selectDifferences(table: TableDefinition, market: Parts, copy: Parts): string {
  const key = (row: string) =>
    `jsonb_build_object(${table.key.map((column) => `'${column}', ${row}.${quote(column)}::text`).join(', ')})`;
  return `
    with ${comparing(table, market, copy)}
    select case _action when 'update' then 'differs' else 'missing' end as problem, ${key('s')} as key,
           coalesce(s._stored_load, s._load)::float8 as "loadId" from compared s where _live and _action in ('insert', 'relist', 'update')
    union all
    select 'unexpected', ${key('t')}, t.load_id::float8 from ${market.target} t
     where ${isOfPart(table)}${market.isWithin('t')} and not exists (select from ${copy.target} f where ${copy.sameKey('f', 't')})`;
}

/**
 * The one writer of differences: what a copy has becomes what is stored, as new revisions of one load. A row that is
 * inserted because somebody has deleted it by hand may have past revisions.
 */
function settleStatement(table: TableDefinition, market: Parts, copy: Parts): string {
  const { target, history, columns, sameKey, isWithin } = market;
  const all = list([...columns, ...AUDIT]);
  const data = columns.filter((column) => !table.key.includes(column));
  return `
    with ${comparing(table, market, copy)}, inserted as (
      insert into ${target} (${all})
      select ${list(columns, 's.')}, statement_timestamp(), statement_timestamp(),
        1 + coalesce((select max(h.revision) from ${history} h where ${sameKey('h', 's')}), 0), $1, $2
        from compared s where s._action = 'insert' order by ${list(table.key, 's.')}
    ), relisted as (
      insert into ${target} (${all})
      select ${list(columns, 's.')}, w.first_loaded_at,
        greatest(statement_timestamp(), w.valid_to + interval '1 microsecond'), w.revision + 1, $1, $2
        from compared s join ${history} w on ${sameKey('w', 's')} and w.revision = s._withdrawn where s._action = 'relist'
    ), remembered as (
      insert into ${history} (${all}, valid_from, valid_to, withdrawn, replaced_by_load_id)
      select ${list(columns, 's.')}, coalesce(s._first, begins), begins, coalesce(s._withdrawn, 0) + 1, $1, $2, begins,
        begins + interval '1 microsecond', true, $2
        from compared s, greatest(statement_timestamp(), s._ended) as begins where s._action = 'remember'
    ), archived as (
      ${archive(market, `compared s join ${storedRow(market)} on true`, { withdrawn: false, where: "s._action = 'update'", load: '$2' })}
    ), updated as (
      update ${target} t set ${data.map((column) => `${quote(column)} = s.${quote(column)}`).join(', ')},
        last_changed_at = s._moment, revision = t.revision + 1, run_id = $1, load_id = $2
        from compared s where s._action = 'update' and ${sameKey('t', 's')}${isWithin('t')}
    )
    select (count(*) filter (where _action = 'insert'))::int as inserted,
      (count(*) filter (where _action in ('update', 'relist')))::int as updated,
      (count(*) filter (where _live and _action = 'none'))::int as unchanged,
      (count(*) filter (where _action <> 'none'))::int as changed
      from compared`;
}

/**
 * The condition that a row `t` is of an exchange, $1, and of a part of it: of a table of which responses list days in full,
 * of these days, $2, else of these instruments, $3; null: of all.
 */
function isOfPart(table: TableDefinition): string {
  const ofPart =
    listedInFull(table) === 'days'
      ? `t.${quote(table.dateColumn ?? '')} = any($2::date[]) and ($3::text[] is null or true)`
      : `$2::date[] is not null and ($3::text[] is null or ${hasRequestedSymbol(table) ? 'upper(t.symbol) = any($3::text[])' : 'true'})`;
  return `t.exchange = $1 and ${ofPart}`;
}

function isEmptyStatement(table: TableDefinition, { target, history, isWithin }: Parts): string {
  const hasNone = (stored: string) =>
    `not exists (select from ${stored} t where ${isOfPart(table)}${isWithin('t')})`;
  return `select where ${hasNone(target)} and ${hasNone(history)}`;
}

/**
 * True if the instrument of a request is in the key of a table, so that responses about others have no row in common.
 */
export const hasRequestedSymbol = ({ fields, key }: TableDefinition): boolean =>
  key.includes('symbol') && fields.some(({ column, from }) => column === 'symbol' && from === 'request');

import { LOAD_AUDIT, SOURCE_AUDIT, type TableDefinition } from '../../declaration/table.ts';
import { comparedDay } from '../../operations/registry.ts';
import { mostRowsSql, NO_DAY } from '../../state/withdrawals.ts';

/** The statements that apply a response to a table, or to the temporary table of a fold. */
export interface ApplySql {
  readonly target: string;
  /** Parameters $1: the run, $2: the load, $3: when the response was fetched. */
  readonly merge: Statement;
  /** The same, if no two of the staged records have the same key. */
  readonly mergeUnique?: Statement;
  /**
   * Withdraws rows that the source no longer lists.
   * $1: the load
   * $2: the exchange
   * $3: the largest share of a day's rows that may be withdrawn
   * $4: how many rows always may
   * $5: whether the source may list nothing at all
   * $6: days (NO_DAY for a whole exchange)
   * $7: those of them whose withdrawal a person has accepted
   * $8: how many rows of these days were listed; if no more are stored, they are not compared; null: they are
   * $9: in a fold, by day the most rows that it had so far, else {}
   */
  readonly withdraw: Statement;
}

/**
 * A statement with a name is prepared once on each connection. Those about the years of a partitioned table have none,
 * because each connection would keep one per year.
 */
interface Statement {
  readonly name?: string;
  readonly text: string;
}

/** The statements that store one table's records; built from the declaration alone. */
interface MergeSql extends ApplySql {
  /** Creates the staging table of a connection; every commit empties it. */
  readonly createStage: string;
  readonly stage: string;
  readonly copy: string;
  /**
   * Returns the server's time if no row of these days is stored or ever was, else no row. $1: exchange, $2: days.
   * Null where the table has no days.
   */
  readonly areNew: string | null;
  /** Copies rows into the table itself; their last values are those of the load audit. */
  readonly copyNew: string;
  /** Counts the rows of some days. $1: exchange, $2: days, not used where responses list a whole exchange. */
  readonly countRows: string;
  /** Reads the rows of some days, for their hint bits. $1: exchange, $2: days. */
  readonly readDays: string;
}

/**
 * Remembers what is built for a table, and for a partitioned one also for the years of the days for which it is called.
 * Names come from declarations, never from data.
 */
export function builtOnce<Sql>(
  build: (table: TableDefinition, years: Years | null) => Sql,
): (table: TableDefinition, days?: Iterable<string>) => Sql {
  const built = new WeakMap<TableDefinition, Map<string, Sql>>();
  return (table, days = []) => {
    const years = findYears(table, days);
    const key = years === null ? '' : `${years.first}-${years.last}`;
    const ofTable = built.get(table) ?? new Map<string, Sql>();
    built.set(table, ofTable);
    const sql = ofTable.get(key) ?? build(table, years);
    ofTable.set(key, sql);
    return sql;
  };
}

/** First and last year of some days. */
export interface Years {
  readonly first: number;
  readonly last: number;
}

/** The years of days, if the table is partitioned by them and there are any; NO_DAY stands for all days. */
function findYears({ partitioned }: TableDefinition, days: Iterable<string>): Years | null {
  if (!partitioned) return null;
  let [first, last] = [Infinity, -Infinity];
  for (const day of days) {
    if (day === NO_DAY) return null;
    const year = Number(day.slice(0, 4));
    if (year < first) first = year;
    if (year > last) last = year;
  }
  return first > last ? null : { first, last };
}

/**
 * The condition, after others, that a row is of these years. Every statement about a partitioned table that does not
 * name its days to the planner otherwise needs it: without it, the transaction locks all partitions and their indexes.
 */
function isWithin({ dateColumn }: TableDefinition, years: Years | null, row: string): string {
  if (years === null || dateColumn === null) return '';
  const [day, begin] = [`${row}.${quote(dateColumn)}`, (year: number) => `make_date(${year}, 1, 1)`];
  return ` and ${day} >= ${begin(years.first)} and ${day} < ${begin(years.last + 1)}`;
}

/**
 * The statements for a table, and for rows of these days: where it is partitioned, they only look at partitions of
 * their years. Without days, at all of them.
 */
export const mergeSql = builtOnce(build);

/** A name as an SQL identifier. */
export const quote = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** The load audit columns, in the order in which the statements write them. */
export const AUDIT = ['first_loaded_at', 'last_changed_at', 'revision', 'run_id', 'load_id'];

/** Names as a list of SQL identifiers, each with a prefix such as `t.`. */
export const list = (names: readonly string[], prefix = '') =>
  names.map((name) => prefix + quote(name)).join(', ');

function build(table: TableDefinition, years: Years | null): MergeSql {
  const parts = buildParts(table, { years });
  const { stage, target, columns } = parts;
  const day = comparedDay(table);
  const named = (name: string, text: string): Statement =>
    years === null ? { name: `${name}_${table.name}`, text } : { text };
  return {
    createStage: `create temp table if not exists ${quote(`stage_${table.name}`)} on commit delete rows as
      select 0 as _ord, ${list(columns)} from ${target} with no data`,
    stage,
    copy: `copy ${stage} (_ord, ${list(columns)}) from stdin`,
    areNew: table.dateColumn === null ? null : areNewStatement(table.dateColumn, parts),
    copyNew: `copy ${target} (${list([...columns, ...AUDIT])}) from stdin`,
    target,
    merge: named('merge', mergeStatement(table, parts)),
    mergeUnique: named('merge_unique', mergeStatement(table, parts, { areUnique: true })),
    withdraw: named('withdraw', withdrawStatement(table, parts)),
    countRows: `select count(*)::int as rows from ${target} t where t.exchange = $1 and ${
      day === null ? '$2::date[] is not null' : `t.${quote(day)} = any($2::date[])`
    }`,
    // Counts a system column, so that the rows themselves are visited, not only an index, but none of their columns read.
    readDays: `select count(t.ctid) from ${target} t
      where t.exchange = $1 and t.${quote(table.dateColumn ?? 'exchange')} = any($2)`,
  };
}

/** Where the rows of a table are: in `market`, or, while responses are folded, in temporary tables. */
interface TargetTables {
  readonly target: string;
  readonly history: string;
  /**
   * The most rows that a day had (`mostRowsSql`), as SQL, of the day that an expression names. In a fold, the responses
   * so far say it.
   */
  readonly mostRows: (day: string) => string;
}

const marketTables = (table: TableDefinition): TargetTables => ({
  target: `market.${quote(table.name)}`,
  history: `market_history.${quote(table.name)}`,
  mostRows: (day) => mostRowsSql(table.name, '$2', comparedDay(table) === null ? null : day),
});

/** Names and conditions that the statements of a table are built from. */
export interface Parts extends TargetTables {
  readonly stage: string;
  /** Data columns, keys first. */
  readonly columns: readonly string[];
  /** Data columns that are neither key nor source audit. */
  readonly values: readonly string[];
  /** The condition that two rows have the same key. */
  readonly sameKey: (left: string, right: string) => string;
  /** The condition, after others, that a stored row is of the years that the statements are about. */
  readonly isWithin: (row: string) => string;
}

export function buildParts(
  table: TableDefinition,
  { tables = marketTables(table), years }: { readonly tables?: TargetTables; readonly years: Years | null },
): Parts {
  const columns = table.fields.map((field) => field.column);
  const audit: readonly string[] = SOURCE_AUDIT;
  return {
    ...tables,
    stage: `pg_temp.${quote(`stage_${table.name}`)}`,
    columns,
    values: columns.filter((column) => !table.key.includes(column) && !audit.includes(column)),
    sameKey: (left, right) =>
      table.key.map((column) => `${left}.${quote(column)} = ${right}.${quote(column)}`).join(' and '),
    isWithin: (row) => isWithin(table, years, row),
  };
}

/**
 * Looks for the first row of each day in the order of an index. Without an order the planner counts on finding a row
 * soon anywhere in the table, and for a day that has none it reads all rows of the year. The day is given by two bounds,
 * because the planner ignores an order by a column that has to be equal to something.
 */
function areNewStatement(dateColumn: string, { target, history, isWithin }: Parts): string {
  const day = `t.${quote(dateColumn)}`;
  const hasNone = (target: string) => `not exists (select from unnest($2::date[]) as d(day),
      lateral (select from ${target} t where t.exchange = $1 and ${day} >= d.day and ${day} <= d.day${isWithin('t')} order by ${day} limit 1) t)`;
  return `select statement_timestamp()::text as now where ${hasNone(target)} and ${hasNone(history)}`;
}

/**
 * When the next revision of a row begins: now, but always after the revision before, even if the
 * server's clock was set back. The old revision ends at the same moment, so there is no gap and no overlap.
 */
export const MOMENT = `greatest(statement_timestamp(), t.last_changed_at + interval '1 microsecond')`;

/**
 * Merges the staged records. Names that begin with an underscore are columns of the statement itself: no column of a
 * table does. Records that change nothing are counted but not kept in `compared`: nearly all are like that, and to keep
 * and read them for each of the following parts took half the time of the merge.
 *
 * @param options.areUnique no two of the records have the same key.
 */
export function mergeStatement(
  table: TableDefinition,
  parts: Parts,
  { areUnique = false }: { readonly areUnique?: boolean } = {},
): string {
  const isSameRow = sameRow(table, parts);
  const { stage, target, history, columns, values, sameKey } = parts;
  const ranked = areUnique ? '' : `ranked as materialized (${rankedRecords(table, parts)}), `;
  const records = areUnique ? `${stage} s` : '(select * from ranked where _rank = 1) s';
  const isOlder = `${sourceTime('source_saved_at')} < t.source_saved_at`;
  // A withdrawn row that is listed again returns as its next revision. If the record is older than the revision that
  // was withdrawn, that one's values return. The source's own times are kept where a response has none.
  const returning = columns.map((column) => {
    const [incoming, old] = [`s.${quote(column)}`, `w.${quote(column)}`];
    if (table.key.includes(column)) return incoming;
    return SOURCE_AUDIT.includes(column as (typeof SOURCE_AUDIT)[number])
      ? `case when s._stale then ${old} else coalesce(${sourceTime(column)}, ${old}) end`
      : `case when s._stale then ${old} else ${incoming} end`;
  });
  return `
    with ${ranked}compared as materialized (
      select s.*, ${MOMENT} as _moment, t.tableoid as _tableoid, t.ctid as _ctid, w.revision as _withdrawn,
          coalesce(${sourceTime('source_saved_at')} < coalesce(t.source_saved_at, w.source_saved_at), false) as _stale, case
          when t.revision is null and w.revision is null then 'insert' when t.revision is null then 'relist'
          when ${isOlder} then 'stale' else 'update' end as _action
      from ${records} left join ${storedRow(parts)} on true left join ${withdrawnBefore(table, parts)} on true
      where t.revision is null or ${isOlder} or ${differs(values, { fetchedAt: '$3' })}
    ), inserted as (
      insert into ${target} (${list([...columns, ...AUDIT])})
      select ${list(columns)}, statement_timestamp(), statement_timestamp(), 1, $1, $2
      from compared where _action = 'insert' order by ${list(table.key)}
      returning 1
    ), relisted as (
      insert into ${target} (${list([...columns, ...AUDIT])})
      select ${returning.join(', ')}, w.first_loaded_at,
        greatest(statement_timestamp(), w.valid_to + interval '1 microsecond'), w.revision + 1, $1, $2
      from compared s join ${history} w on ${sameKey('w', 's')} and w.revision = s._withdrawn
      where s._action = 'relist'
      returning 1
    ), archived as (
      ${archive(
        parts,
        `compared s join lateral (select * from ${target} t where ${isSameRow} limit 1) t on true`,
        {
          withdrawn: false,
          where: "s._action = 'update'",
          load: '$2',
        },
      )}
    ), updated as (
      update ${target} t set
        ${[
          ...values.map((column) => `${quote(column)} = s.${quote(column)}`),
          ...SOURCE_AUDIT.map(
            (column) => `${quote(column)} = coalesce(${sourceTime(column)}, t.${quote(column)})`,
          ),
        ].join(', ')},
        last_changed_at = s._moment, revision = t.revision + 1, run_id = $1, load_id = $2
      from compared s
      where s._action = 'update' and ${isSameRow}
      returning 1
    )
    select
      ${areUnique ? '0' : '(select count(*) from ranked where _rank > 1)::int'} as duplicate,
      (select count(*) from inserted)::int as inserted,
      ((select count(*) from updated) + (select count(*) from relisted) - count(*) filter (where _action = 'relist' and _stale))::int as updated,
      ((select count(*) from ${records}) - count(*))::int as unchanged,
      (count(*) filter (where _action = 'stale' or (_action = 'relist' and _stale)))::int as stale,
      ((select count(*) from inserted) + (select count(*) from updated) + (select count(*) from relisted))::int as written
    from compared`;
}

/**
 * The condition that `t` is the stored row that was compared with `s`. Its physical location is known, and stays the
 * same because the locks of the days are held; to look the key up in an index once more for each row that is updated,
 * and once more for its history, took a third of the time of the merge.
 */
function sameRow({ partitioned, dateColumn }: TableDefinition, { isWithin }: Parts): string {
  const day =
    partitioned && dateColumn !== null ? ` and t.${quote(dateColumn)} = s.${quote(dateColumn)}` : '';
  return `t.ctid = s._ctid and t.tableoid = s._tableoid${day}${isWithin('t')}`;
}

/** The staged records; of those with the same key, the one that is stored has the rank 1. */
function rankedRecords(table: TableDefinition, { stage }: Parts): string {
  return `select s.*, row_number() over (
        partition by ${list(table.key, 's.')} order by s.source_saved_at desc nulls last, s._ord desc) as _rank
      from ${stage} s`;
}

/**
 * The stored row of a record `s`, as `t`. The lateral join with a limit leaves the planner only one plan: to look up
 * the whole key in the index of the primary key, once per record. Any other plan is a risk, because the statistics do
 * not know the day that is being loaded: the planner takes it to be empty, and may choose a plan that reads the whole
 * day for each of its records (bench/README.md).
 */
export function storedRow({ target, sameKey, isWithin }: Parts): string {
  return `lateral (select t.tableoid, t.ctid, t.* from ${target} t where ${sameKey('t', 's')}${isWithin('t')} limit 1) t`;
}

/**
 * The last revision, as `w`, of a record `s` whose row was withdrawn. It is looked up only if any row of the days that
 * are being loaded was ever withdrawn, which is rare and which a small partial index finds.
 */
function withdrawnBefore(table: TableDefinition, { history, stage, sameKey }: Parts): string {
  const days = table.dateColumn === null ? [] : [table.dateColumn];
  const here = ['exchange', ...days].map((column) => `h.${quote(column)} = d.${quote(column)}`).join(' and ');
  return `lateral (
        select * from ${history} w
         where t.revision is null and ${sameKey('w', 's')} and w.withdrawn and (select exists (
             select from (select distinct ${list(['exchange', ...days])} from ${stage}) d
               join lateral (select from ${history} h where h.withdrawn and ${here} limit 1) h on true))
         order by w.revision desc limit 1) w`;
}

/**
 * Copies revisions `t` that are about to be replaced or withdrawn to the history; each ends at `s._moment`. `from` joins
 * the two.
 */
export function archive(
  parts: Parts,
  from: string,
  { withdrawn, where, load }: { readonly withdrawn: boolean; readonly where: string; readonly load: string },
): string {
  const kept = [...parts.columns, ...Object.keys(LOAD_AUDIT)];
  return `insert into ${parts.history} (${list(kept)}, valid_from, valid_to, withdrawn, replaced_by_load_id)
      select ${list(kept, 't.')}, t.last_changed_at, s._moment, ${withdrawn}, ${load} from ${from} where ${where}`;
}

/**
 * Withdraws rows that were not listed, day by day, and returns a row for each day that has such rows (`DayCheck`); its
 * parameters are those of `ApplySql.withdraw`.
 *
 * A day is compared with the most rows it ever had, so that it cannot be emptied in small steps, and new rows do not
 * make up for missing ones. Where a trading day always has rows, a response that would leave it none withdraws nothing.
 * What a person has accepted is withdrawn, and from then on the day is compared with the rows it has left.
 */
export function withdrawStatement(table: TableDefinition, parts: Parts): string {
  const { target, history, stage, sameKey, isWithin, mostRows } = parts;
  const key = (prefix: string) => list(table.key, prefix);
  const day = comparedDay(table);
  const dayOf = (row: string) => (day === null ? '($6::date[])[1]' : `${row}.${quote(day)}`);
  const scope = (row: string) => `${row}.exchange = $2 and ${dayOf(row)} = any($6::date[])${isWithin(row)}`;
  const keys = `jsonb_build_object(${table.key.map((column) => `'${column}', s.${quote(column)}::text`).join(', ')})`;
  const isAllowed = 'exists (select from checked where checked.is_allowed and checked._day = s._day)';
  // Keys are subtracted as sets. An anti join would compare each row of the day with each row listed,
  // because the planner takes the day to be empty (see `storedRow`).
  return `
    with more_stored as materialized (
      -- No row if no more are stored than were listed: then none is missing.
      select where $8::bigint is null or (select count(*) from ${target} t where ${scope('t')}) > $8
    ), stored as materialized (
      select ${dayOf('t')} as _day, count(*) as rows, count(*) filter (where t.load_id = $1) as written_rows
        from more_stored, ${target} t where ${scope('t')} group by 1
    ), unlisted_keys as materialized (
      select ${key('t.')} from more_stored, ${target} t where ${scope('t')}
      except select ${key('listed.')} from more_stored, ${stage} listed
    ), unlisted as materialized (
      select ${key('s.')}, ${dayOf('s')} as _day, ${MOMENT} as _moment
        from unlisted_keys s join ${storedRow(parts)} on true
    ), replaced as materialized (
      select ${dayOf('h')} as _day, count(*) as rows from ${history} h
       where ${scope('h')} and h.replaced_by_load_id = $1 and not h.withdrawn group by 1
    ), counted as materialized (
      select s._day, s.unlisted_rows, stored.rows - s.unlisted_rows as remaining_rows, before.rows as rows_before,
          greatest(before.rows, ($9::jsonb ->> to_char(s._day, 'YYYY-MM-DD'))::bigint, ${mostRows('s._day')}) as max_rows,
          not $5::boolean and not exists (
            select from ${stage} listed where ${dayOf('listed')} = s._day) as is_emptied,
          s._day = any($7::date[]) as is_accepted
        from (select _day, count(*) as unlisted_rows from unlisted group by 1) s
        join stored using (_day)
        left join replaced using (_day)
        cross join lateral (select stored.rows - stored.written_rows + coalesce(replaced.rows, 0) as rows) before
    ), checked as materialized (
      select *, is_accepted or (not is_emptied
          and max_rows - (rows_before - unlisted_rows) <= greatest($4::bigint, floor(max_rows * $3::numeric))) as is_allowed
        from counted
    ), archived as (
      ${archive(parts, `unlisted s join ${storedRow(parts)} on true`, { withdrawn: true, where: isAllowed, load: '$1' })}
    ), withdrawn as (
      delete from ${target} t using unlisted s where ${isAllowed} and ${sameKey('t', 's')}${isWithin('t')}
    )
    select to_char(_day, 'YYYY-MM-DD') as day, unlisted_rows::int as "unlistedRows", remaining_rows::int as "remainingRows",
        rows_before::int as "rowsBefore", max_rows::int as "maxRows", is_emptied as "isEmptied", is_allowed as "isAllowed",
        case when is_allowed then '[]'::jsonb else (
          select jsonb_agg(${keys} order by ${key('s.')}) from unlisted s where s._day = checked._day
        ) end as rows
      from checked order by _day`;
}

/**
 * One of the source's own times of a record; null where it has none. In place of a time that cannot be right, a record
 * has the time of the call: a new row stores it, but beside stored values it is taken as no time.
 */
export function sourceTime(column: string, { record = 's', fetchedAt = '$3' } = {}): string {
  const time = `${record}.${quote(column)}`;
  return column === 'source_saved_at' ? `nullif(${time}, ${fetchedAt}::timestamptz)` : time;
}

/**
 * True if the response differs from the stored row. The times of the source count only where the response has
 * them, so that an exchange's own file, which has none, can agree with the service.
 */
export function differs(
  values: readonly string[],
  { now = 't', record = 's', fetchedAt }: { now?: string; record?: string; fetchedAt: string },
): string {
  const row = (prefix: string) => `row(${list(values, `${prefix}.`)})`;
  const times = SOURCE_AUDIT.map((column) => {
    const time = sourceTime(column, { record, fetchedAt });
    return `(${time} is not null and ${time} is distinct from ${now}.${quote(column)})`;
  });
  return `(${[...(values.length === 0 ? [] : [`${row(now)} is distinct from ${row(record)}`]), ...times].join(' or ')})`;
}

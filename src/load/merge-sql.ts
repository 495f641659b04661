import { SOURCE_AUDIT, type TableDefinition } from '../operations/table.ts';

/** The statements that bring one table's records in; built from the declaration alone. */
export interface MergeSql {
  /** Makes the session's staging table; it empties itself at every commit. */
  readonly createStage: string;
  readonly copy: string;
  /** Queues up with other loads of the same table, exchange and day. */
  readonly lock: string;
  /** Parameter $1: the run. */
  readonly merge: string;
  /** Reads the rows of an exchange ($1) and days ($2); for tables with a date column. */
  readonly settle: string;
}

const built = new WeakMap<TableDefinition, MergeSql>();

/** The statements for a table, built once. Names come from declarations, never from data. */
export function mergeSql(table: TableDefinition): MergeSql {
  let sql = built.get(table);
  if (sql === undefined) {
    sql = build(table);
    built.set(table, sql);
  }
  return sql;
}

const quote = (name: string) => `"${name.replaceAll('"', '""')}"`;

/*
 * Why the stored row is looked up by a lateral join with a limit: it leaves the planner one way only,
 * the whole key in the primary key's index, once a record. Any other way is a trap here, because the
 * statistics never know the day that is just being loaded: taking it to be empty, the planner once
 * read all of the day for each of its records (docs/performance.md).
 */
function build(table: TableDefinition): MergeSql {
  const target = `market.${quote(table.name)}`;
  const stage = `pg_temp.${quote(`stage_${table.name}`)}`;
  const columns = table.fields.map((field) => field.column);
  const audit: readonly string[] = SOURCE_AUDIT;
  const values = columns.filter((column) => !table.key.includes(column) && !audit.includes(column));
  const list = (names: readonly string[], prefix = '') =>
    names.map((name) => prefix + quote(name)).join(', ');
  const same = (left: string, right: string) =>
    table.key.map((column) => `${left}.${quote(column)} = ${right}.${quote(column)}`).join(' and ');

  return {
    createStage: `create temp table if not exists ${quote(`stage_${table.name}`)} on commit delete rows as
      select 0 as ord, ${list(columns)} from ${target} with no data`,
    copy: `copy ${stage} (ord, ${list(columns)}) from stdin`,
    lock: `select pg_advisory_xact_lock(k) from (
      select distinct hashtextextended(concat_ws('|', 'eod', '${table.name}', exchange${
        table.dateColumn === null ? '' : `, ${quote(table.dateColumn)}`
      }), 0) as k from ${stage} order by k) as locks`,
    merge: `
      with ranked as materialized (
        select s.*, row_number() over (
          partition by ${list(table.key, 's.')} order by s.source_saved_at desc nulls last, s.ord desc) as place
        from ${stage} s
      ), judged as materialized (
        select s.*, case
            when t.revision is null then 'insert'
            when s.source_saved_at < t.source_saved_at then 'stale'
            when ${differs(values, audit)} then 'update'
            else 'unchanged' end as verdict
        from ranked s left join lateral (
          select * from ${target} t where ${same('t', 's')} limit 1
        ) t on true
        where s.place = 1
      ), inserted as (
        insert into ${target} (${list(columns)}, first_loaded_at, last_changed_at, revision, run_id)
        select ${list(columns)}, statement_timestamp(), statement_timestamp(), 1, $1
        from judged where verdict = 'insert' order by ${list(table.key)}
        returning 1
      ), updated as (
        update ${target} t set
          ${[
            ...values.map((column) => `${quote(column)} = s.${quote(column)}`),
            // The source's own times are kept where an answer brings none.
            ...audit.map((column) => `${quote(column)} = coalesce(s.${quote(column)}, t.${quote(column)})`),
          ].join(', ')},
          last_changed_at = statement_timestamp(), revision = t.revision + 1, run_id = $1
        from judged s
        where s.verdict = 'update' and ${same('t', 's')}
        returning 1
      )
      select
        (select count(*) from ranked) - count(*) as duplicate,
        (select count(*) from inserted) as inserted,
        (select count(*) from updated) as updated,
        count(*) filter (where verdict = 'unchanged') as unchanged,
        count(*) filter (where verdict = 'stale') as stale
      from judged`,
    settle: `select count(t.revision) from ${target} t
      where t.exchange = $1 and t.${quote(table.dateColumn ?? 'exchange')} = any($2)`,
  };
}

/**
 * Does the answer really differ from the stored row? Times of the source count only where the
 * answer brings them, so that a file without them (an exchange's own) can agree with the service.
 */
function differs(values: readonly string[], audit: readonly string[]): string {
  const row = (prefix: string) => `row(${values.map((column) => `${prefix}.${quote(column)}`).join(', ')})`;
  const times = audit.map(
    (column) => `(s.${quote(column)} is not null and s.${quote(column)} is distinct from t.${quote(column)})`,
  );
  return [...(values.length === 0 ? [] : [`${row('t')} is distinct from ${row('s')}`]), ...times].join(
    ' or ',
  );
}

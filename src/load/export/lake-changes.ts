import pg, { type ClientBase } from 'pg';
import { namesFilling, tables } from '../../operations/registry.ts';
import { LOADS } from '../state/loads/loads.ts';
import { PAST_BEGINS } from '../state/loads/versions.ts';
import { canNameFiles, chosenRows, type Relation } from './relation.ts';

export type PartitionBy = 'month' | 'year';

/** The partition of a table without days, and that of rows without a day. */
export const ALL = 'all';
export const NO_DAY = 'none';

/** What a partition has, whatever the order of its rows. */
interface PartitionContent {
  readonly partition: string;
  readonly fingerprint: string;
}

const dayOf = (relation: Relation) => pg.escapeIdentifier(relation.dayColumn ?? '');

/** Days without end, and those before the year 1, are in the partition of rows without a day. */
const hasMonth = (day: string) => `(isfinite(${day}) and ${day} >= date '0001-01-01')`;

/** The partition of a row, as SQL. */
function partitionSql(relation: Relation, by: PartitionBy): string {
  if (relation.dayColumn === null) return `'${ALL}'`;
  const day = dayOf(relation);
  return `case when ${hasMonth(day)} then to_char(${day}, '${by === 'year' ? 'YYYY' : 'YYYY-MM'}') else '${NO_DAY}' end`;
}

/** `from … where …` of the rows of these partitions. */
export function rowsOfPartitions(relation: Relation, partitions: readonly string[]): string {
  const day = dayOf(relation);
  const conditions = partitions.map((partition) => {
    if (partition === ALL) return 'true';
    if (partition === NO_DAY) return `${hasMonth(day)} is not true`;
    const first = partition.length === 4 ? `${partition}-01-01` : `${partition}-01`;
    const length = partition.length === 4 ? '1 year' : '1 month';
    return `(${day} >= date '${first}' and ${day} < (date '${first}' + interval '${length}')::date)`;
  });
  return `${chosenRows(relation, {})} where ${conditions.length === 0 ? 'false' : conditions.join(' or ')}`;
}

/** The partitions that have rows. */
export async function partitionsOf(
  client: ClientBase,
  relation: Relation,
  by: PartitionBy,
): Promise<string[]> {
  const { rows } = await client.query<{ partition: string }>(
    `select distinct ${partitionSql(relation, by)} as partition ${chosenRows(relation, {})}`,
  );
  return rows.map(({ partition }) => partition);
}

/** The partitions that have rows, each with a fingerprint of them: reads all rows, but writes nothing. */
export async function contentOfPartitions(
  client: ClientBase,
  relation: Relation,
  by: PartitionBy,
): Promise<PartitionContent[]> {
  // Not hash_record_extended: rows that exchange values of a column often have the same sum of those.
  const sum = (seed: number) => `sum(hashtextextended(r::text, ${seed})::numeric)`;
  const { rows } = await client.query<PartitionContent>(
    `select ${partitionSql(relation, by)} as partition, concat_ws(':', count(*), ${sum(0)}, ${sum(1)}) as fingerprint
       from (select * ${chosenRows(relation, {})}) r group by 1`,
  );
  return rows;
}

/**
 * True if the loads after a state show which days of a relation changed. Of views and of tables without days they
 * cannot.
 */
export const isKnownFromLoads = (relation: Relation): boolean =>
  relation.schema === 'market' &&
  relation.dayColumn !== null &&
  tables.some(({ name }) => name === relation.name);

/**
 * The partitions of a table that loads after a state may have changed, of those that there are or were.
 *
 * @returns null if its history was replaced since, so that any row may be another.
 */
export async function changedPartitions(
  client: ClientBase,
  relation: Relation,
  by: PartitionBy,
  state: number,
): Promise<string[] | null> {
  const own = tables.filter(({ name }) => name === relation.name);
  const filling = namesFilling(own);
  const { rows: rebuilt } = await client.query(
    `select from ${PAST_BEGINS} where table_name = $1 and state > $2 limit 1`,
    [relation.name, state],
  );
  if (rebuilt.length > 0) return null;
  if (own.some(({ partitioned }) => !partitioned)) {
    // Responses of many such tables list all of their days, of which few change. So all rows are looked at, which takes a
    // second for ten million.
    const since = `select l.id from ${LOADS} l where l.state > $1 and l.operation = any ($2)`;
    const table = pg.escapeIdentifier(relation.name);
    const { rows } = await client.query<{ partition: string }>(
      `select distinct ${partitionSql(relation, by)} as partition from (
         select ${dayOf(relation)} from market.${table} where load_id in (${since})
         union all select ${dayOf(relation)} from market_history.${table} where replaced_by_load_id in (${since})) changed`,
      [state, filling],
    );
    return rows.map(({ partition }) => partition);
  }
  const unit = by === 'year' ? 'year' : 'month';
  const { rows } = await client.query<{ partition: string }>(
    `select distinct to_char(part, '${by === 'year' ? 'YYYY' : 'YYYY-MM'}') as partition
       from ${LOADS} l, generate_series(date_trunc('${unit}', l.changed_from), l.changed_to, interval '1 ${unit}') part
      where l.state > $1 and l.operation = any ($2) and isfinite(l.changed_from) and isfinite(l.changed_to)`,
    [state, filling],
  );
  const { rows: endless } = await client.query(
    `select from ${LOADS} l where l.state > $1 and l.operation = any ($2) and not (isfinite(l.changed_from) and isfinite(l.changed_to)) limit 1`,
    [state, filling],
  );
  return endless.length > 0 ? null : rows.map(({ partition }) => partition);
}

/** By which factors prices of each name are adjusted on which days, and whose the name is; as text, by name. */
export type NameFactors = Readonly<Record<string, string>>;

/** The view of which names and events tell which rows changed, with the functions that compute it. */
export const ADJUSTED = {
  view: 'prices_adjusted',
  of: 'bhavcopy_cm',
  functions: [
    'adjusted_prices',
    'share_factors',
    'share_kept_factors',
    'share_price_factors',
    'unreviewed_until',
  ],
} as const;

/** Under no name, the definition of the view: another version of eod may compute other rows. */
const DEFINITION = '';

/** What the rows of `market.prices_adjusted` have beside their session: the same names and factors make the same rows. */
export async function readNameFactors(client: ClientBase): Promise<NameFactors> {
  const { rows } = await client.query<{ name: string; factors: string }>(
    `select concat_ws(chr(9), a.exchange, a.symbol, a.series) as name,
            sum(hashtextextended(concat_ws('|', a.instrument_id, a.valid_from, a.valid_to, p.valid_from, p.valid_to, p.ratio_old, p.ratio_new, r.reviewed_from, l.known_from), 0)::numeric)::text as factors
       from market.series_aliases a cross join lateral etl.share_price_factors(a.exchange, a.share_id, current_date) p
       left join etl.unreviewed_until(current_date) r on r.exchange = a.exchange and r.instrument_id = a.share_id
       left join etl.event_lists l on l.exchange = a.exchange
      group by 1
     union all
     select $1, md5(concat(pg_get_viewdef($2::regclass),
              (select string_agg(prosrc, '' order by proname, pronargs) from pg_proc where pronamespace in ('market'::regnamespace, 'etl'::regnamespace) and proname = any ($3))))
      order by 1`,
    [DEFINITION, `market.${ADJUSTED.view}`, ADJUSTED.functions],
  );
  return Object.fromEntries(rows.map(({ name, factors }) => [name, factors]));
}

/**
 * The partitions with sessions of names that events or other names changed.
 *
 * @returns null if the view is computed in another way now, so that any row may be another.
 */
export async function partitionsOfNames(
  client: ClientBase,
  by: PartitionBy,
  before: NameFactors,
  now: NameFactors,
): Promise<string[] | null> {
  if (before[DEFINITION] !== now[DEFINITION]) return null;
  const names = new Set([...Object.keys(before), ...Object.keys(now)]);
  const changed = [...names].filter((name) => before[name] !== now[name]).map((name) => name.split('\t'));
  if (changed.length === 0) return [];
  const { rows } = await client.query<{ partition: string }>(
    `select distinct to_char(b.trade_date, '${by === 'year' ? 'YYYY' : 'YYYY-MM'}') as partition
       from unnest($1::text[], $2::text[], $3::text[]) n(exchange, symbol, series)
       join market.bhavcopy_cm b using (exchange, symbol, series)`,
    [0, 1, 2].map((at) => changed.map((parts) => parts[at])),
  );
  return rows.map(({ partition }) => partition);
}

/** The names of all tables and views of `market`, as an export takes them, and of those whose name it cannot take. */
export async function allRelations(client: ClientBase): Promise<{ all: string[]; unusable: string[] }> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
      where relnamespace = 'market'::regnamespace and relkind in ('r', 'p', 'v', 'm') and not relispartition order by 1`,
  );
  const names = rows.map(({ name }) => name);
  const isUsable = (name: string) => canNameFiles(`market.${name}`);
  return {
    all: names.filter(isUsable),
    unusable: names.filter((name) => !isUsable(name)),
  };
}

import pg, { type ClientBase } from 'pg';
import { namesFilling, tables } from '../operations/registry.ts';
import { LOADS } from '../state/loads/loads.ts';
import { chosenRows, type Relation } from './relation.ts';

export type PartitionBy = 'month' | 'year';

/** The partition of rows without a day: `2026` or `2026-03` are those of the others. */
const NO_DAY = 'none';

const quoteDayColumn = (relation: Relation) => pg.escapeIdentifier(relation.dayColumn ?? '');

/** Days without end, and those before the year 1, are in the partition of rows without a day. */
const hasMonth = (day: string) => `(isfinite(${day}) and ${day} >= date '0001-01-01')`;

/** The partition of a row, as SQL. */
function partitionSql(relation: Relation, by: PartitionBy): string {
  const day = quoteDayColumn(relation);
  return `case when ${hasMonth(day)} then to_char(${day}, '${by === 'year' ? 'YYYY' : 'YYYY-MM'}') else '${NO_DAY}' end`;
}

/** `from … where …` of the rows of these partitions. */
export function rowsOfPartitions(relation: Relation, partitions: readonly string[]): string {
  const day = quoteDayColumn(relation);
  const conditions = partitions.map((partition) => {
    if (partition === NO_DAY) return `${hasMonth(day)} is not true`;
    const [first, length] = partition.includes('-')
      ? [`${partition}-01`, '1 month']
      : [`${partition}-01-01`, '1 year'];
    return `(${day} >= date '${first}' and ${day} < (date '${first}' + interval '${length}')::date)`;
  });
  return `${chosenRows(relation, {})} where ${conditions.length === 0 ? 'false' : conditions.join(' or ')}`;
}

/** A file of a partition, as a manifest lists it. */
interface PartitionFile {
  readonly partition: string;
  /** Of the rows of a view; null where the loads tell what has changed. */
  readonly fingerprint: string | null;
}

/**
 * The partitions whose rows have changed, or are gone, each with a fingerprint of its rows unless it is of a table: there the loads after
 * a state tell which rows they have written or withdrawn. Of a view all rows are read and compared.
 *
 * @param state of the files; null if none of them can stay.
 */
export async function changedPartitions(
  client: ClientBase,
  relation: Relation,
  by: PartitionBy,
  state: number | null,
  files: readonly PartitionFile[],
): Promise<Map<string, string | null>> {
  const tablesOfRelation = tables.filter(
    ({ name }) => relation.schema === 'market' && name === relation.name,
  );
  const isTable = tablesOfRelation.length > 0;
  if (isTable && state !== null) {
    const table = pg.escapeIdentifier(relation.name);
    const day = quoteDayColumn(relation);
    // The range of days keeps this from reading years in which nothing has changed.
    const isOfChange = `in (select id from since) and ${day} between (select min(changed_from) from since) and (select max(changed_to) from since)`;
    const { rows } = await client.query<{ partition: string }>(
      `with since as (select id, changed_from, changed_to from ${LOADS} where state > $1 and operation = any ($2))
       select distinct ${partitionSql(relation, by)} as partition from (
         select ${day} from market.${table} where load_id ${isOfChange}
         union all select ${day} from market_history.${table} where replaced_by_load_id ${isOfChange}) changed`,
      [state, namesFilling(tablesOfRelation)],
    );
    return new Map(rows.map(({ partition }) => [partition, null]));
  }
  // Not hash_record_extended: rows that exchange values of a column often have the same sum of those.
  const sum = (seed: number) => `sum(hashtextextended(r::text, ${seed})::numeric)`;
  const { rows } = await client.query<PartitionFile>(
    `select ${partitionSql(relation, by)} as partition,
            ${isTable ? 'null' : `concat_ws(':', count(*), ${sum(0)}, ${sum(1)})`} as fingerprint
       from (select * ${chosenRows(relation, {})}) r group by 1`,
  );
  const partitions = new Map(rows.map((row) => [row.partition, row.fingerprint]));
  for (const { partition, fingerprint } of files) {
    if (!partitions.has(partition)) partitions.set(partition, null);
    else if (fingerprint !== null && partitions.get(partition) === fingerprint) partitions.delete(partition);
  }
  return partitions;
}

import type { TableDefinition } from '../../declaration/table.ts';
import { listedInFull, namesFilling } from '../../operations/registry.ts';
import type { Database } from '../../postgres/database.ts';
import { transaction } from '../../postgres/transaction.ts';
import { readLoadedResponses } from '../../state/responses/to-fold.ts';
import { RESPONSES } from '../../state/responses/to-replay.ts';
import { quote } from '../merge/merge-sql.ts';
import { type FoldSettings, findDifferences, type RowDifference } from './fold.ts';
import { foldPart, type Part, scopeOfPart } from './part.ts';

/** A row of a table that is not what the kept responses say. */
export interface TableDifference extends RowDifference {
  readonly table: string;
}

/**
 * Folds a part and finds the stored rows that differ from what comes out. It sees rows and responses as of one moment,
 * so it takes no lock, and loads may go on beside it.
 *
 * @throws PipelineError `unreadable` if a response cannot be read any more; `database` if one is not kept.
 */
export async function verifyPart(
  database: Database,
  part: Part,
  settings: FoldSettings,
): Promise<TableDifference[]> {
  return transaction(database, async (tx) => {
    await tx.client.query('set transaction isolation level repeatable read; set local statement_timeout = 0');
    const loaded = await readLoadedResponses(tx, scopeOfPart(part));
    const differences: TableDifference[] = [];
    for (const copy of (await foldPart(tx, part, loaded, settings)).copies) {
      for (const difference of await findDifferences(tx, copy))
        differences.push({ ...difference, table: copy.table.name });
    }
    return differences;
  });
}

/** Which rows are verified. */
interface VerifiedRows {
  readonly exchanges?: readonly string[] | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/**
 * Finds rows of days, or of exchanges, about which no response is kept. A table with rows that are computed from others,
 * whose responses have no body, is left out.
 *
 * @param limit at most so many are returned.
 * @returns them, and how many there are.
 */
export async function findRowsOfNoResponse(
  { pool }: Database,
  table: TableDefinition,
  { exchanges, from, to }: VerifiedRows,
  limit: number,
): Promise<{
  readonly rows: readonly (TableDifference & { readonly exchange: string })[];
  readonly total: number;
}> {
  const target = `market.${quote(table.name)}`;
  const isDated = listedInFull(table) === 'days' && table.dateColumn !== null;
  const day = isDated ? `t.${quote(table.dateColumn ?? '')}` : 'null::date';
  const keys = table.key.map((column) => `'${column}', t.${quote(column)}::text`).join(', ');
  const { rows } = await pool.query<RowDifference & { exchange: string; total: number }>(
    `with about as materialized (
      select r.exchange, r.from_date as first, r.to_date as last, r.hash
        from ${RESPONSES} r where r.operation = any($1::text[])
    ), days as materialized (
      select t.exchange, ${day} as day from ${target} t
       where ($2::text[] is null or t.exchange = any($2::text[]))
         and (${day} is null or ${day} between coalesce($3::date, '-infinity') and coalesce($4::date, 'infinity'))
       group by 1, 2
    ), unknown as materialized (
      select d.exchange, d.day from days d
       where not exists (
         select from about where about.exchange = d.exchange and (d.day is null or d.day between about.first and about.last))
         and not exists (select from about where about.hash is null)
    )
    select 'unexpected' as problem, t.exchange, jsonb_build_object(${keys}) as key, t.load_id::float8 as "loadId", count(*) over ()::float8 as total
      from unknown u join ${target} t on t.exchange = u.exchange and ${day} is not distinct from u.day limit $5`,
    [namesFilling([table]), exchanges ?? null, from ?? null, to ?? null, limit],
  );
  return {
    rows: rows.map(({ total: _, ...row }) => ({ ...row, table: table.name })),
    total: rows[0]?.total ?? 0,
  };
}

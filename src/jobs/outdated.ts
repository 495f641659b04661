import type { Extracted } from '../extract/types.ts';
import { type KeptAnswer, readAnswerKept } from '../load/responses.ts';
import { operationNamed } from '../operations/registry.ts';
import type { TableDefinition } from '../operations/table.ts';
import type { Context } from './context.ts';

/** A kept answer that is about to be loaded once more. */
export interface OldAnswer {
  readonly window: { readonly operation: string };
  readonly responseId: number;
  readonly extracted: Extracted;
  readonly read: (answer: KeptAnswer) => Extracted;
}

/**
 * Has a newer answer said all there is to say of these days? Then the older one could only undo
 * what that one did: bring back rows it no longer listed, or older values. Only an answer that was
 * the full set of its days, without a reject, says all.
 */
export async function isOutdated(
  { db }: Context,
  { window, responseId, extracted, read }: OldAnswer,
): Promise<boolean> {
  const { shapes } = operationNamed(window.operation);
  const filled = filledTables(extracted);
  const spoken = shapes.filter(({ table, fullSet }) =>
    filled.length === 0 ? fullSet !== 'none' : filled.includes(table),
  );
  if (spoken.length === 0 || spoken.some(({ fullSet }) => fullSet === 'none')) return false;
  const whatever = spoken.every(({ fullSet }) => fullSet === 'exchange');
  const newer = await db.pool.query<{ id: number }>(
    `select k.id::int from etl.responses a
       join etl.responses k on k.operation = a.operation and k.exchange = a.exchange
         and (k.fetched_at, k.id) > (a.fetched_at, a.id) and k.instruments = '{}' and not k.narrowed
         and ($2 or (k.from_date <= a.from_date and k.to_date >= a.to_date))
       join etl.windows w on w.id = k.window_id
      where a.id = $1 and w.state = 'loaded' and w.rejected = 0 and w.suspicious is null
      order by k.fetched_at desc, k.id desc limit 1`,
    [responseId, whatever],
  );
  const id = newer.rows[0]?.id;
  if (id === undefined) return false;
  if (shapes.length === 1) return true;
  // An answer in one shape says nothing of the rows that came in another.
  const answer = await readAnswerKept(db.pool, id);
  const tables = answer === null ? [] : filledTables(read(answer));
  return spoken.every(({ table }) => tables.includes(table));
}

function filledTables({ batches }: Extracted): TableDefinition[] {
  return batches.filter(({ rows }) => rows.length > 0).map(({ table }) => table);
}

import { PipelineError } from '../../core/errors.ts';
import type { FileSession } from '../../extract/files/read-file.ts';
import type { Extracted } from '../../extract/types.ts';
import type { Standing } from '../../load/market/keep-stored.ts';
import { type KeptAnswer, readAnswerKept } from '../../load/state/responses.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Context } from '../context.ts';
import { readKept, sessionOf } from './file.ts';

/** A kept answer that is about to be loaded once more. */
export interface OldAnswer {
  readonly window: { readonly operation: string };
  readonly responseId: number;
  readonly extracted: Extracted;
  /** Of a file: what it does not know. */
  readonly standing?: Standing | undefined;
  readonly read: (answer: KeptAnswer) => Extracted;
}

/**
 * Has a newer answer said all there is to say of these days? Then the older one could only undo
 * what that one did: bring back rows it no longer listed, or older values. Only an answer that was
 * the full set of its days, without a reject, says all.
 */
export async function isOutdated(
  context: Context,
  { window, responseId, extracted, standing, read }: OldAnswer,
): Promise<boolean> {
  const { db } = context;
  const { shapes } = operationNamed(window.operation);
  const filled = filledTables(extracted);
  const spoken = shapes.filter(({ table, fullSet }) =>
    filled.length === 0 ? fullSet !== 'none' : filled.includes(table),
  );
  if (spoken.length === 0 || spoken.some(({ fullSet }) => fullSet === 'none')) return false;
  const whatever = spoken.every(({ fullSet }) => fullSet === 'exchange');
  const newer = await db.pool.query<{ id: number; file: boolean }>(
    `select k.id::int, k.params->>'file' is not null as file from etl.responses a
       join etl.responses k on k.operation = a.operation and k.exchange = a.exchange
         and (k.loaded_at, k.id) > (a.loaded_at, a.id) and k.instruments = '{}' and not k.narrowed
         and ($2 or (k.from_date <= a.from_date and k.to_date >= a.to_date))
       join etl.windows w on w.id = k.window_id
      where a.id = $1 and w.state = 'loaded' and w.rejected = 0 and w.suspicious is null
        and ($3 or k.params->>'file' is null)
      order by k.loaded_at desc, k.id desc limit case when $3 then null else 1 end`,
    // No file speaks for an answer: of those one is enough, where years of them may be kept.
    [responseId, whatever, standing !== undefined],
  );
  const id = newer.rows.find(({ file }) => !file)?.id;
  if (id === undefined) return saidByFile(context, newer.rows, standing);
  if (shapes.length === 1) return true;
  // An answer in one shape says nothing of the rows that came in another.
  const answer = await readAnswerKept(db.pool, id);
  const tables = answer === null ? [] : filledTables(read(answer));
  return spoken.every(({ table }) => tables.includes(table));
}

/**
 * Does one of these files say all that the older answer does? Only one that lists all rows of its
 * day, and has every column the older one has: the others would be lost with it.
 */
async function saidByFile(
  context: Context,
  files: readonly { readonly id: number }[],
  standing: Standing | undefined,
): Promise<boolean> {
  // No file has the times of the source, which an answer brings: none was asked for.
  if (standing === undefined) return false;
  const lacking = new Set(standing.columns);
  for (const { id } of files) {
    const kept = await readAnswerKept(context.db.pool, id);
    const session = kept === null ? undefined : readAgain(context, kept);
    if (session === undefined || !session.complete || session.rejects.length > 0) continue;
    if (Object.keys(session.rounded).length > 0) continue;
    if (session.unknown.every((column) => lacking.has(column))) return true;
  }
  return false;
}

function readAgain(context: Context, kept: KeptAnswer): FileSession | undefined {
  try {
    return sessionOf(readKept(context, kept), kept);
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    // Its own window will say why; it speaks for nothing.
    return undefined;
  }
}

function filledTables({ batches }: Extracted): TableDefinition[] {
  return batches.filter(({ rows }) => rows.length > 0).map(({ table }) => table);
}

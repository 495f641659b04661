import { PipelineError } from '../../core/errors.ts';
import type { FileSession } from '../../extract/files/read-file.ts';
import type { Extracted } from '../../extract/types.ts';
import type { PreservedColumns } from '../../load/market/merge.ts';
import { type KeptAnswer, readKeptAnswer } from '../../load/state/responses/kept.ts';
import { newerFullAnswers } from '../../load/state/responses/to-replay.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Context } from '../context.ts';
import { readKept, sessionOf } from './read-kept.ts';

/** A kept answer that is about to be loaded once more. */
interface OldAnswer {
  readonly window: { readonly operation: string };
  readonly responseId: number;
  readonly extracted: Extracted;
  /** What a file does not know. */
  readonly preserved?: PreservedColumns | undefined;
  readonly read: (answer: KeptAnswer) => Extracted;
}

/**
 * Does a newer answer cover everything in this one? Then this one could only undo what the newer one
 * did: bring back rows it no longer listed, or older values. Only an answer that was the full set of its
 * days, without a reject, covers another.
 */
export async function isOutdated(
  context: Context,
  { window, responseId, extracted, preserved, read }: OldAnswer,
): Promise<boolean> {
  const { db } = context;
  const { shapes } = dataSetNamed(window.operation);
  const filled = filledTables(extracted);
  // Of what only files of some formats fill, no other answer speaks.
  if (filled.some((table) => !shapes.some((shape) => shape.table === table))) return false;
  const shapesHere = shapes.filter(({ table, fullSet }) =>
    filled.length === 0 ? fullSet !== 'none' : filled.includes(table),
  );
  if (shapesHere.length === 0 || shapesHere.some(({ fullSet }) => fullSet === 'none')) return false;
  const anyDays = shapesHere.every(({ fullSet }) => fullSet === 'exchange');
  // Files cover files only, and all of them have to be read; for answers the newest is enough.
  const files = preserved !== undefined;
  const newer = await newerFullAnswers(db.drizzle, responseId, { anyDays, files });
  const id = newer.find(({ isFile }) => !isFile)?.id;
  if (id === undefined) return isCoveredByFile(context, newer, preserved);
  if (shapes.length === 1) return true;
  // An answer in one shape does not cover rows that came in another.
  const answer = await readKeptAnswer(db.drizzle, id);
  const tables = answer === null ? [] : filledTables(read(answer));
  return shapesHere.every(({ table }) => tables.includes(table));
}

/**
 * Does one of these files cover everything in the older one? Only if it lists all rows of its day and has
 * every column that the older one has: the others would be lost.
 */
async function isCoveredByFile(
  context: Context,
  files: readonly { readonly id: number }[],
  preserved: PreservedColumns | undefined,
): Promise<boolean> {
  // A file lacks the source's own times, which an answer has: it covers no answer, and none was asked for.
  if (preserved === undefined) return false;
  const lacking = new Set(preserved.columns);
  for (const { id } of files) {
    const kept = await readKeptAnswer(context.db.drizzle, id);
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
    // It covers nothing; its own window will say why it cannot be read.
    return undefined;
  }
}

function filledTables({ batches }: Extracted): TableDefinition[] {
  return batches.filter(({ rows }) => rows.length > 0).map(({ table }) => table);
}

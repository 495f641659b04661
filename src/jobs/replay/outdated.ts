import { PipelineError } from '../../core/errors.ts';
import type { FileSession } from '../../extract/files/read-file.ts';
import type { Extracted } from '../../extract/types.ts';
import type { PreservedColumns } from '../../load/market/merge.ts';
import { type KeptAnswer, readKeptAnswer } from '../../load/state/answers/kept.ts';
import { newerFullAnswers } from '../../load/state/answers/to-replay.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Context } from '../context.ts';
import { readKept, sessionOf } from './read-kept.ts';

/** A kept answer that is about to be loaded again. */
interface OldAnswer {
  readonly window: { readonly operation: string };
  readonly answerId: number;
  readonly extracted: Extracted;
  /** The columns that a file does not have; undefined for an answer of the source. */
  readonly preserved?: PreservedColumns | undefined;
  readonly read: (answer: KeptAnswer) => Extracted;
}

/**
 * Does a newer answer cover everything in this one? Then loading this one could only bring back older values, or rows
 * that the newer one no longer listed. Only an answer that lists its days in full, without rejects, covers another.
 */
export async function isOutdated(
  context: Context,
  { window, answerId, extracted, preserved, read }: OldAnswer,
): Promise<boolean> {
  const { db } = context;
  const { shapes } = dataSetNamed(window.operation);
  const filled = filledTables(extracted);
  // Tables that only files of some formats fill are not covered by other answers.
  if (filled.some((table) => !shapes.some((shape) => shape.table === table))) return false;
  const shapesHere = shapes.filter(({ table, fullSet }) =>
    filled.length === 0 ? fullSet !== 'none' : filled.includes(table),
  );
  if (shapesHere.length === 0 || shapesHere.some(({ fullSet }) => fullSet === 'none')) return false;
  const anyDays = shapesHere.every(({ fullSet }) => fullSet === 'exchange');
  // Only files may be covered by files; then each newer file is read. Of newer answers, the newest is enough.
  const files = preserved !== undefined;
  const newer = await newerFullAnswers(db.drizzle, answerId, { anyDays, files });
  const id = newer.find(({ isFile }) => !isFile)?.id;
  if (id === undefined) return isCoveredByFile(context, newer, preserved);
  if (shapes.length === 1) return true;
  // An answer in one shape does not cover rows that came in another.
  const answer = await readKeptAnswer(db.drizzle, id);
  const tables = answer === null ? [] : filledTables(read(answer));
  return shapesHere.every(({ table }) => tables.includes(table));
}

/**
 * Does one of these files cover everything in an older one? Only if it lists all rows of its day and has every column
 * that the older one has, whose values would be lost otherwise.
 */
async function isCoveredByFile(
  context: Context,
  files: readonly { readonly id: number }[],
  preserved: PreservedColumns | undefined,
): Promise<boolean> {
  // Answers are not covered by files, which lack the times at which the source received and saved a record.
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
    // It covers nothing; the error is reported with its own window.
    return undefined;
  }
}

function filledTables({ batches }: Extracted): TableDefinition[] {
  return batches.filter(({ rows }) => rows.length > 0).map(({ table }) => table);
}

import { comesBefore } from '../../core/place.ts';
import { type KeptAnswer, readKeptAnswer } from '../../load/state/answers/answers.ts';
import { filesOfSession, type StoredFile } from '../../load/state/answers/files-of-session.ts';
import type { FileWindow } from '../../load/state/windows/plan.ts';
import type { Rows } from '../../operations/rows.ts';
import type { Row, TableDefinition } from '../../operations/table.ts';
import type { Context } from '../context.ts';
import type { ReadAnswer } from '../responses/session-answer.ts';

/** Larger files, of which there is none of one session, are not compared: it takes several times their bytes. */
const MOST_COMPARED_BYTES = 16 * 1024 * 1024;

/** A file that is being imported. */
interface OwnFile extends Pick<StoredFile, 'name' | 'path' | 'order' | 'bytes'> {
  readonly read: ReadAnswer;
}

/**
 * Compares a session of a file with the last files that filled the same tables for it, before it is stored.
 *
 * @param readKept reads the kept ones; the same function for all sessions of a file, because it remembers the last file.
 * @returns what to say of each that has other values, and which of the two counts.
 */
export async function differencesOfSession(
  context: Context,
  window: FileWindow,
  own: OwnFile,
  readKept: (answer: KeptAnswer) => Promise<ReadAnswer>,
): Promise<string[]> {
  const { drizzle } = context.db;
  const found: string[] = [];
  const left = new Map(own.read.extracted.batches.map(({ table, rows }) => [table, rows]));
  const others = await filesOfSession(drizzle, window);
  const isLast = !others.some(({ order }) => comesBefore(own.order, order));
  for (const other of others) {
    if (left.size === 0) break;
    const counts = isLast ? own : other;
    if (Math.max(own.bytes, other.bytes) > MOST_COMPARED_BYTES) {
      found.push(
        `${nameOf(own)} and ${nameOf(other)} are too large to be compared: ${nameOf(counts)} counts`,
      );
      break;
    }
    const kept = await readKeptAnswer(drizzle, other.answerId);
    if (kept === null) continue;
    const read = await readKept(kept);
    let records = 0;
    for (const { table, rows } of read.extracted.batches) {
      const compared = left.get(table);
      if (compared === undefined || rows.length === 0) continue;
      left.delete(table);
      records += countDifferences(table, { rows: compared, ...own.read }, { rows, ...read });
    }
    if (records === 0) continue;
    found.push(
      `${nameOf(own)} and ${nameOf(other)} differ in ${records === 1 ? 'a record' : `${records} records`} of ${window.exchange} ${window.from}: ${nameOf(counts)} counts`,
    );
  }
  return found;
}

/** The path of a file, and its name in an archive that is called otherwise. */
const nameOf = ({ name, path }: Pick<StoredFile, 'name' | 'path'>) =>
  path.toLowerCase().includes(name.toLowerCase()) ? path : `${name} in ${path}`;

type OfTable = Pick<ReadAnswer, 'preserved'> & { readonly rows: Rows };

/** How many records of two files have different values in a column that both know. */
function countDifferences(table: TableDefinition, one: OfTable, other: OfTable): number {
  const [ours, theirs] = [one.preserved, other.preserved];
  const unknown = new Set([...table.key, ...(ours?.columns ?? []), ...(theirs?.columns ?? [])]);
  const compared = table.fields
    .filter(({ column }) => !unknown.has(column))
    .map(({ column, kind }) => ({
      column,
      isNumber: /^(?:numeric|int)/.test(kind),
      step: Math.max(ours?.rounded[column] ?? 0, theirs?.rounded[column] ?? 0),
    }));
  const keyOf = (row: Row) => table.key.map((column) => row[column]).join('\0');
  // Values alone take a fraction of what the rows take.
  const valuesOf = (row: Row) => compared.map(({ column }) => row[column] ?? null);
  const byKey = new Map<string, ReturnType<typeof valuesOf>>();
  for (const row of other.rows) byKey.set(keyOf(row), valuesOf(row));
  let differing = 0;
  for (const row of one.rows) {
    const its = byKey.get(keyOf(row));
    const isOther = valuesOf(row).some((left, at) => {
      const right = its?.[at] ?? null;
      if (left === null || right === null || left === right) return false;
      if (compared[at]?.isNumber !== true) return true;
      const apart = Math.abs(Number(left) - Number(right));
      return apart > 0 && apart >= (compared[at]?.step ?? 0);
    });
    if (isOther) differing += 1;
  }
  return differing;
}

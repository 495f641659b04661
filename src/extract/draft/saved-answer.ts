import { messageOf, usageError } from '../../core/errors.ts';
import type { Operation } from '../../operations/operation.ts';
import { decodeText } from '../body.ts';
import { unsafeNumberText } from '../decimals.ts';
import { openAnswer } from '../envelope.ts';

/** A record of an answer that no declaration describes yet. */
export type SavedRecord = Readonly<Record<string, unknown>>;

export interface SavedAnswer {
  readonly records: readonly SavedRecord[];
  /** The name of the list, if it is not `Value`. */
  readonly envelope: string | null;
}

/** Opens an answer with the reader of the pipeline, to which anything, or nothing, is a record of the operation. */
function open(body: Buffer, has: readonly string[]): readonly unknown[] {
  const shapes = [{ has, table: { fields: [] } }];
  const operation = { name: 'the draft', shapes } as unknown as Operation;
  return openAnswer(body, { operation, count: 'ignore', redact: (text) => text }).records;
}

export const isRecord = (value: unknown): value is SavedRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The records of an answer that was saved: JSON in an envelope with a list of any name, a bare list or object, XML, or
 * CSV with a header.
 *
 * @throws PipelineError `usage` if it has no records, and says why.
 */
export function readSavedAnswer(body: Buffer): SavedAnswer {
  let records: readonly unknown[];
  let envelope: string | null = null;
  try {
    // Elements of XML are entered as long as they are no records, and every object may be one.
    const isXml = decodeText(body).trimStart().startsWith('<');
    records = open(body, isXml ? ['\u0000'] : []);
    const [only] = records;
    const lists =
      records.length === 1 && isRecord(only)
        ? Object.entries(only).filter(([, value]) => Array.isArray(value) && value.some(isRecord))
        : [];
    const [list] = lists;
    if (list !== undefined && lists.length === 1) {
      envelope = list[0];
      records = list[1] as readonly unknown[];
    }
  } catch (error) {
    throw usageError(
      `it is no answer with records (${messageOf(error)}): save one in JSON, XML or CSV with a header`,
    );
  }
  const found = records.filter(isRecord).map(withDigits);
  if (!found.some((record) => Object.keys(record).length > 0)) {
    throw usageError('it has no records: save an answer that has some');
  }
  return { records: found, envelope };
}

/** Numbers that a double does not hold are texts here, with every digit. */
export function withDigits(record: SavedRecord): SavedRecord {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, unsafeNumberText(value) ?? value]),
  );
}

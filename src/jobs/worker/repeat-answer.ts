import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RecordCounts } from '../../core/record-counts.ts';
import { sha256 } from '../../core/sha256.ts';
import { repeatLoad } from '../../load/market/repeat-load.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import type { AnsweredWindow } from './store-answer.ts';

/** Folders with the code that decides what is stored of an answer. */
const READING_CODE = ['extract', 'operations', 'jobs/worker'];

let readingCodeHash: string | undefined;

/** A hash of the code that reads answers: after any change of it, they are read again. */
function hashReadingCode(): string {
  if (readingCodeHash === undefined) {
    const hash = createHash('sha256');
    const source = fileURLToPath(new URL('../../', import.meta.url));
    for (const folder of READING_CODE) {
      for (const file of readdirSync(join(source, folder), { recursive: true, withFileTypes: true })) {
        if (file.isFile()) hash.update(file.name).update(readFileSync(join(file.parentPath, file.name)));
      }
    }
    readingCodeHash = hash.digest('hex');
  }
  return readingCodeHash;
}

/** Identifies a body together with the code and the setting that it is read with. */
export function digestOf({ config }: Pick<Context, 'config'>, bodyHash: string): string {
  return sha256(`${hashReadingCode()} ${config.EOD_TIMEZONE} ${bodyHash}`);
}

/**
 * Ends a window without reading its answer, if that is byte for byte the one that was loaded last and the rows have not
 * changed since. This is common, because nightly runs ask for the last sessions again.
 *
 * @returns the counts; null if the answer has to be read.
 */
export async function repeatAnswer(
  { calendar, db }: Pick<Context, 'calendar' | 'db'>,
  { window, calledAt, ...answered }: Omit<AnsweredWindow, 'extracted'> & { readonly digest: string },
): Promise<RecordCounts | null> {
  // A preview compares rows, and filtered answers are not repeats of full ones: these have to be read.
  if (answered.preview || window.filtered || window.instruments.length > 0) return null;
  const { id: windowId, runId, exchange, from, to } = window;
  return repeatLoad(db, {
    windowId,
    runId,
    operation: operationNamed(window.operation),
    exchange,
    from,
    to,
    sessions: calendar.sessions(exchange, from, to),
    fetchedAt: new Date(calledAt),
    digest: answered.digest,
    place: answered.place,
    bytes: answered.bytes,
    answer: answered.answer,
  });
}

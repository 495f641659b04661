import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { repeatLoad } from '../../load/market/repeat-load.ts';
import type { RecordCounts } from '../../load/state/windows/windows.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import type { Answered } from './store-answer.ts';

/** Folders of the code that decides what is stored of an answer. */
const READING = ['extract', 'operations', 'jobs/worker'];

let readingCode: string | undefined;

/** Names the code that reads answers, so that after any change of it they are read again. */
function nameReadingCode(): string {
  if (readingCode === undefined) {
    const hash = createHash('sha256');
    const source = fileURLToPath(new URL('../../', import.meta.url));
    for (const folder of READING) {
      for (const file of readdirSync(join(source, folder), { recursive: true, withFileTypes: true })) {
        if (file.isFile()) hash.update(file.name).update(readFileSync(join(file.parentPath, file.name)));
      }
    }
    readingCode = hash.digest('hex');
  }
  return readingCode;
}

/** Names a body together with the code and the setting it is read by. */
export function digestOf({ config }: Pick<Context, 'config'>, bodyHash: string): string {
  return createHash('sha256').update(`${nameReadingCode()} ${config.EOD_TIMEZONE} ${bodyHash}`).digest('hex');
}

/**
 * Ends a window whose answer is byte for byte the one that was loaded last, where nothing has touched its rows
 * since; nights ask the last sessions again each evening.
 *
 * @returns the counts; null where the answer has to be read.
 */
export async function repeatAnswer(
  { calendar, db }: Pick<Context, 'calendar' | 'db'>,
  { window, calledAt, ...answered }: Omit<Answered, 'extracted'> & { readonly digest: string },
): Promise<RecordCounts | null> {
  // What a preview would show, and what was asked in part, has to be compared.
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
    bytes: answered.bytes,
    answer: answered.answer,
  });
}

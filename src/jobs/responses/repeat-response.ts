import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { CODE } from '../../core/package-folders.ts';
import type { RecordCounts } from '../../core/record-counts.ts';
import { sha256 } from '../../core/sha256.ts';
import { repeatLoad } from '../../load/market/repeat-load.ts';
import { modulesIn } from '../../operations/declared.ts';
import type { Context } from '../context.ts';
import { type ReceivedWindow, responseOf } from './store-response.ts';

const codeHashes = new Map<string | undefined, string>();

/**
 * A hash of our code with the user's declarations and what these share: after any change of it, responses are read again.
 * It is made once, as modules are imported once.
 */
function hashCode(ownOperations: string | undefined): string {
  const known = codeHashes.get(ownOperations);
  if (known !== undefined) return known;
  const hash = createHash('sha256');
  for (const folder of ownOperations === undefined ? [CODE] : [CODE, ownOperations])
    for (const path of modulesIn(folder)) hash.update(basename(path)).update(readFileSync(path));
  const made = hash.digest('hex');
  codeHashes.set(ownOperations, made);
  return made;
}

/** Identifies a body together with the code and the setting that it is read with. */
export function digestOf({ config }: Pick<Context, 'config'>, bodyHash: string): string {
  return sha256(`${hashCode(config.EOD_OPERATIONS_DIR)} ${config.EOD_TIMEZONE} ${bodyHash}`);
}

/**
 * Ends a window without reading its response, if that is byte for byte the one that was loaded last and the rows have
 * not changed since. This is common, because nightly runs request the last sessions again.
 *
 * @returns the counts; null if the response has to be read.
 */
export async function repeatResponse(
  { calendar, db }: Pick<Context, 'calendar' | 'db'>,
  received: Omit<ReceivedWindow, 'extracted'> & { readonly digest: string },
): Promise<RecordCounts | null> {
  const { window, digest } = received;
  // Filtered responses are not repeats of full ones: these have to be read.
  if (window.filtered || window.instruments.length > 0) return null;
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  return repeatLoad(db, { ...responseOf(received), digest, sessions });
}

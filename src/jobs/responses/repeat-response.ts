import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CODE } from '../../core/package-folders.ts';
import type { RecordCounts } from '../../core/record-counts.ts';
import { sha256 } from '../../core/sha256.ts';
import { repeatLoad } from '../../load/repeat-load.ts';
import type { Context } from '../context.ts';
import { describeResponse, type ReceivedWindow } from './store-response.ts';

let codeHash: string | undefined;

/** A hash of our code: after any change of it, responses are read again. It is made once, as modules are imported once. */
function hashCode(): string {
  if (codeHash !== undefined) return codeHash;
  const hash = createHash('sha256');
  const files = readdirSync(CODE, { recursive: true, encoding: 'utf8' }).sort();
  for (const file of files)
    if (/\.(?:js|json|tsx?)$/.test(file)) hash.update(basename(file)).update(readFileSync(join(CODE, file)));
  codeHash = hash.digest('hex');
  return codeHash;
}

/** Identifies a body together with the code and the setting that it is read with. */
export function digestBody({ config }: Pick<Context, 'config'>, bodyHash: string): string {
  return sha256(`${hashCode()} ${config.EOD_TIMEZONE} ${bodyHash}`);
}

/**
 * Ends a window without reading its response, if that is byte for byte the one that was loaded last. This is common,
 * because nightly runs request the last trading days again.
 *
 * @returns the counts; null if the response has to be read.
 */
export async function repeatResponse(
  { calendar, db }: Pick<Context, 'calendar' | 'db'>,
  received: Omit<ReceivedWindow, 'extracted' | 'response'> & {
    readonly digest: string;
    readonly calledOn: string;
  },
): Promise<RecordCounts | null> {
  const { exchange, from, to } = received.window;
  const { digest, calledOn } = received;
  return repeatLoad(
    db,
    { ...describeResponse(received), digest, calledOn },
    calendar.tradingDays(exchange, from, to),
  );
}

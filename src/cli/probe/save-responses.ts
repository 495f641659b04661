import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, usageError } from '../../core/errors.ts';
import type { SavedResponse } from '../../sandbox/index.ts';
import type { MadeCall } from './make-calls.ts';

/** Headers that are kept: the others may name an account. */
const KEPT = /^(?:content-type|date|retry-after)$|limit|remaining|quota/i;

/**
 * Writes each response as a file, and what was requested as another. The access key is in neither: it is no parameter,
 * and bodies and headers are received without it.
 *
 * @returns how many were written.
 */
export function saveResponses(folder: string, calls: readonly MadeCall[]): number {
  let saved = 0;
  try {
    mkdirSync(folder, { recursive: true });
    for (const { call, response } of calls) {
      if (response === null) continue;
      saved += 1;
      const name = `${String(saved).padStart(2, '0')}-${call.operation.name}`;
      const body = `${name}.${call.variation.format?.toLowerCase() ?? 'txt'}`;
      const record: SavedResponse = {
        operation: call.operation.name,
        params: response.params,
        status: response.status,
        headers: Object.fromEntries(Object.entries(response.headers).filter(([header]) => KEPT.test(header))),
        body,
      };
      writeFileSync(join(folder, body), response.body);
      writeFileSync(join(folder, `${name}.response.json`), `${JSON.stringify(record, null, 2)}\n`);
    }
    return saved;
  } catch (error) {
    throw usageError(`responses cannot be saved in ${folder}: ${messageOf(error)}`);
  }
}

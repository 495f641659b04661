import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { messageOf, usageError } from '../core/errors.ts';
import { isAccessKey } from './http/key-access.ts';

const savedResponse = z.object({
  operation: z.string(),
  /** Without the access key. */
  params: z.record(z.string(), z.string()),
  status: z.int().min(200).max(599),
  headers: z.record(z.string(), z.string()),
  /** Name of the file with the body, in the same folder. */
  body: z.string().regex(/^[^/\\]+$/),
});

/** A response of a service, as it is kept in a folder: one file for this, one for its body. */
export type SavedResponse = Readonly<z.infer<typeof savedResponse>>;

const ENDING = '.response.json';

interface Served {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const keyOf = (operation: string, params: Iterable<readonly [string, string]>) =>
  JSON.stringify([operation, [...params].filter(([name]) => !isAccessKey(name)).sort()]);

/**
 * Reads the responses that were saved in a folder.
 *
 * @returns a function that finds the response to a request; of several to the same one, the last.
 * @throws PipelineError `usage` if there is none, or one cannot be read.
 */
export function readSavedResponses(folder: string) {
  const saved = new Map<string, Served>();
  try {
    for (const file of readdirSync(folder)
      .filter((name) => name.endsWith(ENDING))
      .sort()) {
      const record = savedResponse.parse(JSON.parse(readFileSync(join(folder, file), 'utf8')));
      const { operation, params, status, headers } = record;
      saved.set(keyOf(operation, Object.entries(params)), {
        status,
        headers,
        body: readFileSync(join(folder, record.body)),
      });
    }
  } catch (error) {
    throw usageError(`the responses in ${folder} cannot be read: ${messageOf(error)}`);
  }
  if (saved.size === 0) throw usageError(`${folder} has no saved responses (*${ENDING})`);
  return (operation: string, search: URLSearchParams): Served | undefined =>
    saved.get(keyOf(operation, search));
}

export type FindSaved = ReturnType<typeof readSavedResponses>;

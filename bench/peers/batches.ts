import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

type JsonRow = Record<string, string | number | null>;

/** As many as the pipeline's worker has windows in progress. */
export const CONNECTIONS = 4;

/** Reads the JSON lines of a folder, file by file, and hands them on in batches, `CONNECTIONS` files at once. */
export async function forEachBatch(
  folder: string,
  size: number,
  load: (rows: JsonRow[]) => Promise<unknown>,
): Promise<void> {
  const files = readdirSync(folder).sort();
  const loadFiles = async () => {
    for (let file = files.shift(); file !== undefined; file = files.shift()) {
      const lines = (await readFile(join(folder, file), 'utf8')).trimEnd().split('\n');
      for (let start = 0; start < lines.length; start += size) {
        await load(lines.slice(start, start + size).map((line) => JSON.parse(line) as JsonRow));
      }
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, loadFiles));
}

import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { readdir, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { NameFactors } from './lake-changes.ts';
import { type LakeFile, MANIFEST, type Manifest } from './lake-manifest.ts';

/** A file that is not part of the lake any more is kept so long, for readers that have read the manifest of before. */
const KEPT_MS = 3_600_000;

/** The names of files that an export writes: the state, and a part that makes it another file. */
const OURS = /^\d+-[0-9a-f]{8}\.(parquet|json)(\.part)?$/;

/** Where the factors of names are kept; not a table. */
export const NAMES_FOLDER = '_names';

export const newName = (state: number, ending: string): string =>
  `${state}-${randomBytes(4).toString('hex')}.${ending}`;

/** True if a file of the lake is there, with all of its bytes. */
export function isWhole(lake: string, { file, bytes }: LakeFile): boolean {
  return statSync(join(lake, file), { throwIfNoEntry: false })?.size === bytes;
}

/** The factors that a file keeps; null if there is no such file, or a damaged one. */
export function readIfWhole(path: string): NameFactors | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as NameFactors;
  } catch {
    return null;
  }
}

/**
 * Deletes what has not been part of the lake for an hour: replaced files, and those of an export that was interrupted.
 *
 * @returns the files that are not part of it, but not deleted yet.
 */
export async function deleteReplaced(
  lake: string,
  found: Manifest | null,
  listed: Pick<Manifest, 'files' | 'tables'>,
): Promise<Manifest['replaced']> {
  const ofTables = (all: Pick<Manifest, 'files' | 'tables'>) => [
    ...all.files.map(({ file }) => file),
    ...all.tables.flatMap(({ namesFile }) => namesFile ?? []),
  ];
  const live = new Set(ofTables(listed));
  const since = new Date().toISOString();
  const waiting = new Map((found?.replaced ?? []).map((one) => [one.file, one.since]));
  for (const file of found === null ? [] : ofTables(found)) if (!waiting.has(file)) waiting.set(file, since);
  const folders = new Set([
    NAMES_FOLDER,
    ...[...listed.tables, ...(found?.tables ?? [])].map(({ table }) => table),
  ]);
  const replaced: Manifest['replaced'] = [];
  for (const file of await filesBelow(lake, [...folders])) {
    if (live.has(file)) continue;
    const path = join(lake, file);
    const from = waiting.get(file) ?? new Date((await stat(path)).mtimeMs).toISOString();
    if (Date.now() - Date.parse(from) < KEPT_MS) {
      if (waiting.has(file)) replaced.push({ file, since: from });
      continue;
    }
    await rm(path, { force: true });
    // Folders of partitions that have no files any more; not empty otherwise, which is no error here.
    for (let folder = dirname(path); folder !== lake; folder = dirname(folder))
      if (
        !(await rmdir(folder).then(
          () => true,
          () => false,
        ))
      )
        break;
  }
  return replaced.sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** The files below folders of a lake that an export wrote, but not those of another lake that is kept there. */
async function filesBelow(lake: string, folders: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const folder of folders) {
    const entries = await readdir(join(lake, folder), { withFileTypes: true }).catch(() => []);
    if (entries.some(({ name }) => name === MANIFEST)) continue;
    for (const entry of entries)
      if (entry.isFile() && OURS.test(entry.name)) found.push(`${folder}/${entry.name}`);
    const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => `${folder}/${name}`);
    for (const file of await filesBelow(lake, below)) found.push(file);
  }
  return found;
}

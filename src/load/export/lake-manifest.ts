import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { messageOf, usageError } from '../../core/errors.ts';
import { sha256 } from '../../core/sha256.ts';
import type { NameFactors } from './lake-changes.ts';
import { canNameFiles } from './relation.ts';

export const MANIFEST = '_manifest.json';

const need = z.object({ scale: z.number(), integers: z.number() }).nullable();

// Files that a manifest names are written anew and deleted, so it may name none that could not be of this lake.
const tableName = z.string().refine(canNameFiles);
const fileBelow = z.string().regex(/^([^./\\\0][^/\\\0]*\/)+\d+-[0-9a-f]{8}\.(parquet|json)$/u);

const lakeFile = z.object({
  /** `bhavcopy_cm`; with its schema unless that is `market`. */
  table: tableName,
  /** `2026` or `2026-03`; `none` for rows without a day; `all` of a table without days. */
  partition: z.string(),
  /** Below the lake, with slashes. */
  file: fileBelow,
  rows: z.number(),
  bytes: z.number(),
  sha256: z.string(),
  /** Of the state that it was read at. */
  state: z.number(),
  /** Of the rows, whatever their order; null where the loads tell whether they changed. */
  fingerprint: z.string().nullable(),
});

const lakeTable = z.object({
  table: tableName,
  /** The state that its files show. */
  state: z.number(),
  rows: z.number(),
  /** SHA-256 over the partitions and the SHA-256 of their files. */
  digest: z.string(),
  isDouble: z.boolean(),
  /** The columns, and how many digits of each numeric the files can hold; null as text. */
  columns: z.array(z.object({ name: z.string(), type: z.string(), decimal: need.optional() })),
  /** The file that shows what prices of each name were adjusted by. */
  namesFile: fileBelow.nullable(),
});

const manifest = z.object({
  format: z.literal(1),
  /** The state of the last export into this lake. */
  state: z.number(),
  /** Distinguishes the load of that state from the load of another database that has the same number. */
  load: z.string(),
  partition: z.enum(['month', 'year']),
  tables: z.array(lakeTable),
  files: z.array(lakeFile),
  /** Files that are not part of the lake any more and are deleted an hour after this moment, ISO 8601. */
  replaced: z.array(z.object({ file: fileBelow, since: z.string() })),
});

export type LakeFile = z.infer<typeof lakeFile>;
export type LakeTable = z.infer<typeof lakeTable>;
export type Manifest = z.infer<typeof manifest>;

/**
 * The manifest of a lake; null if the folder has none.
 *
 * @throws PipelineError `usage` if it is not one that this version can go on from.
 */
export function readManifest(folder: string): Manifest | null {
  const path = join(folder, MANIFEST);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw usageError(`${path} cannot be read: ${messageOf(error)}`);
  }
  try {
    return manifest.parse(JSON.parse(text));
  } catch {
    throw usageError(
      `${path} is not a manifest that this version of eod wrote; export to an empty folder, or delete it to have all files written anew`,
    );
  }
}

/** Replaces a file as a whole: a reader sees what it was or what it is. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const partial = `${path}.part`;
  const handle = await open(partial, 'w');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(partial, path);
}

/** Shows which files of the lake a command that follows it has handled. */
export const HANDLED = '_on_change.json';

/** What distinguishes the files of each table; one that is written again has another name. */
type FilesOfTables = Readonly<Record<string, string>>;

export function filesOfTables({ files, tables }: Manifest): FilesOfTables {
  const namesOf = (table: string) => files.filter((one) => one.table === table).map(({ file }) => file);
  return Object.fromEntries(tables.map(({ table }) => [table, sha256(namesOf(table).join('\n'))]));
}

/** What the command has succeeded with; nothing if that is not known, so that it runs again. */
export function readHandled(path: string): FilesOfTables {
  try {
    return z.record(z.string(), z.string()).parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return {};
  }
}

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

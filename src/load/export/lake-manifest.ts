import { readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { messageOf, usageError } from '../../core/errors.ts';
import { sha256 } from '../../core/sha256.ts';
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

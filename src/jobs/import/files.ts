import { createHash } from 'node:crypto';
import { createReadStream, type Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { messageOf, usageError } from '../../core/errors.ts';
import { dayInName } from '../../extract/files/formats.ts';
import { type FileSession, isImportName } from '../../extract/files/read-file.ts';
import { tableGroupOf } from '../replay/plan-replay.ts';

/** A file to import, with the hash of its bytes. */
export interface ImportFile {
  /** As it was named, or as it was found in the folder that was named. */
  readonly path: string;
  /** The folder from which a relative path starts. */
  readonly cwd: string;
  /** SHA-256 in hex; null where the file cannot be read. */
  readonly hash: string | null;
  readonly error: string | null;
}

/**
 * Finds the files to import: each named file, and in named folders and below them every file that ends in .csv, .dat or
 * .zip and is not hidden. They are sorted by the day in their name (files without one come first), then by name.
 *
 * @param cwd the folder from which relative paths start.
 * @throws PipelineError `usage` if a path cannot be read, or if there is no file.
 */
export async function findFiles(paths: readonly string[], cwd: string): Promise<string[]> {
  const found = new Set<string>();
  for (const path of paths) {
    const about = await stat(resolve(cwd, path)).catch((error) => {
      throw usageError(`${path} cannot be read: ${messageOf(error)}`);
    });
    if (!about.isDirectory()) {
      found.add(path);
      continue;
    }
    for (const inside of await listFolder(path, cwd)) found.add(inside);
  }
  if (found.size === 0) throw usageError(`there is no .csv, .dat or .zip file in ${paths.join(', ')}`);
  const rank = (path: string) => `${dayInName(path) ?? ''}|${path}`;
  return [...found].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

async function listFolder(folder: string, cwd: string): Promise<string[]> {
  const place = resolve(cwd, folder);
  let entries: Dirent[];
  try {
    entries = await readdir(place, { recursive: true, withFileTypes: true });
  } catch (error) {
    throw usageError(`${folder} cannot be read: ${messageOf(error)}`);
  }
  return entries
    .filter((entry) => !entry.isDirectory() && isImportName(entry.name))
    .map((entry) => join(folder, relative(place, entry.parentPath), entry.name));
}

/** Hashes a file. An error is returned, not thrown. */
export async function hashFile(path: string, cwd: string): Promise<ImportFile> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(resolve(cwd, path))) hash.update(chunk as Buffer);
    return { path, cwd, hash: hash.digest('hex'), error: null };
  } catch (error) {
    return { path, cwd, hash: null, error: `cannot be read: ${messageOf(error)}` };
  }
}

/** Calls `work` for every item, `width` at a time, until all are done or `signal` aborts. @throws its first error. */
export async function inParallel<Item>(
  items: readonly Item[],
  { width, signal }: { readonly width: number; readonly signal?: AbortSignal | undefined },
  work: (item: Item, at: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  let broken = false;
  const workOn = async () => {
    while (next < items.length && signal?.aborted !== true && !broken) {
      const at = next++;
      try {
        await work(items[at] as Item, at);
      } catch (error) {
        broken = true;
        throw error;
      }
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: width }, workOn));
  const failed = workers.find((one) => one.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

type Read<Session> = () => Promise<readonly Session[]>;

/**
 * Makes sure that files with the same session are stored in the order in which they were started, while other files are
 * stored in parallel: the last file of a session overrides the others, however fast each of them is read.
 *
 * @returns a function that reads a file at once, and stores it when all files that were started before it are read and
 *   those with the same sessions are stored. It throws what `read` and `store` throw.
 */
export function createOrderedStore<Session extends Pick<FileSession, 'dataSet' | 'exchange' | 'day'>>() {
  const storing = new Map<string, Promise<unknown>>();
  let allRead: Promise<unknown> = Promise.resolve();
  return async function storeInOrder<Result>(
    read: Read<Session>,
    store: (sessions: readonly Session[]) => Promise<Result>,
  ): Promise<Result> {
    const reading = read();
    const mine = Promise.allSettled([reading, allRead]).then(([file]) => {
      const sessions = file.status === 'fulfilled' ? file.value : [];
      const keys = sessions.map(
        ({ dataSet, exchange, day }) => `${tableGroupOf(dataSet)} ${exchange} ${day}`,
      );
      const earlier = keys.map((key) => storing.get(key));
      for (const key of keys) storing.set(key, ended);
      return earlier;
    });
    allRead = mine;
    const stored = mine.then(async (earlier) => {
      await Promise.all(earlier);
      return store(await reading);
    });
    const ended = stored.then(
      () => undefined,
      () => undefined,
    );
    return stored;
  };
}

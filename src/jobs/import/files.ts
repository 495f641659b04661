import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, readdir, realpath, stat } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { messageOf, PipelineError, usageError } from '../../core/errors.ts';
import { compareNames } from '../../core/file-order.ts';
import { escapeName } from '../../core/wording.ts';
import { badFile } from '../../extract/diagnostics.ts';
import { isImportName } from '../../extract/files/read-exchange-file.ts';
import type { FilePart } from '../../extract/files/read-file.ts';
import { tableGroupOf } from '../../operations/registry.ts';

/** A file to import. */
interface FoundFile {
  /** As it was named, or as it was found in the folder that was named; as it is shown (`escapeName`). */
  readonly path: string;
  /** Where it is. The links in a folder are resolved, so that what is read is what was checked. */
  readonly absolutePath: string;
  /** Why it is not read, whatever is in it. */
  readonly refusal?: string;
}

/** A file to import, with the hash of its bytes. */
export interface ImportFile extends FoundFile {
  /** SHA-256 in hex; null where the file cannot be read. */
  readonly hash: string | null;
  readonly error: string | null;
  /** What is odd about its name. */
  readonly warning?: string;
}

/**
 * Finds the files to import: each named file, and in named folders and below them every file that ends in .csv, .dat,
 * .json or .zip (or one of these and .gz) and is not hidden. They are in the order of their names (`compareNames`).
 *
 * @param cwd the folder from which relative paths start.
 * @throws PipelineError `usage` if a path cannot be read, or if there is no file.
 */
export async function findFiles(paths: readonly string[], cwd: string): Promise<FoundFile[]> {
  const files = new Map<string, FoundFile>();
  for (const path of paths) {
    const absolutePath = resolve(cwd, path);
    const add = (file: FoundFile) => files.set(file.path, { ...file, path: escapeName(file.path) });
    try {
      if ((await stat(absolutePath)).isDirectory()) await listFolder(await realpath(absolutePath), path, add);
      else add({ path, absolutePath });
    } catch (error) {
      // Node passes on a name that is not UTF-8 with this character in place of some of its bytes.
      if (path.includes('\ufffd')) add({ path, absolutePath, refusal: NOT_UTF8 });
      else throw usageError(escapeName(`${path} cannot be read: ${messageOf(error)}`));
    }
  }
  if (files.size === 0) {
    throw usageError(`there is no .csv, .dat, .json or .zip file in ${paths.map(escapeName).join(', ')}`);
  }
  return [...files.values()].sort((a, b) => compareNames(a.path, b.path));
}

/**
 * Finds the files in a folder and below it. Folders to which links lead are not searched: those inside are found anyway.
 *
 * @param root the folder that was named, without links.
 * @param shownRoot what it was called.
 */
async function listFolder(root: string, shownRoot: string, add: (file: FoundFile) => void): Promise<void> {
  const isInside = (path: string) => relative(root, path).split(sep)[0] !== '..';
  const listBelow = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { encoding: 'buffer', withFileTypes: true })) {
      const name = entry.name.toString();
      const absolutePath = join(folder, name);
      const file = { path: join(shownRoot, relative(root, absolutePath)), absolutePath };
      if (!isUtf8(entry.name)) {
        const bytes = entry.name
          .toString('latin1')
          .replace(/[^ -~]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
        const path = join(shownRoot, relative(root, folder), bytes);
        if (entry.isDirectory() || isImportName(name)) add({ ...file, path, refusal: NOT_UTF8 });
      } else if (entry.isDirectory()) {
        await listBelow(absolutePath);
      } else if (!entry.isSymbolicLink()) {
        if (isImportName(name)) add(file);
      } else {
        const target = await realpath(absolutePath).catch(() => null);
        if (target !== null && !isInside(target)) {
          const isRead = isImportName(name) || (await stat(target)).isDirectory();
          if (isRead) add({ ...file, refusal: LEADS_OUT });
        } else if (isImportName(name)) {
          add({ ...file, absolutePath: target ?? absolutePath });
        }
      }
    }
  };
  await listBelow(root);
}

const NOT_UTF8 = 'has a name that is not UTF-8; rename it';

const LEADS_OUT = 'is a link that leads out of the folder that was named; name what it leads to as well';

/** Hashes a file. An error is returned, not thrown. @returns null if the signal stopped it. */
export async function hashFile(file: FoundFile, signal: AbortSignal | undefined): Promise<ImportFile | null> {
  if (file.refusal !== undefined) return { ...file, hash: null, error: file.refusal };
  const hash = createHash('sha256');
  try {
    await withRegularFile(file.absolutePath, async (handle) => {
      for await (const chunk of handle.createReadStream({ signal })) hash.update(chunk as Buffer);
    });
    return { ...file, hash: hash.digest('hex'), error: null };
  } catch (error) {
    return signal?.aborted === true ? null : { ...file, hash: null, error: describeProblem(error) };
  }
}

/**
 * Reads a file into memory.
 *
 * @param take is given its size before it is read, and may refuse it.
 * @throws PipelineError `unreadable`
 */
export function readImportFile(absolutePath: string, take: (bytes: number) => void): Promise<Buffer> {
  return withRegularFile(absolutePath, (handle, { size }) => {
    take(size);
    return handle.readFile();
  }).catch((error) => {
    throw badFile(describeProblem(error), { cause: error });
  });
}

const describeProblem = (error: unknown) =>
  error instanceof PipelineError ? error.message : escapeName(`cannot be read: ${messageOf(error)}`);

/** Opens a regular file for some work. @throws PipelineError `unreadable` for pipes, devices and folders. */
async function withRegularFile<Result>(
  absolutePath: string,
  work: (handle: FileHandle, about: Stats) => Promise<Result>,
): Promise<Result> {
  refuseIrregular(await stat(absolutePath));
  // Without waiting: a file may have become a pipe meanwhile, and to open one takes until somebody writes to it.
  const handle = await open(absolutePath, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const about = await handle.stat();
    refuseIrregular(about);
    return await work(handle, about);
  } finally {
    await handle.close();
  }
}

function refuseIrregular(about: Stats): void {
  if (!about.isFile()) throw badFile('is not a regular file; only regular files are read');
}

/**
 * Makes sure that files with the same trading day, and lists, are stored in the order in which they were started, while
 * other files are stored in parallel: the last file of a trading day overrides the others, however fast each of them is
 * read.
 *
 * @returns a function that reads a file at once, and stores it when all files that were started before it are read and
 *   those with the same trading days are stored. It throws what `read` and `store` throw.
 */
export function createOrderedStore<Part extends Pick<FilePart, 'dataSet' | 'exchange' | 'day' | 'rank'>>() {
  const storing = new Map<string, Promise<unknown>>();
  let allRead: Promise<unknown> = Promise.resolve();
  return async function storeInOrder<Result>(
    read: () => Promise<readonly Part[]>,
    store: (parts: readonly Part[]) => Promise<Result>,
  ): Promise<Result> {
    const reading = read();
    const mine = Promise.allSettled([reading, allRead]).then(([file]) => {
      const parts = file.status === 'fulfilled' ? file.value : [];
      const keys = parts.map(
        ({ dataSet, exchange, day, rank }) =>
          `${tableGroupOf(dataSet).name} ${exchange} ${rank === null ? '' : day}`,
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

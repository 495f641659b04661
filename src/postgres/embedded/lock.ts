import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from '../../core/errors.ts';

/** True if there is a process with this id, no matter who owns it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/** The locks this process holds. */
const lockedFiles = new Set<string>();

/**
 * Runs `work` while holding a lock file. A lock is taken over if its holder has died, or if it names no process,
 * because an older version could be killed between creating the file and writing its process id.
 */
export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 60_000;
  while (!tryLock(file)) {
    const holder = readHolder(file);
    if (holder !== null && !holdsLock(holder, file)) rmSync(file, { force: true });
    else if (Date.now() > deadline)
      throw new Error(`${file} has been held by process ${holder} for more than a minute`);
    else await sleep(25);
  }
  lockedFiles.add(file);
  try {
    return await work();
  } finally {
    lockedFiles.delete(file);
    rmSync(file, { force: true });
  }
}

/** In a container, a process may have the same id as the one that held the lock before a restart. */
function holdsLock(pid: number, file: string): boolean {
  if (pid === process.pid) return lockedFiles.has(file);
  return pid > 0 && isAlive(pid);
}

/** Links a finished file into place, so that nobody finds a lock file without the id of its holder. */
function tryLock(file: string): boolean {
  const ownFile = `${file}.${process.pid}`;
  writeFileSync(ownFile, String(process.pid), { mode: 0o600 });
  try {
    linkSync(ownFile, file);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(ownFile, { force: true });
  }
}

/** @returns 0 for a lock that names no process; null if the lock is gone. */
function readHolder(file: string): number | null {
  try {
    return Number(readFileSync(file, 'utf8')) || 0;
  } catch {
    return null;
  }
}

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** The system account Postgres runs under; undefined means: as ourselves. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Postgres refuses to run as root. Started by root (containers, CI) it runs as the system user
 * `postgres`, made when missing, or as `nobody` where no user can be made.
 */
export function serverAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const known = lookUp('postgres');
  if (known !== undefined) return known;
  try {
    execFileSync('useradd', ['--system', '--user-group', '--no-create-home', 'postgres'], {
      stdio: 'ignore',
    });
  } catch {
    // No useradd here (Alpine), or a read-only /etc: nobody will do.
  }
  const account = lookUp('postgres') ?? lookUp('nobody');
  if (account === undefined) {
    throw new Error(
      'Postgres does not run as root, and there is neither a user postgres nor nobody to run it as',
    );
  }
  return account;
}

function lookUp(name: string): Account | undefined {
  try {
    const id = (flag: string) =>
      Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    return undefined;
  }
}

/** Can this account walk down to `path`? Clones under /root (mode 0700) cannot be reached. */
export function reachable(path: string, account: Account): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    if (existsSync(folder)) {
      const { mode, uid, gid } = statSync(folder);
      const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
      if ((mode & bit) === 0) return false;
    }
    if (folder === dirname(folder)) return true;
  }
}

/** A folder outside closed home directories that stands in for `path`, owned by the account. */
export function standIn(path: string, kind: string, account: Account): string {
  const hash = createHash('sha256').update(`${path}\0${account.uid}`).digest('hex').slice(0, 16);
  const folder = join(existsSync('/var/tmp') ? '/var/tmp' : tmpdir(), `eod-${kind}-${hash}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid } = statSync(folder);
  // A folder somebody else put there first must not receive our data.
  if (uid !== 0 && uid !== account.uid)
    throw new Error(`${folder} belongs to another user (uid ${uid}); remove it`);
  chownSync(folder, account.uid, account.gid);
  return folder;
}

/** The programs, copied to where the account can reach them when it cannot where they are. */
export function reachablePrograms(native: string, version: string, account: Account | undefined): string {
  if (account === undefined || reachable(join(native, 'bin', 'postgres'), account)) return native;
  const folder = standIn(`${native}@${version}`, 'postgres', account);
  const copy = join(folder, 'native');
  if (!existsSync(copy)) {
    const partial = `${copy}.${process.pid}`;
    cpSync(native, partial, { recursive: true, verbatimSymlinks: true });
    try {
      renameSync(partial, copy);
    } catch {
      rmSync(partial, { recursive: true, force: true });
    }
  }
  return copy;
}

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { usageError } from '../../core/errors.ts';
import { sha256 } from '../../core/sha256.ts';

/** The system account that Postgres runs under; where it is undefined, that of this process. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The account to run Postgres under, which refuses to run as root. For root (containers, CI) that is the system user
 * `postgres`, created if it is missing.
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
    // There is no useradd, or /etc is read-only.
  }
  const account = lookUp('postgres');
  if (account === undefined) {
    throw usageError(
      'Postgres does not run as root, and the user "postgres" to run it as cannot be created: create it, or set DATABASE_URL to a server',
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

/** An account that is yet to be created owns nothing. */
const OWNS_NOTHING: Account = { uid: -1, gid: -1 };

/** The account that `serverAccount` would return; none is created. */
function knownAccount(): Account | undefined {
  return process.getuid?.() === 0 ? (lookUp('postgres') ?? OWNS_NOTHING) : undefined;
}

/** True if this account may enter all folders above `path`. It may not enter /root (mode 0700), for example. */
function reachable(path: string, account: Account): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    if (existsSync(folder)) {
      const { mode, uid, gid } = statSync(folder);
      const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
      if ((mode & bit) === 0) return false;
    }
    if (folder === dirname(folder)) return true;
  }
}

/**
 * Where the data of root's private Postgres is, and a copy of its programs, if the account may not enter the folders of
 * root that they belong to. Systems remove no old files from there.
 */
const FOR_ROOT = '/var/lib/eod';

const folderFor = (path: string, kind: 'data' | 'postgres') =>
  join(FOR_ROOT, `${kind}-${sha256(path).slice(0, 16)}`);

/** Creates the folder that stands in for a path, owned by the account. */
export function createFolderFor(path: string, kind: 'data' | 'postgres', account: Account): string {
  mkdirSync(FOR_ROOT, { recursive: true });
  chmodSync(FOR_ROOT, 0o755);
  const folder = folderFor(path, kind);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chownSync(folder, account.uid, account.gid);
  return folder;
}

/** Where the files of a private Postgres are, or will be. */
interface ClusterLocation {
  readonly path: string;
  /** Why that is not in the data folder, as a clause that follows "because"; null if it is. */
  readonly why: string | null;
}

/** `home/data`, or the folder that stands in for it where the server's account cannot enter `home`. Creates nothing. */
export function clusterLocation(
  home: string,
  account: Account | undefined = knownAccount(),
): ClusterLocation {
  if (account === undefined || reachable(home, account)) return { path: join(home, 'data'), why: null };
  return {
    path: join(folderFor(home, 'data'), 'data'),
    why: `Postgres does not run as root, and the account that it runs under may not enter ${home}`,
  };
}

/** The folder of the programs, or of a copy of them where the account cannot reach the programs themselves. */
export function reachablePrograms(native: string, version: string, account: Account | undefined): string {
  if (account === undefined || reachable(join(native, 'bin', 'postgres'), account)) return native;
  const folder = createFolderFor(`${native}@${version}`, 'postgres', account);
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

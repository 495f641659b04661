import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  chownSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** The system account that Postgres runs under; where it is undefined, that of this process. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The account to run Postgres under, which refuses to run as root. For root (containers, CI) that is the system user
 * `postgres`, created if it is missing, or `nobody` if no user can be created.
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
    // Where there is no useradd (Alpine) or /etc is read-only, the server runs as the user nobody.
  }
  const account = lookUp('postgres') ?? lookUp('nobody');
  if (account === undefined) {
    throw new Error(
      'Postgres does not run as root, and there is no user "postgres" or "nobody" to run it as',
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

/** May this account enter all folders above `path`? It may not enter /root (mode 0700), for example. */
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

/** Where folders may be that replace others, by what they hold. Systems remove old files from /var/tmp, so no data. */
const PLACES = {
  data: ['/var/lib', '/var/tmp', tmpdir()],
  postgres: ['/var/tmp', tmpdir()],
} as const;

/**
 * A folder to use instead of `path`, outside of home directories that the account may not enter, and owned by it. One
 * that is there already goes on being used: earlier versions put data into /var/tmp.
 */
export function substituteFolder(path: string, kind: keyof typeof PLACES, account: Account): string {
  const hash = createHash('sha256').update(`${path}\0${account.uid}`).digest('hex').slice(0, 16);
  const folders = PLACES[kind].map((place) => join(place, `eod-${kind}-${hash}`));
  const folder =
    folders.find((one) => existsSync(one)) ??
    folders.find((one) => isWritable(dirname(one))) ??
    (folders[0] as string);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid } = statSync(folder);
  // The data must not go into a folder that another user has created there.
  if (uid !== 0 && uid !== account.uid)
    throw new Error(`${folder} belongs to another user (uid ${uid}); remove it`);
  chownSync(folder, account.uid, account.gid);
  return folder;
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The folder of the programs, or of a copy of them where the account cannot reach the programs themselves. */
export function reachablePrograms(native: string, version: string, account: Account | undefined): string {
  if (account === undefined || reachable(join(native, 'bin', 'postgres'), account)) return native;
  const folder = substituteFolder(`${native}@${version}`, 'postgres', account);
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

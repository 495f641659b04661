import { execFileSync } from 'node:child_process';
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
import { sha256 } from '../../../core/sha256.ts';

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

/** The account that `serverAccount` would return, but none is created: null if that would be needed. */
function knownAccount(): Account | undefined | null {
  return process.getuid?.() === 0 ? (lookUp('postgres') ?? null) : undefined;
}

/** May this account enter all folders above `path`? It may not enter /root (mode 0700), for example. */
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

/** Where folders may be that replace others, by what they hold. Systems remove old files from /var/tmp, so no data. */
const PLACES = {
  data: ['/var/lib', '/var/tmp', tmpdir()],
  postgres: ['/var/tmp', tmpdir()],
} as const;

/**
 * The path of a folder to use instead of `path`, outside of home directories that the account may not enter. One that
 * is there already goes on being used: earlier versions put data into /var/tmp.
 */
function substitutePath(path: string, kind: keyof typeof PLACES, account: Account): string {
  const hash = sha256(`${path}\0${account.uid}`).slice(0, 16);
  const folders = PLACES[kind].map((place) => join(place, `eod-${kind}-${hash}`));
  return (
    folders.find((one) => existsSync(one)) ??
    folders.find((one) => isWritable(dirname(one))) ??
    (folders[0] as string)
  );
}

/** Creates the folder that `substitutePath` names, owned by the account. */
export function substituteFolder(path: string, kind: keyof typeof PLACES, account: Account): string {
  const folder = substitutePath(path, kind, account);
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

/** Where the files of a private Postgres are, or will be. */
interface ClusterPlace {
  readonly path: string;
  /** Why that is not in the data folder, as a clause that follows "because"; null if it is. */
  readonly why: string | null;
}

/**
 * `home/data`, or a substitute where the server's account cannot enter `home`. Creates nothing.
 *
 * @param account null if it has yet to be created, and with it the name of its folder: then `path` is where that goes.
 */
export function clusterPlace(
  home: string,
  account: Account | undefined | null = knownAccount(),
): ClusterPlace {
  // An account that is to be created owns nothing yet.
  const runsAs = account === null ? { uid: -1, gid: -1 } : account;
  if (runsAs === undefined || reachable(home, runsAs)) return { path: join(home, 'data'), why: null };
  const substitute = substitutePath(home, 'data', runsAs);
  return {
    path: account === null ? dirname(substitute) : join(substitute, 'data'),
    why: `Postgres does not run as root, and the account that it runs under may not enter ${home}`,
  };
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

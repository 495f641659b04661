import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

interface Packed {
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

test('the package has at most 4 MB, the listed entries, and neither source maps nor snapshots of the schema', async () => {
  const run = promisify(execFile);
  await run(process.execPath, ['scripts/build.mjs', '--if-stale'], { cwd: ROOT });
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    maxBuffer: 1e8,
  });
  const [{ unpackedSize, files }] = JSON.parse(stdout) as [Packed];
  expect(unpackedSize).toBeGreaterThan(1e6);
  expect(unpackedSize).toBeLessThanOrEqual(4e6);
  expect([...new Set(files.map(({ path }) => path.split('/')[0]))].toSorted()).toEqual([
    '.env.example',
    'ARCHITECTURE.md',
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'UPGRADING.md',
    'bin',
    'deploy',
    'dist',
    'docs',
    'migrations',
    'package.json',
  ]);
  expect(files.filter(({ path }) => /\.map$|_snapshot\.json$/.test(path))).toEqual([]);
});

// Runs tests on the Node version of the Docker image: all unit tests, and some integration tests of each kind. (The
// whole suite runs on the machine's Node.) That version is installed as an npm package.
//
//   node scripts/test-on-lts.mjs
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** COPY and merge, workers on both queues, files, the demo with its private Postgres and processes, HTTP. */
const WITH_SERVERS = [
  'test/load/window.int.test.ts',
  'test/load/copy.int.test.ts',
  'test/jobs/runs.int.test.ts',
  'test/cli/import.int.test.ts',
  'test/cli/demo.int.test.ts',
  'test/web/health.int.test.ts',
];

const root = fileURLToPath(new URL('..', import.meta.url));

/** The major version of the image. */
const LTS = /^FROM node:(\d+)-slim$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))?.[1];

/** @param {string} command @param {string[]} args @returns {number} its exit code. */
function run(command, args) {
  return spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status ?? 1;
}

/** @returns {number} the exit code of the first step that failed, or 0. */
function main() {
  if (process.versions.node.startsWith(`${LTS}.`)) {
    console.log(`this is Node ${process.versions.node}: the test suite is enough`);
    return 0;
  }
  const folder = mkdtempSync(join(tmpdir(), 'eod-node-'));
  try {
    const platform = process.platform === 'win32' ? 'win' : process.platform;
    const name = `node-${platform}-${process.arch}`;
    const flags = ['--no-save', '--ignore-scripts', '--prefer-offline', '--loglevel=error'];
    const installed = run('npm', ['install', '--prefix', folder, ...flags, `${name}@${LTS}`]);
    if (installed !== 0) return installed;
    const node = join(folder, 'node_modules', name, 'bin', 'node');
    const vitest = [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run'];
    return (
      run(node, ['--version']) ||
      run(node, [...vitest, '--project', 'unit']) ||
      run(node, [...vitest, '--project', 'integration', ...WITH_SERVERS])
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = main();

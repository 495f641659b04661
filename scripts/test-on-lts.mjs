// Runs tests on another Node version, an LTS release: all unit tests, and the package in an empty folder; on the version
// of the Docker image also some integration tests of each kind. (The whole suite runs on the machine's Node.) The version
// is installed as an npm package. Needs a build (`npm run build`).
//
//   node scripts/test-on-lts.mjs 22
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** COPY and merge, workers on both queues, files, a run from the command line, HTTP. */
const WITH_SERVERS = [
  'test/load/window.int.test.ts',
  'test/load/merge/copy.int.test.ts',
  'test/jobs/runs/runs.int.test.ts',
  'test/cli/import.int.test.ts',
  'test/cli/work.int.test.ts',
  'test/web/health.int.test.ts',
];

/** The exit code that `.ci/run` takes for a step that is not possible on this machine. */
const NOT_POSSIBLE = 3;

const root = fileURLToPath(new URL('..', import.meta.url));

/** The major version of the image. */
const OF_IMAGE = /^FROM node:(\d+)-slim$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))?.[1];

/** @param {string} command @param {string[]} args @param {string} [bin] comes first in PATH. @returns {number} its exit code. */
function run(command, args, bin) {
  const { PATH } = process.env;
  const env = { ...process.env, PATH: bin === undefined ? PATH : `${bin}${delimiter}${PATH}` };
  return spawnSync(command, args, { cwd: root, stdio: 'inherit', env }).status ?? 1;
}

/** @param {string | undefined} major @returns {number} the exit code of the first step that failed, or 0. */
function main(major) {
  if (major === undefined || !/^\d+$/.test(major)) {
    console.error('usage: node scripts/test-on-lts.mjs MAJOR');
    return 2;
  }
  if (process.versions.node.startsWith(`${major}.`)) {
    console.log(`this is Node ${process.versions.node}: the other steps are enough`);
    return 0;
  }
  const folder = mkdtempSync(join(tmpdir(), 'eod-node-'));
  try {
    const platform = process.platform === 'win32' ? 'win' : process.platform;
    const name = `node-${platform}-${process.arch}`;
    const flags = ['--no-save', '--ignore-scripts', '--prefer-offline', '--loglevel=error'];
    const installed = run('npm', ['install', '--prefix', folder, ...flags, `${name}@${major}`]);
    if (installed !== 0) {
      console.error(`npm could not install Node ${major}: nothing was run on it`);
      return NOT_POSSIBLE;
    }
    const bin = join(folder, 'node_modules', name, 'bin');
    const node = join(bin, 'node');
    const vitest = [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run'];
    return (
      run(node, ['--version']) ||
      run(node, [...vitest, '--project', 'unit']) ||
      // With npm on this Node as well.
      run(node, [join(root, 'scripts', 'try-package.mjs')], bin) ||
      (major === OF_IMAGE ? run(node, [...vitest, '--project', 'integration', ...WITH_SERVERS]) : 0)
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = main(process.argv[2]);

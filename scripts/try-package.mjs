// Makes the package that npm would publish, installs it in an empty folder as a user would, and runs it there, to find
// files that the package lacks. Needs a build (`npm run build`).
//
//   node scripts/try-package.mjs
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const NEEDED = [
  '.env.example',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'UPGRADING.md',
  'bin/eod.mjs',
  'deploy/prometheus/rules.yml',
  'dist/cli/main.js',
  'dist/calendar/data/holidays.csv',
  'dist/commit',
  'docs/commands.md',
  'migrations/meta/_journal.json',
  'package.json',
];
/** Sources, tests and local settings. */
const UNWANTED = /^(src|test|bench|scripts|node_modules)\/|\.test\.[jt]s|(^|\/)\.env$|\.tgz$/;

/** SIGTERM ends a service within this time, as docs/commands.md says. */
const STOP_WITHIN_MS = 10_000;

const flags = ['--prefer-offline', '--ignore-scripts', '--loglevel=error'];
let filename = '';

/** @param {unknown} is @param {string} expectation */
function check(is, expectation) {
  if (!is) throw new Error(expectation);
  console.log(`ok: ${expectation}`);
}

const folder = mkdtempSync(join(tmpdir(), 'eod-package-'));
// The program gets no other variables, so that settings of the user cannot change the result; npm gets all of them.
const { PATH = '', HOME = '' } = process.env;
const XDG_DATA_HOME = join(folder, 'data');
const work = join(folder, 'work');
mkdirSync(work);
const eodFile = join(folder, 'installed', 'lib', 'node_modules', 'eod-pipeline', 'bin', 'eod.mjs');

/** @param {string[]} args */
function eod(...args) {
  const env = { PATH, HOME, XDG_DATA_HOME };
  const { status, stdout, stderr } = spawnSync(process.execPath, [eodFile, ...args], {
    cwd: work,
    env,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

/** @param {string[]} args */
function npm(...args) {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed:\n${stderr}`);
  return stdout;
}

try {
  const packed = JSON.parse(npm('pack', '--ignore-scripts', '--json', '--pack-destination', folder));
  const [{ filename: packageFile, files, size }] = Array.isArray(packed) ? packed : Object.values(packed);
  filename = packageFile;
  const paths = files.map((/** @type {{ path: string }} */ { path }) => path);
  for (const path of NEEDED) if (!paths.includes(path)) throw new Error(`${path} is missing in the package`);
  const unwanted = paths.filter((/** @type {string} */ path) => UNWANTED.test(path));
  check(
    unwanted.length === 0,
    `the package holds no sources, tests or settings (${unwanted.slice(0, 3).join(', ') || 'none'})`,
  );
  check(size < 3_000_000, `it is small (${Math.round(size / 1000)} kB in ${paths.length} files)`);

  npm('install', '--global', '--prefix', join(folder, 'installed'), ...flags, join(folder, filename));
  check(existsSync(join(folder, 'installed', 'bin', 'eod')), 'npm install --global gives the command eod');
  const stamped = readFileSync(join(root, 'dist', 'commit'), 'utf8');
  const printedVersion = eod('--version').stdout.trim();
  check(
    printedVersion === (stamped === '' ? version : `${version} (${stamped})`),
    `eod --version says ${printedVersion}`,
  );
  const { status: begun } = eod('init');
  check(begun === 0 && statSync(join(work, '.env')).size > 1_000, 'eod init writes .env');
  const demo = eod('demo');
  check(
    demo.status === 0 && /completed after/.test(demo.stdout),
    `eod demo completes${demo.status === 0 ? '' : `: ${demo.stderr}`}`,
  );
  check(
    /write "npx eod"/.test(demo.stdout) && !demo.stdout.includes('npm link'),
    'it says how to start an installed eod',
  );
  check(
    existsSync(join(XDG_DATA_HOME, 'eod-pipeline', 'demo', 'postgres')) && !existsSync(join(work, '.eod')),
    'its data is in the folder for data of the user',
  );
  await serve();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Runs `eod up`, which loads what `eod demo` does not: scheduler, queue, dashboard. */
async function serve() {
  const env = { PATH, HOME, XDG_DATA_HOME, EOD_HTTP_PORT: '0' };
  const service = spawn(process.execPath, [eodFile, '--demo', 'up', '--roles', 'scheduler,web'], {
    cwd: work,
    env,
  });
  let printed = '';
  const address = await new Promise((resolve, reject) => {
    service.once('exit', (code) => reject(new Error(`eod up ended with ${code}: ${printed}`)));
    service.stderr.on('data', (text) => {
      printed += text;
      const match = /(http:\/\/\S+)\/healthz/.exec(printed);
      if (match !== null) resolve(match[1]);
    });
  });
  for (const path of ['/readyz', '/', '/runs']) {
    const { status } = await fetch(`${address}${path}`);
    check(status === 200, `eod up responds to ${path}`);
  }
  service.removeAllListeners('exit');
  const signalledAt = performance.now();
  const code = await new Promise((resolve) => {
    service.once('exit', resolve);
    service.kill('SIGTERM');
  });
  const took = performance.now() - signalledAt;
  check(code === 0 && took < STOP_WITHIN_MS, `SIGTERM ends it (${Math.round(took)} ms)`);
}

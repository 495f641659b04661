// Makes the package that npm would publish, installs it in an empty folder as a user would, and runs it there, to find
// files that the package lacks. Needs a build (`npm run build`).
//
//   node scripts/try-package.mjs
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

/** @param {unknown} is @param {string} what */
function check(is, what) {
  if (!is) throw new Error(what);
  console.log(`ok: ${what}`);
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
  const [{ filename: made, files, size }] = Array.isArray(packed) ? packed : Object.values(packed);
  filename = made;
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
  const said = eod('--version').stdout.trim();
  check(said === (stamped === '' ? version : `${version} (${stamped})`), `eod --version says ${said}`);
  const { status: begun } = eod('init');
  check(begun === 0 && statSync(join(work, '.env')).size > 1_000, 'eod init writes .env');
  const demo = eod('demo');
  check(
    demo.status === 0 && /completed after/.test(demo.stdout),
    `eod demo completes${demo.status === 0 ? '' : `: ${demo.stderr}`}`,
  );
  check(
    existsSync(join(XDG_DATA_HOME, 'eod-pipeline', 'demo', 'postgres')) && !existsSync(join(work, '.eod')),
    'its data is in the folder for data of the user',
  );
  addOperation();
  await serve();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Makes an operation of a response outside the repository, as docs/import.md says, with types from the package.
 */
function addOperation() {
  const vote = { MeetingDate: '27/02/2025', Symbol: 'TCS', ResolutionNo: 1, VotesFor: '1,23,234.50' };
  writeFileSync(
    join(work, 'GetVoting.json'),
    JSON.stringify({ Value: [vote, { ...vote, ResolutionNo: 2 }] }),
  );
  const path = join('operations', 'GetVoting.mjs');
  const drafted = eod('operations', 'draft', 'GetVoting.json');
  check(
    drafted.status === 0,
    `eod operations draft writes a declaration${drafted.status === 0 ? '' : `: ${drafted.stderr}`}`,
  );
  const checked = eod('operations', 'check', path);
  check(
    checked.status === 0,
    `eod operations check accepts it unchanged${checked.status === 0 ? '' : `: ${checked.stdout}${checked.stderr}`}`,
  );
  npm('install', '--prefix', work, ...flags, join(folder, filename));
  const typesOf = () => {
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const options = [
      '--checkJs',
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--types',
      '',
    ];
    const { error, stdout, stderr } = spawnSync(process.execPath, [tsc, ...options, path], {
      cwd: work,
      encoding: 'utf8',
    });
    return `${error ?? ''}${stdout}${stderr}`;
  };
  const mistakes = typesOf();
  check(mistakes === '', `its types are those of the package${mistakes}`);
  const text = readFileSync(join(work, path), 'utf8');
  writeFileSync(join(work, path), text.replace("dates: 'range'", "dates: 'ranges'"));
  check(/GetVoting\.mjs.*"ranges"/s.test(typesOf()), 'and find a mistake');
  writeFileSync(join(work, path), 'export default {\n  name: 2 3,\n};\n');
  const unreadable = eod('operations', 'check', path).stdout.replaceAll(/\s+/g, ' ');
  check(
    unreadable.includes('it cannot be imported (line 2)'),
    'a mistake of syntax is reported with its line',
  );
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
      const found = /(http:\/\/\S+)\/healthz/.exec(printed);
      if (found !== null) resolve(found[1]);
    });
  });
  for (const path of ['/readyz', '/', '/runs']) {
    const { status } = await fetch(`${address}${path}`);
    check(status === 200, `eod up responds ${path}`);
  }
  service.removeAllListeners('exit');
  const requested = performance.now();
  const code = await new Promise((resolve) => {
    service.once('exit', resolve);
    service.kill('SIGTERM');
  });
  const took = performance.now() - requested;
  check(code === 0 && took < STOP_WITHIN_MS, `SIGTERM ends it (${Math.round(took)} ms)`);
}

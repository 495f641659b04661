// Makes dist/ from src/: each file of TypeScript becomes one of JavaScript, and other files (calendar data) are
// copied.
//
//   node scripts/build.mjs             checks the types as well, and fails where they are wrong
//   node scripts/build.mjs --if-stale  only where src/ has changed, and without the check, which takes longest
//
// A checkout runs its build. bin/eod.mjs calls `ensureBuilt`, so that nobody ever runs sources of yesterday.
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  cpSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...path) => join(root, ...path);

const COMPILER = at('node_modules', 'esbuild');
const TYPE_CHECKER = at('node_modules', 'typescript', 'bin', 'tsc');
/**
 * Packages of many small modules, which take most of the time that a command needs to start: their parts that
 * are used are put together into a few files, `dist/packages/`.
 */
const BUNDLED = /^(csv-parse|drizzle-orm|zod)(\/|$)/;
/** Files that are compiled; the build replaces what ends so by `.js`. */
const SOURCE = /\.tsx?$/;
/** Written by npm when it has changed the packages. */
const INSTALLED = at('node_modules', '.package-lock.json');
/** Written last: its time says of which sources the build is. */
const STAMP = at('dist', 'built-from-sources-until');
const LOCK = at('dist.lock');

const WAIT_MS = 50;
/** A builder that was killed leaves its lock behind; its process is looked for. */
const LOCK_WITHOUT_OWNER_MS = 5_000;

/** Is there a build, of sources and packages as they are now? Times of directories tell of files removed. */
function isFresh() {
  const stamp = statSync(STAMP, { throwIfNoEntry: false });
  if (stamp === undefined) return false;
  const isOlder = (path) => (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) <= stamp.mtimeMs;
  if (![at('src'), at('tsconfig.json'), INSTALLED].every(isOlder)) return false;
  const entries = readdirSync(at('src'), { recursive: true, withFileTypes: true });
  return entries.every((entry) => isOlder(join(entry.parentPath, entry.name)));
}

/**
 * Builds where there is no build of these sources. Any number of processes may call this at once: one
 * builds, the others wait for it.
 *
 * @returns {string | null} what is wrong, in one sentence.
 */
export async function ensureBuilt() {
  if (isFresh()) return null;
  const missing = existsSync(STAMP) ? 'dist/ is older than src/ or its packages' : 'dist/ has not been built';
  if (!existsSync(COMPILER))
    return `${missing} and the compiler is not installed: run "npm ci" and "npm run build"`;
  return locked(async () => {
    if (isFresh()) return null;
    process.stderr.write(`eod: ${missing}: building it\n`);
    return (await build()) ? null : 'src/ cannot be built: see "npm run build"';
  });
}

/** Compiles into a folder of its own and puts it in place as a whole: nobody meets half a build. */
async function build() {
  const started = new Date();
  const [fresh, old] = [at(`dist.new-${process.pid}`), at(`dist.old-${process.pid}`)];
  try {
    if (!(await compile(fresh))) return false;
    cpSync(at('src'), fresh, {
      recursive: true,
      filter: (path) => statSync(path).isDirectory() || !SOURCE.test(path),
    });
    writeFileSync(join(fresh, 'commit'), commit());
    const stamp = join(fresh, 'built-from-sources-until');
    writeFileSync(stamp, '');
    utimesSync(stamp, started, started);
    if (existsSync(at('dist'))) renameSync(at('dist'), old);
    renameSync(fresh, at('dist'));
    return true;
  } finally {
    for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true });
  }
}

/** The commit this is built of, for packages and images, in which there is no git: REVISION, or that of the checkout; else ''. */
function commit() {
  const { REVISION } = process.env;
  if (REVISION) return REVISION.slice(0, 7);
  const asked = existsSync(at('.git'))
    ? spawnSync('git', ['rev-parse', '--short=7', 'HEAD'], { cwd: root })
    : null;
  return asked?.status === 0 ? String(asked.stdout).trim() : '';
}

/** @returns {Promise<boolean>} whether every file could be compiled; what is wrong has been printed. */
async function compile(folder) {
  // Loaded here: most commands find a build.
  const esbuild = await import('esbuild');
  const files = readdirSync(at('src'), { recursive: true }).filter((name) => SOURCE.test(name));
  const options = {
    entryPoints: files.map((name) => at('src', name)),
    outbase: at('src'),
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    chunkNames: 'packages/[name]-[hash]',
    sourcemap: true,
    sourcesContent: false,
    // Problems are printed to stderr: they must not get into the results of a command.
    logLevel: 'warning',
    plugins: [{ name: 'bundle some packages', setup: resolveImports }],
  };
  return esbuild.build(options).then(
    () => true,
    () => false,
  );
}

/** Our own files stay apart, and so do packages that are not bundled. */
function resolveImports(esbuild) {
  const own = at('src');
  esbuild.onResolve({ filter: /./ }, ({ kind, path, importer }) => {
    if (kind === 'entry-point') return null;
    if (path.startsWith('.')) {
      return importer.startsWith(own) ? { path: path.replace(SOURCE, '.js'), external: true } : null;
    }
    return BUNDLED.test(path) ? null : { path, external: true };
  });
}

function typesAreRight() {
  const flags = ['-p', at('tsconfig.build.json')];
  return spawnSync(process.execPath, [TYPE_CHECKER, ...flags], { stdio: ['ignore', 2, 2] }).status === 0;
}

/** Runs `work` while no other process does. */
async function locked(work) {
  while (!takeLock()) await setTimeout(WAIT_MS);
  try {
    return await work();
  } finally {
    rmSync(LOCK, { force: true });
  }
}

function takeLock() {
  try {
    const file = openSync(LOCK, 'wx');
    writeFileSync(file, String(process.pid));
    closeSync(file);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    if (!ownerLives()) rmSync(LOCK, { force: true });
    return false;
  }
}

function ownerLives() {
  try {
    const owner = Number(readFileSync(LOCK, 'utf8'));
    // Made a moment ago, its number yet to be written.
    if (owner === 0) return Date.now() - statSync(LOCK).mtimeMs < LOCK_WITHOUT_OWNER_MS;
    process.kill(owner, 0);
    return true;
  } catch (error) {
    // EPERM: it lives and is somebody else's. ENOENT: the lock was given back meanwhile.
    return error.code === 'EPERM' || error.code === 'ENOENT';
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === '--if-stale') {
    const problem = await ensureBuilt();
    // `npm ci --omit=dev` prepares the package too, without a compiler; eod says what to do when it is called.
    if (problem !== null) process.stderr.write(`${problem}\n`);
    process.exitCode = problem === null || !existsSync(COMPILER) ? 0 : 1;
  } else {
    process.exitCode = typesAreRight() && (await locked(build)) ? 0 : 1;
  }
}

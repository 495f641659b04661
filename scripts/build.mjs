// Builds dist/ from src/: the modules become one file for each way into them, with files that these share in dist/chunks/,
// and other files (calendar data) are copied.
//
//   node scripts/build.mjs             checks types first, and fails if they are wrong
//   node scripts/build.mjs --if-stale  only if src/ has changed, and without the type check, which takes longest
//
// In a checkout, bin/eod.mjs calls `ensureBuilt`, so that a stale build is never run.
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
import { join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...path) => join(root, ...path);

const COMPILER = at('node_modules', 'esbuild');
const TYPE_CHECKER = at('node_modules', 'typescript', 'bin', 'tsc');
/**
 * Packages of many small modules, which would take most of the time in which a command starts. The parts of them that
 * are used are bundled with our own modules.
 */
const BUNDLED = /^(csv-parse|drizzle-orm|zod)(\/|$)/;
/** Files that are compiled. */
const SOURCE = /\.tsx?$/;
/**
 * The ways into the bundle, below src/: what the program and a test that starts a worker of its own import, and the file
 * formats, which are imported by the names in their folder.
 */
const ENTRIES =
  /^(cli\/(main|cli|lifecycle|open-context)|jobs\/worker\/worker|extract\/files\/formats\/[\w-]+)\.ts$/;
/** Written by npm when it has changed the packages. */
const INSTALLED = at('node_modules', '.package-lock.json');
/** Its time is that at which the build was begun: sources that are newer are not in it. */
const STAMP = at('dist', 'built-from-sources-until');
const LOCK = at('dist.lock');

const WAIT_MS = 50;
/** A lock without a process id is taken as new for this long. */
const LOCK_WITHOUT_OWNER_MS = 5_000;

/** Is the build of the current sources and packages? The times of folders change when files are removed. */
function isFresh() {
  const stamp = statSync(STAMP, { throwIfNoEntry: false });
  if (stamp === undefined) return false;
  const isOlder = (path) => (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) <= stamp.mtimeMs;
  if (![at('src'), at('tsconfig.json'), INSTALLED].every(isOlder)) return false;
  const entries = readdirSync(at('src'), { recursive: true, withFileTypes: true });
  return entries.every((entry) => isOlder(join(entry.parentPath, entry.name)));
}

/**
 * Builds if there is no build of the current sources. Any number of processes may call this at the same time: one
 * builds, the others wait for it.
 *
 * @returns {string | null} what is wrong, in one sentence, or null.
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

/** Compiles into a new folder that then replaces dist/, so that no process sees half a build. */
async function build() {
  const started = new Date();
  const [fresh, old] = [at(`dist.new-${process.pid}`), at(`dist.old-${process.pid}`)];
  try {
    if (!(await compile(fresh))) return false;
    for (const name of filesIn('src').filter((name) => !SOURCE.test(name)))
      cpSync(at('src', name), join(fresh, name));
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

/** The commit that is built, for packages and images without git: from REVISION or the checkout; '' if unknown. */
function commit() {
  const { REVISION } = process.env;
  if (REVISION) return REVISION.slice(0, 7);
  const git = existsSync(at('.git'))
    ? spawnSync('git', ['rev-parse', '--short=7', 'HEAD'], { cwd: root })
    : null;
  return git?.status === 0 ? String(git.stdout).trim() : '';
}

/** The names of the files in a folder and below it, as `a/b.ts`. */
function filesIn(folder) {
  const entries = readdirSync(at(folder), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return entries.map((entry) =>
    relative(at(folder), join(entry.parentPath, entry.name)).replaceAll('\\', '/'),
  );
}

/** @returns {Promise<boolean>} false if a file could not be compiled; the errors are printed. */
async function compile(folder) {
  // Imported here, because most commands need not build.
  const esbuild = await import('esbuild');
  const entries = filesIn('src').filter((name) => ENTRIES.test(name));
  const options = {
    entryPoints: entries.map((name) => at('src', name)),
    outbase: at('src'),
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // One folder below dist/, as src/core/package-folders.ts expects.
    chunkNames: 'chunks/[name]-[hash]',
    sourcemap: true,
    sourcesContent: false,
    // esbuild prints warnings to stderr, so that they do not get into the results of a command.
    logLevel: 'warning',
    plugins: [{ name: 'leave most packages as imports', setup: resolveImports }],
  };
  return esbuild.build(options).then(
    () => true,
    () => false,
  );
}

/** Leaves packages that are not bundled as imports. */
function resolveImports(esbuild) {
  esbuild.onResolve({ filter: /^[^.]/ }, ({ kind, path }) =>
    kind === 'entry-point' || BUNDLED.test(path) ? null : { path, external: true },
  );
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
    // The lock is new, and the process id is not written yet.
    if (owner === 0) return Date.now() - statSync(LOCK).mtimeMs < LOCK_WITHOUT_OWNER_MS;
    process.kill(owner, 0);
    return true;
  } catch (error) {
    // EPERM: the process belongs to another user. ENOENT: the lock was released meanwhile.
    return error.code === 'EPERM' || error.code === 'ENOENT';
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === '--if-stale') {
    const problem = await ensureBuilt();
    // `npm ci --omit=dev` runs this too, without a compiler. That is no error: eod says what to do when it is run.
    if (problem !== null) process.stderr.write(`${problem}\n`);
    process.exitCode = problem === null || !existsSync(COMPILER) ? 0 : 1;
  } else {
    process.exitCode = typesAreRight() && (await locked(build)) ? 0 : 1;
  }
}

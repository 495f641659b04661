// Compiles src/ to dist/ and copies what the compiler leaves behind (calendar data).
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
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...path) => join(root, ...path);

const COMPILER = at('node_modules', 'typescript', 'bin', 'tsc');
/** Written last: its time says of which sources the build is. */
const STAMP = at('dist', 'built-from-sources-until');
const LOCK = at('dist.lock');

const WAIT_MS = 50;
/** A builder that was killed leaves its lock behind; its process is looked for. */
const LOCK_WITHOUT_OWNER_MS = 5_000;

/** Is there a build, of the sources as they are now? Directories count too: their times tell of files removed. */
function isFresh() {
  const stamp = statSync(STAMP, { throwIfNoEntry: false });
  if (stamp === undefined) return false;
  const isOlder = (path) => statSync(path).mtimeMs <= stamp.mtimeMs;
  if (!isOlder(at('tsconfig.json')) || !isOlder(at('tsconfig.build.json')) || !isOlder(at('src')))
    return false;
  const entries = readdirSync(at('src'), { recursive: true, withFileTypes: true });
  return entries.every((entry) => isOlder(join(entry.parentPath, entry.name)));
}

/**
 * Builds where there is no build of these sources. Any number of processes may call this at once: one
 * builds, the others wait for it.
 *
 * @returns {string | null} what is wrong, in one sentence.
 */
export function ensureBuilt() {
  if (isFresh()) return null;
  const missing = existsSync(STAMP) ? 'dist/ is older than src/' : 'dist/ has not been built';
  if (!existsSync(COMPILER))
    return `${missing} and the compiler is not installed: run "npm ci" and "npm run build"`;
  return locked(() => {
    if (isFresh()) return null;
    process.stderr.write(`eod: ${missing}: building it\n`);
    return build(['--noCheck']) ? null : 'src/ cannot be built: see "npm run build"';
  });
}

/** Compiles into a folder of its own and puts it in place as a whole: nobody meets half a build. */
function build(flags) {
  const started = new Date();
  const [fresh, old] = [at(`dist.new-${process.pid}`), at(`dist.old-${process.pid}`)];
  try {
    const tsc = spawnSync(
      process.execPath,
      [COMPILER, '-p', at('tsconfig.build.json'), '--outDir', fresh, ...flags],
      {
        // What the compiler has to say must not get into the results of a command.
        stdio: ['ignore', 2, 2],
      },
    );
    if (tsc.status !== 0) return false;
    cpSync(at('src'), fresh, {
      recursive: true,
      filter: (path) => statSync(path).isDirectory() || !path.endsWith('.ts'),
    });
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

/** Runs `work` while no other process does. */
function locked(work) {
  while (!takeLock()) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS);
  try {
    return work();
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
    const problem = ensureBuilt();
    // `npm ci --omit=dev` prepares the package too, without a compiler; eod says what to do when it is called.
    if (problem !== null) process.stderr.write(`${problem}\n`);
    process.exitCode = problem === null || !existsSync(COMPILER) ? 0 : 1;
  } else {
    process.exitCode = locked(() => build([])) ? 0 : 1;
  }
}

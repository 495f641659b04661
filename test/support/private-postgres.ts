import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../src/postgres/embedded/index.ts';
import { execute, makeDisposable } from './template.ts';

/** A file system in memory. */
const MEMORY = '/dev/shm';
/** Databases, and WAL up to the next checkpoint. */
const ROOM_BYTES = 6e9;

/**
 * Where the data of a run's Postgres are: in memory if there is room, since every test file makes and drops databases of
 * some 700 files. On a disk, thirteen files with much of that took a quarter longer.
 */
function roomyFolder(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > ROOM_BYTES ? MEMORY : tmpdir();
}

/** The private Postgres from npm in a temporary folder, for one test run. */
export async function startPrivatePostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = mkdtempSync(join(roomyFolder(), 'eod-test-postgres-'));
  // Started by root, the server runs as somebody else, who must be able to get in.
  chmodSync(dataDir, 0o755);
  const remove = () => rmSync(dataDir, { recursive: true, force: true });
  // For a run that is broken off: then only what needs no waiting can still be done.
  const abandon = () => {
    const [pid] = readFileSync(join(dataDir, 'data', 'postmaster.pid'), 'utf8').split('\n');
    process.kill(Number(pid), 'SIGQUIT');
    remove();
  };
  const server = await startEmbeddedPostgres({ dataDir });
  process.once('exit', abandon);
  // Tests add parameters of their own to it.
  const url = server.url.replace(/\?.*$/, '');
  await makeDisposable(url);
  await makeCheapToEnter(url);
  return {
    url,
    async stop() {
      process.off('exit', abandon);
      await server.stop();
      remove();
    },
  };
}

/** Has passwords checked with one round instead of 4,096: tests open thousands of connections. */
async function makeCheapToEnter(url: string): Promise<void> {
  const { username, password } = new URL(url);
  await execute(url, `set scram_iterations = 1; alter role ${username} password '${password}'`);
}

import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../src/load/database/embedded/index.ts';
import { makeDisposable } from './template.ts';

/** The private Postgres from npm in a temporary folder, for one test run. */
export async function startPrivatePostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'eod-test-postgres-'));
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
  return {
    url,
    async stop() {
      process.off('exit', abandon);
      await server.stop();
      remove();
    },
  };
}

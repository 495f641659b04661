import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serverAccount } from '../../src/postgres/embedded/account.ts';
import { freePort } from './free-port.ts';
import { withClient } from './query.ts';
import { makeDisposable, prepareTemplate } from './template.ts';
import { waitFor } from './wait-for.ts';

/** Folder of its programs. */
export const POSTGRES_15 = '/usr/lib/postgresql/15/bin';

/** True if this machine has Debian's Postgres 15, the oldest version we promise to work on. */
export const hasSystemPostgres15 = existsSync(join(POSTGRES_15, 'postgres'));

/**
 * Starts a temporary cluster of the system's Postgres 15, ready for `testDatabase(url)`.
 *
 * @throws Error where there is no Postgres 15; check `hasSystemPostgres15` before, and say so if it is false.
 */
export async function startSystemPostgres15(): Promise<{ url: string; stop(): Promise<void> }> {
  if (!hasSystemPostgres15) throw new Error(`there is no Postgres 15 in ${POSTGRES_15}`);
  const home = mkdtempSync(join(tmpdir(), 'eod-test-postgres-15-'));
  const data = join(home, 'data');
  // initdb and postgres refuse to run as root.
  const account = serverAccount();
  if (account !== undefined) chownSync(home, account.uid, account.gid);
  const asAccount = { ...account, cwd: home };
  execFileSync(
    join(POSTGRES_15, 'initdb'),
    ['-D', data, '-U', 'eod', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'],
    { ...asAccount, stdio: 'pipe' },
  );
  const port = await freePort();
  const server = spawn(
    join(POSTGRES_15, 'postgres'),
    ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-c', 'unix_socket_directories='],
    { ...asAccount, stdio: 'ignore' },
  );
  const abandon = () => {
    server.kill('SIGQUIT');
    rmSync(home, { recursive: true, force: true });
  };
  process.once('exit', abandon);
  const url = `postgres://eod@127.0.0.1:${port}/postgres`;
  await waitFor(() => withClient(url, async () => true), { what: 'the system Postgres 15' });
  await makeDisposable(url);
  await prepareTemplate(url);
  return {
    url,
    async stop() {
      process.off('exit', abandon);
      const gone = once(server, 'exit');
      if (server.exitCode === null && server.kill('SIGQUIT')) await gone;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

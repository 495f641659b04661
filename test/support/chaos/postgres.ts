import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { reachablePrograms, serverAccount } from '../../../src/postgres/embedded/account.ts';
import { findBinaries, initialise, isServing } from '../../../src/postgres/embedded/cluster.ts';
import { freePort } from '../free-port.ts';
import { waitFor } from '../wait-for.ts';
import { type Program, startProgram, tail } from './process.ts';

/**
 * `smart` lets nobody in any more and waits until all have left; `fast` rolls back what is open and
 * ends; `immediate` drops everything, and recovery follows.
 */
export type Shutdown = keyof typeof SIGNALS;

const SIGNALS = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

/** A Postgres that comes back under the same address. */
export interface RestartablePostgres {
  /** Address of its database `postgres`. */
  readonly adminUrl: string;
  restart(how: Shutdown): Promise<void>;
  /** The two halves of a restart. */
  halt(how: Shutdown): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const SETTINGS = {
  unix_socket_directories: '',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_connections: '300',
  // Nothing has to survive a power cut; commits must survive the death of the server, so they wait
  // for its log to be handed to the system.
  fsync: 'off',
  synchronous_commit: 'on',
};

/** Makes a cluster in `home` with the private Postgres' own programs; its user is `eod`. */
export async function newCluster(home: string) {
  const { native, version } = await findBinaries();
  const account = serverAccount();
  const programs = reachablePrograms(native, version, account);
  const data = join(home, 'postgres');
  mkdirSync(data, { mode: 0o700 });
  if (account !== undefined) chownSync(data, account.uid, account.gid);
  const password = randomBytes(18).toString('hex');
  await initialise({ programs, data, password, account });
  return { programs, account, data, password };
}

/** The private Postgres' own programs, with a cluster in `home`. `changed`: settings that differ from ours. */
export async function startRestartablePostgres(
  home: string,
  changed: Readonly<Record<string, string>> = {},
): Promise<RestartablePostgres> {
  const { programs, account, data, password } = await newCluster(home);
  const port = await freePort();
  const adminUrl = `postgres://eod:${password}@127.0.0.1:${port}/postgres`;
  const settings = Object.entries({ ...SETTINGS, ...changed }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);

  async function start(): Promise<Program> {
    const server = startProgram(
      join(programs, 'bin', 'postgres'),
      ['-D', data, '-p', String(port), '-h', '127.0.0.1', ...settings],
      { name: 'postgres', logFile: join(home, 'postgres.log'), cwd: '/', account, env: { LC_ALL: 'C' } },
    );
    await waitFor(async () => server.ending() !== null || (await isServing(adminUrl)), {
      what: 'Postgres',
      timeoutMs: 60_000,
    });
    if (server.ending() !== null) throw new Error(`Postgres did not start:\n${tail(server.printed())}`);
    return server;
  }

  let server = await start();
  const halt = async (how: Shutdown) => {
    server.kill(SIGNALS[how]);
    await server.ended;
  };
  return {
    adminUrl,
    async restart(how) {
      await halt(how);
      server = await start();
    },
    halt,
    async start() {
      server = await start();
    },
    async stop() {
      server.kill('SIGQUIT');
      await server.ended;
    },
  };
}

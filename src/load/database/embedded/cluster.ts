import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Account } from './account.ts';
import { isAlive } from './lock.ts';

interface Cluster {
  /** Folder with bin/ and lib/. */
  readonly programs: string;
  readonly data: string;
  readonly password: string;
  readonly account: Account | undefined;
}

/** 144 random bits, in hex. */
export function newPassword(): string {
  return randomBytes(18).toString('hex');
}

/** Creates the cluster: user `eod`, password authentication, UTF-8, byte order collation. */
export async function initialise({ programs, data, password, account }: Cluster): Promise<void> {
  const passwordFile = join(tmpdir(), `eod-${randomBytes(8).toString('hex')}`);
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (account !== undefined) chownSync(passwordFile, account.uid, account.gid);
  try {
    const child = spawn(
      join(programs, 'bin', 'initdb'),
      [
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
      ],
      { ...account, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'], env: serverEnvironment() },
    );
    await succeeded(child, 'initdb');
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/**
 * Starts the server on a free loopback port, detached, so that Ctrl-C in the terminal reaches us
 * and not it: we roll back first, then stop it.
 */
export async function startServer(
  cluster: Cluster & { readonly logFile: string },
): Promise<{ port: number; pid: number }> {
  const { programs, data, password, account, logFile } = cluster;
  const port = await freePort();
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(
    join(programs, 'bin', 'postgres'),
    [
      ...['-D', data, '-p', String(port), '-h', '127.0.0.1'],
      ...Object.entries({
        // No socket files: several private servers may run side by side.
        unix_socket_directories: '',
        // A single server without replicas: the leanest WAL that still survives a crash.
        wal_level: 'minimal',
        max_wal_senders: '0',
        shared_buffers: '256MB',
        max_wal_size: '2GB',
        // A queue in Postgres takes a few for every queue and worker of every process.
        max_connections: '400',
        log_min_messages: 'warning',
      }).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    { ...account, cwd: '/', detached: true, stdio: ['ignore', log, log], env: serverEnvironment() },
  );
  closeSync(log);
  child.unref();
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${programs}/bin/postgres could not be started`);
  const admin = `postgres://eod:${password}@127.0.0.1:${port}/postgres`;
  await untilServing(admin, child, logFile);
  await ensureDatabase(admin);
  return { port, pid };
}

/** Fast shutdown: open transactions roll back, then the process ends. */
export async function stopServer(pid: number, data: string): Promise<void> {
  const pidFile = join(data, 'postmaster.pid');
  // The number may by now belong to somebody else's process: the cluster itself must name it.
  if (!existsSync(pidFile) || Number(readFileSync(pidFile, 'utf8').split('\n')[0]) !== pid) return;
  if (!isAlive(pid)) return;
  process.kill(pid, 'SIGINT');
  for (let waited = 0; isAlive(pid) && existsSync(pidFile); waited += 20) {
    if (waited === 20_000) process.kill(pid, 'SIGQUIT');
    if (waited > 30_000) throw new Error(`Postgres (process ${pid}) does not stop`);
    await sleep(20);
  }
  // Its file goes a moment before the process does. Whose child it is may be slow to see it gone.
  for (let waited = 0; isAlive(pid) && waited < 2_000; waited += 20) await sleep(20);
}

/** Does a server answer at this address? */
export async function isServing(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // A server that dies while we ask is an answer too, not a crash of ours.
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

async function untilServing(url: string, child: ChildProcess, logFile: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await isServing(url))) {
    if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
      const tail = readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join('\n');
      throw new Error(`the private Postgres did not start; the end of ${logFile}:\n${tail}`);
    }
    await sleep(30);
  }
}

async function ensureDatabase(admin: string): Promise<void> {
  const client = new pg.Client({ connectionString: admin });
  await client.connect();
  try {
    const found = await client.query("select from pg_database where datname = 'eod'");
    if (found.rowCount === 0) await client.query('create database eod');
  } finally {
    await client.end();
  }
}

function succeeded(child: ChildProcess, name: string): Promise<void> {
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    output += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve();
      else
        reject(
          new Error(`${name} failed (${signal ?? code}): ${output.trim().split('\n').slice(-3).join(' ')}`),
        );
    });
  });
}

/** The server needs no setting of ours, least of all secrets. */
function serverEnvironment(): NodeJS.ProcessEnv {
  const { PATH, TZ } = process.env;
  return { PATH, LC_ALL: 'C', ...(TZ === undefined ? {} : { TZ }) };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

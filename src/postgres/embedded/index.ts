import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { usageError } from '../../core/errors.ts';
import type { Logger } from '../../core/log.ts';
import {
  type Account,
  clusterLocation,
  createFolderFor,
  reachablePrograms,
  serverAccount,
} from './account.ts';
import { findBinaries, formatAddress, initialise, isServing, startServer, stopServer } from './cluster.ts';
import { isAlive, withLock } from './lock.ts';

interface EmbeddedOptions {
  /** Folder for the cluster, its log and the files that say who uses it; created when missing. */
  readonly dataDir: string;
  readonly log?: Logger;
  /** Finds a port that is free; the server takes the next one if it is taken by the time it starts. */
  readonly findPort?: (() => Promise<number>) | undefined;
}

interface EmbeddedPostgres {
  readonly url: string;
  /** Ends the use of the server; the last process that does so stops it. Safe to call twice. */
  stop(): Promise<void>;
  /** For a process that must end at once: signals the server to stop and does not wait for it. */
  abandon(): void;
}

interface ServerFacts {
  readonly port: number;
  readonly password: string;
  /** Process of the postmaster; 0 when it is not running. */
  readonly pid: number;
  readonly data: string;
}

/**
 * Starts a private Postgres 18 in a folder, shared by all processes that use it: the first starts it, the last
 * stops it. Works for root (see account.ts) and for ordinary users. It listens on loopback only, with a random password
 * kept in the folder (mode 0600).
 *
 * @throws Error with the end of the server's log if it does not start.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const home = resolve(options.dataDir);
  mkdirSync(join(home, 'leases'), { recursive: true });
  const lock = join(home, 'lock');
  const lease = join(home, 'leases', String(process.pid));
  const facts = await withLock(lock, async () => {
    const running = await ensureRunning(home, options);
    writeFileSync(lease, '');
    return running;
  });
  let open = true;
  return {
    url: formatUrl(facts),
    async stop() {
      if (!open) return;
      open = false;
      await withLock(lock, async () => {
        rmSync(lease, { force: true });
        if (holders(home).length === 0) await stopServer(facts.data);
      });
    },
    abandon() {
      if (!open) return;
      open = false;
      rmSync(lease, { force: true });
      if (holders(home).length === 0 && isAlive(facts.pid)) process.kill(facts.pid, 'SIGINT');
    },
  };
}

async function ensureRunning(home: string, { log, findPort }: EmbeddedOptions): Promise<ServerFacts> {
  const known = readFacts(home);
  if (known !== undefined && isAlive(known.pid) && (await isServing(formatUrl(known)))) return known;
  const { native, version } = await findBinaries();
  const account = serverAccount();
  const programs = reachablePrograms(native, version, account);
  const data = dataFolder(home, account, log);
  const password = known?.password ?? randomBytes(18).toString('hex');
  if (known === undefined) await discardOrphan(home, data);
  if (!existsSync(join(data, 'PG_VERSION'))) {
    log?.info({ data }, 'creating a private Postgres');
    await initialise({ programs, data, password, account });
  }
  const logFile = join(home, 'server.log');
  const { port, pid } = await startServer({ programs, data, password, account, logFile }, findPort);
  const facts = { port, pid, password, data };
  writeFileSync(factsFile(home), `${JSON.stringify(facts)}\n`, { mode: 0o600 });
  chmodSync(factsFile(home), 0o600);
  log?.info({ port, server: pid }, 'private Postgres is up');
  return facts;
}

/**
 * A cluster whose password is lost cannot be used. If it is in a folder that stands in for one of root, the user removed
 * `home` to start again, so the cluster is removed too; inside `home` the user has to decide.
 */
async function discardOrphan(home: string, data: string): Promise<void> {
  if (!existsSync(join(data, 'PG_VERSION'))) return;
  if (data.startsWith(home)) {
    throw usageError(
      `${home} holds a database but not its server.json (the password): restore it, or remove the folder`,
    );
  }
  await stopServer(data);
  for (const name of readdirSync(data)) rmSync(join(data, name), { recursive: true, force: true });
}

/** Creates the folder that `clusterLocation` names. */
function dataFolder(home: string, account: Account | undefined, log: Logger | undefined): string {
  const { path, why } = clusterLocation(home, account);
  if (account !== undefined && why !== null) {
    createFolderFor(home, 'data', account);
    log?.info({ home, path }, 'the server account cannot enter the data folder, using another');
  }
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (account !== undefined) chownSync(path, account.uid, account.gid);
  return path;
}

function holders(home: string): string[] {
  const folder = join(home, 'leases');
  return readdirSync(folder).filter((name) => {
    if (isAlive(Number(name))) return true;
    rmSync(join(folder, name), { force: true });
    return false;
  });
}

const factsFile = (home: string) => join(home, 'server.json');

function readFacts(home: string): ServerFacts | undefined {
  const file = factsFile(home);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ServerFacts) : undefined;
}

const formatUrl = (facts: ServerFacts) => formatAddress(facts, 'eod');

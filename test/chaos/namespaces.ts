// A night on several machines: npm run test:namespaces [-- --cut 60 --seed 1]
// Workers, Redis and Postgres run in network namespaces with addresses of their own. Packets are delayed and dropped,
// and each of the three is cut off in turn; the night must end whole, row for row as an undisturbed one.
import { randomBytes } from 'node:crypto';
import { appendFileSync, chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import pg from 'pg';
import { isServing } from '../../src/load/database/embedded/cluster.ts';
import { checkBooks, checkBudget } from '../support/chaos/checks.ts';
import { compareDatabases } from '../support/chaos/compare.ts';
import { eod, startSandboxProcess } from '../support/chaos/eod.ts';
import {
  type Host,
  missingForHosts,
  type Network,
  openNetwork,
  UNDISTURBED,
} from '../support/chaos/hosts.ts';
import { newCluster } from '../support/chaos/postgres.ts';
import { type Program, startProgram, tail } from '../support/chaos/process.ts';
import { newDatabase } from '../support/chaos/workload.ts';
import { waitFor } from '../support/wait-for.ts';

const { values } = parseArgs({
  options: {
    cut: { type: 'string', default: '60' },
    workers: { type: 'string', default: '2' },
    sessions: { type: 'string', default: '20' },
  },
});
const CUT_MS = Number(values.cut) * 1_000;

const missing = missingForHosts();
if (missing !== null) {
  console.error(`test:namespaces cannot run here: ${missing}`);
  process.exit(2);
}
// So that what was started is ended too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

const LAUNCHER = fileURLToPath(new URL('../../bin/eod.mjs', import.meta.url));
const NIGHT = '2025-09-12';
const CALLS_PER_HOUR = 200_000;

const started = performance.now();
const report = (line: string) => {
  console.log(`${String(Math.round((performance.now() - started) / 1_000)).padStart(5)} s  ${line}`);
};

const settings = {
  EOD_ACCESS_KEY: 'namespaces',
  EOD_INSTRUMENTS: 'TCS,INFY,M&M,RELIANCE',
  EOD_LOOKBACK_SESSIONS: values.sessions,
  EOD_HISTORY_DAYS: '60',
  EOD_CALLS_PER_HOUR: String(CALLS_PER_HOUR),
  EOD_CONCURRENCY: '3',
  EOD_HTTP_PORT: '0',
  EOD_STALL_MS: '10000',
  // A command waits for servers as long as one of them may be cut off.
  EOD_SERVER_PATIENCE_MS: String(CUT_MS + 120_000),
  EOD_LOG_LEVEL: 'info',
};

/** Starts a program on a host. */
function startOn(host: Host, home: string, command: readonly string[], env = {}, options = {}): Program {
  const name = `${host.name}-${command.at(-1)?.replace(/\W/g, '') ?? ''}-${randomBytes(2).toString('hex')}`;
  const [file = '', ...enter] = host.enter;
  const logFile = join(home, `${name}.log`);
  return startProgram(file, [...enter, ...command], { name, logFile, env, cwd: home, ...options });
}

async function startPostgres(host: Host, home: string, network: Network) {
  const { programs, account, data, password } = await newCluster(home);
  appendFileSync(join(data, 'pg_hba.conf'), `host all all ${network.address}/24 scram-sha-256\n`);
  const as = account === undefined ? [] : ['-S', String(account.uid), '-G', String(account.gid)];
  const server = [
    '-D',
    data,
    '-h',
    host.address,
    '-c',
    'unix_socket_directories=',
    '-c',
    'max_connections=200',
  ];
  startOn(
    host,
    home,
    [...as, '--', join(programs, 'bin', 'postgres'), ...server],
    { LC_ALL: 'C' },
    { cwd: '/' },
  );
  const url = `postgres://eod:${password}@${host.address}:5432/postgres`;
  await waitFor(() => isServing(url), { what: 'Postgres', timeoutMs: 60_000 });
  return url;
}

async function startRedis(host: Host, home: string): Promise<string> {
  const options = ['--bind', host.address, '--protected-mode', 'no', '--save', '', '--appendonly', 'no'];
  startOn(host, home, ['redis-server', '--dir', home, ...options, '--maxmemory-policy', 'noeviction']);
  const url = `redis://${host.address}:6379`;
  const client = new Redis(url, { maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  await client.ping();
  client.disconnect();
  return url;
}

interface Look {
  readonly ended: number;
  readonly total: number;
  readonly running: number;
}

/** How far the night is; null while Postgres cannot be reached. */
async function look(url: string): Promise<Look | null> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<Look>(`
      select count(*) filter (where state not in ('pending', 'running'))::int as ended, count(*)::int as total,
        (select count(*)::int from etl.runs where state = 'running') as running
        from etl.windows where state <> 'skipped'`);
    return rows[0] ?? null;
  } catch {
    return null;
  } finally {
    void client.end().catch(() => undefined);
  }
}

/** Waits until so many windows have ended in all. */
async function reach(url: string, share: number): Promise<Look> {
  for (const since = performance.now(); performance.now() - since < 900_000; ) {
    const seen = await look(url);
    if (seen !== null && seen.total > 0 && (seen.ended / seen.total >= share || seen.running === 0))
      return seen;
    await sleep(200);
  }
  throw new Error(`the night did not come to ${share * 100} % within fifteen minutes`);
}

const home = mkdtempSync(join(tmpdir(), 'eod-namespaces-'));
// Started by root, Postgres runs as somebody else, who must be able to get in.
chmodSync(home, 0o755);
const network = await openNetwork(['workers', 'redis', 'postgres']);
const [workersHost, redisHost, postgresHost] = network.hosts as [Host, Host, Host];
report(`three hosts on ${network.address}/24; ${network.means} delays and drops; logs in ${home}`);

const adminUrl = await startPostgres(postgresHost, home, network);
const redisUrl = await startRedis(redisHost, home);
const sandbox = await startSandboxProcess({ home, env: {} }, ['--host', network.address, '--delay', '300']);
const env = { ...settings, EOD_BASE_URL: sandbox.url };

const expected = await newDatabase(adminUrl, 'undisturbed');
await eod({ home, env: { ...env, DATABASE_URL: expected, EOD_CONCURRENCY: '12' } }, [
  'nightly',
  '--date',
  NIGHT,
]);
const before = await sandbox.stats();
report(`undisturbed night: ${(await reach(expected, 1)).ended} windows, ${before.requests} calls`);

const url = await newDatabase(adminUrl, 'disturbed');
const onHosts = { ...env, DATABASE_URL: url, REDIS_URL: redisUrl };
const begun = performance.now();
const workers = Array.from({ length: Number(values.workers) }, () =>
  startOn(workersHost, home, [process.execPath, LAUNCHER, 'up', '--roles', 'worker'], onHosts),
);
await Promise.all(workers.map((worker) => worker.output(/eod is up/, 60_000)));
const night = startOn(workersHost, home, [process.execPath, LAUNCHER, 'nightly', '--date', NIGHT], onHosts);

await reach(url, 0.1);
const rough = { delayMs: 20, jitterMs: 10, dropped: 0.02 };
for (const host of network.hosts) await host.disturb(rough);
report('from now on each packet takes 10 to 30 ms longer in each direction, and 2 % are lost');
const acts: { host: string; seconds: number; endedBefore: number; endedAfter: number; of: number }[] = [];
for (const [at, host] of [workersHost, redisHost, postgresHost].entries()) {
  const atCut = await reach(url, 0.2 + at * 0.2);
  const cutAt = performance.now();
  host.setCut(true);
  report(`${host.name} cut off, ${atCut.ended} of ${atCut.total} windows have ended`);
  await sleep(CUT_MS);
  host.setCut(false);
  const seconds = Math.round((performance.now() - cutAt) / 1_000);
  const atEnd = await waitFor(() => look(url), { what: 'Postgres', timeoutMs: 120_000, everyMs: 500 });
  acts.push({ host: host.name, seconds, endedBefore: atCut.ended, endedAfter: atEnd.ended, of: atCut.total });
  report(`${host.name} is back, ${atEnd.ended} of ${atEnd.total} windows have ended`);
}
await reach(url, 0.9);
for (const host of network.hosts) await host.disturb(UNDISTURBED);
const { code } = await night.ended;
const seconds = Math.round((performance.now() - begun) / 1_000);
// After a minute without an answer, TCP tries again only a minute later: a connection may be held up for so long.
await sleep(CUT_MS);
for (const worker of workers) worker.kill('SIGTERM');
await Promise.all(workers.map((worker) => worker.ended));

const after = await sandbox.stats();
const { rows, problems } = await compareDatabases(expected, url);
const byHour = Object.fromEntries(
  Object.entries(after.byHour).map(([hour, calls]) => [hour, calls - (before.byHour[hour] ?? 0)]),
);
const all = [
  ...problems,
  ...(code === 0 ? [] : [`the night ended with code ${code}:\n${tail(night.printed())}`]),
  ...acts
    .filter((act) => act.endedBefore >= act.of)
    .map((act) => `nothing was left when ${act.host} was cut off`),
  ...workers.flatMap((worker) =>
    worker.ending()?.code === 0 ? [] : [`${worker.name}: ${tail(worker.printed())}`],
  ),
  ...(await checkBooks(url)),
  ...(await checkBudget(url, { ...after, byHour }, CALLS_PER_HOUR)),
];
const attempts = await new pg.Pool({ connectionString: url, max: 1 }).query(
  'select count(*)::int as windows, sum(attempts)::int as attempts from etl.windows',
);
console.log(
  JSON.stringify(
    {
      seconds,
      means: network.means,
      ...attempts.rows[0],
      calls: after.requests - before.requests,
      rows,
      cut: acts,
    },
    null,
    2,
  ),
);
for (const problem of all) console.log(`PROBLEM: ${problem}`);
console.log(all.length === 0 ? 'passed: whole, and nothing doubled' : 'failed');
if (all.length === 0) {
  process.once('exit', () => rmSync(home, { recursive: true, force: true }));
}
process.exit(all.length === 0 ? 0 : 1);

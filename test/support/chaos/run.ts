import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../../src/core/errors.ts';
import { query } from '../query.ts';
import { waitFor } from '../wait-for.ts';
import { checkBooks, checkBudget, checkMemory, type MemoryFigures } from './checks.ts';
import { compareDatabases } from './compare.ts';
import { eod, type SandboxProcess, type Surroundings, startEod, startSandboxProcess } from './eod.ts';
import { checkFold } from './fold.ts';
import { type ActKind, type Backend, planActs } from './plan.ts';
import { type RestartablePostgres, startRestartablePostgres } from './postgres.ts';
import { type Program, tail } from './process.ts';
import { type Pause, type Progress, watchProgress } from './progress.ts';
import { randomFrom } from './random.ts';
import { type RestartableRedis, startRestartableRedis } from './redis.ts';
import { startWorkers, type WorkerFigures, type WorkerGroup } from './workers.ts';
import {
  backfillArgs,
  importArgs,
  loadUndisturbed,
  newDatabase,
  nightlyArgs,
  nightSurroundings,
  type Workload,
} from './workload.ts';

export interface ChaosOptions {
  readonly seed: number;
  readonly kills: number;
  readonly backends: readonly Backend[];
  readonly workload: Workload;
  /** Worker processes at any time. */
  readonly workers: number;
  /** The source takes so long for a response that work is in flight when a process dies. */
  readonly delayMs: number;
  readonly report: (line: string) => void;
}

export interface ChaosFigures {
  readonly backend: Backend;
  readonly seed: number;
  readonly seconds: number;
  readonly windows: Readonly<Record<string, number>>;
  /** Times a window was taken on; more than windows, because work was cut short or failed. */
  readonly attempts: number;
  readonly rows: number;
  /** What was done, and how often, while windows were open. */
  readonly acts: Readonly<Partial<Record<ActKind, number>>>;
  readonly workers: Omit<WorkerFigures, 'memory'>;
  readonly calls: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly longestPause: Pause;
  readonly memory: Omit<MemoryFigures, 'problems'>;
  /** Empty where everything came out as it must. */
  readonly problems: readonly string[];
}

const CALLS_PER_HOUR = 200_000;

/** Failures of the source: about every tenth call, by its number. */
const FAULTS = [
  'status=503,every=53',
  'reset,every=67',
  'truncate,every=71',
  'half-json,every=101',
  'html,every=103',
  'empty-body,every=107',
  'slow=700,every=109',
  'retry-after=1,every=331',
  'diagnostic=Authentication request received. Try request data in next moment.,every=73',
];

/**
 * Loads the same twice: undisturbed, and while processes are killed, servers restart, connections
 * break and the source fails now and then. Says what differs afterwards.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosFigures[]> {
  const home = mkdtempSync(join(tmpdir(), 'eod-chaos-'));
  // Started by root, the server runs as somebody else, who must be able to get in.
  chmodSync(home, 0o755);
  const postgres = await startRestartablePostgres(home);
  try {
    options.report(`seed ${options.seed}; logs in ${home}`);
    const expected = await undisturbed(home, postgres, options);
    const figures: ChaosFigures[] = [];
    for (const backend of options.backends) {
      figures.push(await disturbed(home, postgres, backend, expected, options));
    }
    if (figures.every(({ problems }) => problems.length === 0)) rmSync(home, { recursive: true });
    return figures;
  } finally {
    await postgres.stop();
  }
}

/** @returns address of the database that holds what must come out. */
async function undisturbed(
  home: string,
  postgres: RestartablePostgres,
  { workload, report }: ChaosOptions,
): Promise<string> {
  const url = await newDatabase(postgres.adminUrl, 'undisturbed');
  const env = { ...settings(workload), DATABASE_URL: url, EOD_CONCURRENCY: '12' };
  const sandbox = await startSandboxProcess({ home, env: {} }, []);
  try {
    const started = Date.now();
    await loadUndisturbed({ home, env: { ...env, EOD_BASE_URL: sandbox.url } }, workload);
    report(`undisturbed load: ${Math.round((Date.now() - started) / 1000)} s`);
  } finally {
    await sandbox.stop();
  }
  const problems = await checkBooks(url);
  if (problems.length > 0) throw new Error(`the undisturbed load is wrong:\n${problems.join('\n')}`);
  return url;
}

function settings(workload: Workload): Record<string, string> {
  return {
    EOD_ACCESS_KEY: 'chaos',
    EOD_INSTRUMENTS: workload.instruments.join(','),
    EOD_CALLS_PER_HOUR: String(CALLS_PER_HOUR),
    EOD_HTTP_PORT: '0',
    EOD_STALL_MS: '1500',
    EOD_BACKOFF_MS: '50',
    EOD_ATTEMPTS: '25',
    EOD_NOT_READY_WAIT_MS: '100',
    EOD_TIMEOUT_MS: '5000',
  };
}

/** What the acts work on. */
interface Setup {
  readonly surroundings: Surroundings;
  readonly url: string;
  readonly workload: Workload;
  readonly postgres: RestartablePostgres;
  readonly redis: RestartableRedis | undefined;
  readonly group: WorkerGroup;
  readonly progress: Progress;
  readonly random: () => number;
  /** Commands that go on beside the acts. */
  readonly beside: Program[];
  /** Imports that go on beside the acts, begun again as long as an outage ends them. */
  readonly imports: Promise<unknown>[];
}

async function disturbed(
  home: string,
  postgres: RestartablePostgres,
  backend: Backend,
  expected: string,
  options: ChaosOptions,
): Promise<ChaosFigures> {
  const { seed, workload } = options;
  const redis = backend === 'redis' ? await startRestartableRedis(home) : undefined;
  const faults = FAULTS.flatMap((rule) => ['--fault', rule]);
  const limits = ['--calls-per-hour', String(CALLS_PER_HOUR), '--delay', String(options.delayMs)];
  const sandbox = await startSandboxProcess({ home, env: {} }, [...limits, ...faults]);
  const url = await newDatabase(postgres.adminUrl, `chaos_${backend}`);
  const env = {
    ...settings(workload),
    DATABASE_URL: url,
    EOD_BASE_URL: sandbox.url,
    EOD_CONCURRENCY: '4',
    ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
  };
  const surroundings = { home, env };
  const group = startWorkers(surroundings, options.workers);
  try {
    await group.ready();
    const started = Date.now();
    await eod(surroundings, [...backfillArgs(workload.first), '--detach']);
    const setup: Setup = {
      surroundings,
      url,
      workload,
      postgres,
      redis,
      group,
      beside: [],
      imports: [],
      progress: watchProgress(url),
      random: randomFrom(seed + 1),
    };
    const done = await perform(setup, backend, options);
    const seconds = Math.round((Date.now() - started) / 1000);
    await group.stop();
    return await reckon({ setup, backend, expected, sandbox, seconds, options, ...done });
  } finally {
    await group.stop();
    await Promise.all([sandbox.stop(), redis?.stop()]);
  }
}

interface Performance {
  readonly acts: ChaosFigures['acts'];
  readonly problems: string[];
}

async function perform(
  setup: Setup,
  backend: Backend,
  { seed, kills, report }: ChaosOptions,
): Promise<Performance> {
  const acts: Partial<Record<ActKind, number>> = {};
  const problems: string[] = [];
  let late = 0;
  for (const { kind, at } of planActs(seed, kills, backend)) {
    if (!(await setup.progress.reach(at))) late += 1;
    else acts[kind] = (acts[kind] ?? 0) + 1;
    const since = performance.now();
    await ACTS[kind](setup);
    setup.progress.note(`${kind} (${Math.round(performance.now() - since)} ms)`);
    if (kind !== 'kill -9 a worker' || (acts[kind] ?? 0) % 20 === 0) {
      report(`${backend}, ${Math.round(at * 100)} %: ${kind}`);
    }
  }
  if (late > 0) problems.push(`${late} acts came after the work was done: the source must be slower`);
  await setup.progress.end();
  await Promise.all(setup.imports).catch((error) => problems.push(messageOf(error)));
  for (const program of setup.beside) {
    const { code, signal } = await program.ended;
    if (code !== 0)
      problems.push(`${program.name} ended with ${signal ?? code}:\n${tail(program.printed())}`);
  }
  return { acts, problems };
}

const ACTS: Readonly<Record<ActKind, (setup: Setup) => Promise<unknown>>> = {
  'kill -9 a worker': ({ group, random }) => group.killOne(random),
  'restart Postgres, fast': ({ postgres }) => postgres.restart('fast'),
  'restart Postgres, immediate': ({ postgres }) => postgres.restart('immediate'),
  'restart Redis, empty': async ({ redis }) => redis?.restart(),
  'cut connections to Redis': async ({ redis }) => redis?.cutConnections(),
  'cut connections to Postgres': ({ url, random }) =>
    query(
      url,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
          and pid <> pg_backend_pid() and backend_type = 'client backend' and md5(pid || $1) < '8'`,
      [String(random())],
    ),
  'replay in place': async ({ surroundings, url, beside }) => {
    const before = await newestRun(url);
    beside.push(startEod(surroundings, ['replay']));
    await replayAfter(url, before);
  },
  'kill -9 a replay and resume it': async ({ surroundings, url, beside }) => {
    const before = await newestRun(url);
    const replay = startEod(surroundings, ['replay', 'GetBhavCopyCM']);
    const { id } = await replayAfter(url, before);
    // So that it is killed while it folds a part.
    const isUnderWay = `select from etl.windows where run_id = $1 and started_at is not null`;
    await waitFor(async () => replay.ending() !== null || (await query(url, isUnderWay, [id])).length > 0, {
      what: 'the replay',
    });
    replay.kill('SIGKILL');
    await replay.ended;
    const [run] = await query<{ state: string }>(url, 'select state from etl.runs where id = $1', [id]);
    if (run?.state === 'running') beside.push(startEod(surroundings, ['runs', 'resume', String(id)]));
  },
  'import files': async ({ surroundings, imports }) => {
    const importAll = async () => {
      for (let left = 40; ; left -= 1) {
        try {
          return await eod(surroundings, importArgs());
        } catch (error) {
          if (left === 0) throw error;
        }
      }
    };
    imports.push(importAll());
  },
  'start a second backfill and a night at once': async ({
    surroundings,
    url,
    workload,
    postgres,
    random,
    beside,
  }) => {
    beside.push(startEod(nightSurroundings(surroundings), nightlyArgs(workload)));
    beside.push(startEod(surroundings, [...backfillArgs(workload.second), '--detach']));
    // One of them is written, the other is being planned, and Postgres becomes unreachable.
    await waitFor(async () => (await query(url, 'select from etl.runs')).length > 1, {
      timeoutMs: 60_000,
      what: 'another run',
    });
    await postgres.restart(random() < 0.5 ? 'fast' : 'immediate');
    await waitFor(async () => (await query(url, ALL_AT_WORK)).length > 0, {
      timeoutMs: 60_000,
      what: 'the second backfill and the night',
    });
  },
};

const newestRun = async (url: string) =>
  (await query<{ id: number }>(url, 'select coalesce(max(id), 0)::int as id from etl.runs'))[0]?.id ?? 0;

const replayAfter = (url: string, before: number) =>
  waitFor(
    async () => {
      const newer = "select id::int from etl.runs where id > $1 and kind = 'replay' order by id limit 1";
      return (await query<{ id: number }>(url, newer, [before]).catch(() => []))[0] ?? null;
    },
    { timeoutMs: 240_000, what: 'a replay' },
  );

const ALL_AT_WORK = `
  select where (select count(*) from etl.runs where kind = 'backfill') = 2 and exists (
    select from etl.runs r where kind = 'nightly' and exists (
      select from etl.windows where run_id = r.id and started_at is not null))`;

interface Outcome extends Performance {
  readonly setup: Setup;
  readonly backend: Backend;
  readonly expected: string;
  readonly sandbox: SandboxProcess;
  readonly seconds: number;
  readonly options: ChaosOptions;
}

/** Compares, checks and counts. */
async function reckon({ setup, expected, sandbox, ...outcome }: Outcome): Promise<ChaosFigures> {
  const { url, group, progress } = setup;
  const stats = await sandbox.stats();
  const windows = await query<{ state: string; windows: number; attempts: number }>(
    url,
    'select state, count(*)::int as windows, sum(attempts)::int as attempts from etl.windows group by 1 order by 1',
  );
  const comparison = await compareDatabases(expected, url);
  const { memory: samples, ...workers } = group.figures();
  const { problems: growth, ...memory } = checkMemory(samples, { growth: 0.4, megabytes: 400 });
  return {
    backend: outcome.backend,
    seed: outcome.options.seed,
    seconds: outcome.seconds,
    windows: Object.fromEntries(windows.map((row) => [row.state, row.windows])),
    attempts: windows.reduce((sum, row) => sum + row.attempts, 0),
    rows: comparison.rows,
    acts: outcome.acts,
    workers,
    calls: stats.requests,
    faults: stats.byFault,
    longestPause: progress.longestPause(),
    memory,
    problems: [
      ...outcome.problems,
      ...comparison.problems,
      ...(await checkBooks(url)),
      ...(await checkFold(url)),
      ...(await checkBudget(url, stats, CALLS_PER_HOUR)),
      ...group.problems(),
      ...growth,
    ],
  };
}

import { randomBytes } from 'node:crypto';
import { describe, expect, type TestContext, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { type RunningWorker, startWorker } from '../../src/jobs/worker/worker.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { testDatabase } from '../support/database.ts';
import {
  type Backend,
  backends,
  backfill,
  ended,
  mostly,
  openPipeline,
  type Pipeline,
  start,
} from '../support/pipeline.ts';
import { freePrefix } from '../support/redis.ts';
import { openSandbox } from '../support/sandbox.ts';
import { waitFor } from '../support/wait-for.ts';

const LIMITED = 'Calls per hour are limited.';
const TURN = Date.parse('2025-09-12T23:00:00+05:30');
const [BEFORE, AFTER] = ['2025-09-12T22', '2025-09-12T23'] as const;

/** A clock that runs as ours does, can be put forward, and can be made to wait for a test, however slow the machine. */
class RunningClock implements Clock {
  #offset = 0;
  #standing: number | null = null;

  constructor(millisecondsToTurn: number) {
    this.turnIn(millisecondsToTurn);
  }

  now(): number {
    return this.#standing ?? Date.now() + this.#offset;
  }

  turnIn(milliseconds: number): void {
    this.#standing = null;
    this.#offset = TURN - milliseconds - Date.now();
  }

  /** Stops the clock so many milliseconds before the turn, until `turnIn` makes it run again. */
  standBeforeTurn(milliseconds: number): void {
    this.#standing = TURN - milliseconds;
  }
}

interface Fleet {
  readonly sandbox: Sandbox;
  readonly clock: RunningClock;
  /** The first of the machines; all share database, queue and key, and nothing else. */
  readonly machine: Pipeline;
}

interface FleetOptions {
  readonly backend: Backend;
  readonly workers: number;
  readonly toTurn: number;
  /** What the source allows in an hour. */
  readonly allowed: number;
  readonly settings: Readonly<Record<string, string>>;
}

/** Everything is closed when the test has ended: the tests run side by side, since most of their time is waiting. */
async function openFleet(
  { onTestFinished }: TestContext,
  { backend, workers, toTurn, allowed, settings }: FleetOptions,
): Promise<Fleet> {
  const clock = new RunningClock(toTurn);
  const sandbox = await openSandbox({
    clock,
    instrumentsPerExchange: 20,
    behaviour: { callsPerHour: allowed },
  });
  const common = {
    databaseUrl: (await testDatabase()).url,
    sourceUrl: sandbox.url,
    backend,
    clock,
    prefix: freePrefix(),
    settings: {
      EOD_ACCESS_KEY: `key-${randomBytes(6).toString('hex')}`,
      // A single attempt that counted would fail its window.
      EOD_ATTEMPTS: '1',
      ...settings,
    },
  };
  const machines: Pipeline[] = [];
  for (let each = 0; each < workers; each++) machines.push(await openPipeline(common));
  onTestFinished(async () => {
    for (const machine of machines) await machine.close();
  });
  const working: RunningWorker[] = await Promise.all(machines.map((machine) => startWorker(machine)));
  onTestFinished(async () => {
    await Promise.all(working.map((worker) => worker.stop(500)));
  });
  return { sandbox, clock, machine: machines[0] as Pipeline };
}

/** As many windows as instruments, times two. */
function ratios(instruments: number) {
  return backfill({
    operations: ['GetFinRatioEOD'],
    from: '2025-09-11',
    to: '2025-09-11',
    instruments: Array.from({ length: instruments }, (_, index) => `INSTRUMENT${index}`),
  });
}

async function budgetOf({ db }: Pipeline): Promise<number[]> {
  const result = await db.pool.query<{ calls: number }>('select calls from etl.call_budget order by hour');
  return result.rows.map(({ calls }) => calls);
}

async function attemptsOf({ db }: Pipeline): Promise<number[]> {
  const result = await db.pool.query<{ attempts: number }>(
    "select distinct attempts from etl.windows where state <> 'skipped' order by 1",
  );
  return result.rows.map(({ attempts }) => attempts);
}

describe.each(backends)('the turn of the clock hour (queue on %s)', (backend) => {
  test.concurrent('8 workers and 400 calls an hour: never a call too many, and the run goes on', async (context) => {
    const { sandbox, clock, machine } = await openFleet(context, {
      backend,
      workers: 8,
      toTurn: 8 * 60_000,
      allowed: 400,
      settings: { EOD_CALLS_PER_HOUR: '400', EOD_NIGHTLY_RESERVE: '0' },
    });
    const runId = await start(machine, ratios(240));
    await waitFor(() => sandbox.stats().requests >= 320, {
      everyMs: 5,
      timeoutMs: 120_000,
      what: 'most calls',
    });
    // Workers that find the hour used up wait for as long as it still is.
    clock.standBeforeTurn(2_000);
    await waitFor(() => sandbox.stats().requests >= 400, { timeoutMs: 60_000, what: 'the whole hour' });
    clock.turnIn(2_000);
    const report = await ended(machine, runId, 60_000);

    expect(report).toMatchObject({ state: 'completed', requests: 480, windows: { total: 480, open: 0 } });
    expect(sandbox.stats().byHour).toEqual({ [BEFORE]: 400, [AFTER]: 80 });
    expect(sandbox.stats().byDiagnostic).toEqual({});
    expect(await budgetOf(machine)).toEqual([400, 80]);
    // Waiting took no attempt, neither of BullMQ (one would have failed the window) nor of ours.
    expect(await attemptsOf(machine)).toEqual([1]);
  }, 300_000);

  test.concurrent('a key that others use too: all stop at once when the source says so, and go on in the next hour', async (context) => {
    const { sandbox, clock, machine } = await openFleet(context, {
      backend,
      workers: 2,
      toTurn: 8 * 60_000,
      allowed: 40,
      settings: { EOD_CALLS_PER_HOUR: '900', EOD_CONCURRENCY: '2' },
    });
    await othersAsk(sandbox, 15);
    const runId = await start(machine, ratios(20));
    await waitFor(() => sandbox.stats().requests >= 25, { everyMs: 5, what: 'the first calls' });
    clock.standBeforeTurn(2_000);
    await waitFor(() => sandbox.stats().byDiagnostic[LIMITED], { what: 'a refusal' });
    clock.turnIn(2_000);
    const report = await ended(machine, runId);

    expect(report).toMatchObject({ state: 'completed', windows: { total: 40, open: 0, failed: 0 } });
    const { byHour, byDiagnostic } = sandbox.stats();
    // Besides the first, only calls under way at that moment were refused: at most one for each window in flight.
    const refused = byDiagnostic[LIMITED] ?? 0;
    expect(refused).toBeGreaterThanOrEqual(1);
    expect(refused).toBeLessThanOrEqual(4);
    expect(byHour).toEqual({ [BEFORE]: 40 + refused, [AFTER]: 15 });
    expect(Math.max(...(await attemptsOf(machine)))).toBe(2);
  });
});

test.concurrent('a call that Postgres lets through only after the turn is not made on the budget of the old hour', async (context) => {
  const { sandbox, clock, machine } = await openFleet(context, {
    backend: 'postgres',
    workers: 1,
    toTurn: 8 * 60_000,
    allowed: 900,
    settings: { EOD_CALLS_PER_HOUR: '900' },
  });
  const { pool } = machine.db;
  // The first window shows the key to be good; then every further claim is made to wait.
  await ended(machine, await start(machine, ratios(1)));
  const blocker = await pool.connect();
  await blocker.query('begin');
  await blocker.query('lock table etl.call_budget in access exclusive mode');
  clock.standBeforeTurn(3_000);
  const runId = await start(machine, ratios(2));
  await waitFor(
    async () => {
      const waiting = await pool.query('select from pg_locks where not granted and relation = $1::regclass', [
        'etl.call_budget',
      ]);
      return waiting.rowCount !== null && waiting.rowCount > 0;
    },
    { what: 'a claim that waits' },
  );
  expect(clock.now()).toBeLessThan(TURN - 2_000);
  clock.turnIn(0);
  await blocker.query('commit');
  blocker.release();

  const report = await ended(machine, runId);
  // What was empty a moment ago is requested again: it may be late.
  expect(report).toMatchObject({ state: 'completed', requests: 4 });
  expect(sandbox.stats().byHour).toEqual({ [BEFORE]: 2, [AFTER]: 4 });
  // What was granted before the turn was not used, and is given back.
  expect(await budgetOf(machine)).toEqual([2, 4]);
  expect(await attemptsOf(machine)).toEqual([1]);
});

describe.each(mostly('postgres'))('the reserve of the night (queue on %s)', (backend) => {
  test.concurrent('a backfill stops at 70 %, and a night of the same hour still gets its calls', async (context) => {
    const { sandbox, machine } = await openFleet(context, {
      backend,
      workers: 3,
      toTurn: 30 * 60_000,
      allowed: 100,
      settings: { EOD_CALLS_PER_HOUR: '100', EOD_NIGHTLY_RESERVE: '30%' },
    });
    const filling = await start(machine, ratios(50));
    await waitFor(() => sandbox.stats().requests >= 70, { what: 'the share of the backfill' });
    const night = await start(machine, { ...backfillOfNight(), kind: 'nightly' });
    const report = await ended(machine, night);

    expect(report).toMatchObject({ state: 'completed', requests: 20, windows: { total: 20, failed: 0 } });
    expect(sandbox.stats().byHour).toEqual({ [BEFORE]: 90 });
    expect(sandbox.stats().byDiagnostic).toEqual({});
    const left = await machine.db.pool.query(
      "select state, count(*)::int as windows from etl.windows where run_id = $1 and state in ('pending', 'running') group by 1",
      [filling],
    );
    expect(left.rows).toEqual([{ state: 'pending', windows: 30 }]);
  });
});

/** 20 windows. */
function backfillOfNight() {
  return backfill({
    operations: ['GetBhavCopyCM'],
    exchanges: ['NSE'],
    from: '2025-08-13',
    to: '2025-09-11',
  });
}

async function othersAsk(sandbox: Sandbox, calls: number): Promise<void> {
  const query = 'accessKey=shared&exchange=NSE&date=1757529000';
  for (let each = 0; each < calls; each++) await fetch(`${sandbox.url}/GetCircuitBreakers?${query}`);
}

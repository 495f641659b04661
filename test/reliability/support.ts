import { randomBytes } from 'node:crypto';
import { test as base } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import type { WorkContext } from '../../src/jobs/context.ts';
import { startRun } from '../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import type { Behaviour, Sandbox } from '../../src/sandbox/index.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { closeAfterTest } from '../support/closing.ts';
import {
  type Backend,
  type BackfillOptions,
  backfill,
  ended,
  openPipeline,
  type Pipeline,
} from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';

/** A clock that showed `start` when it was made and goes on from there. */
export function clockFrom(start: string): Clock {
  const offset = Date.parse(start) - Date.now();
  return { now: () => Date.now() + offset };
}

/** Friday evening, an hour after the data is out, and far from the turn of the hour. */
export const EVENING = '2025-09-12T22:02:00+05:30';

export interface SetupOptions {
  readonly behaviour?: Partial<Behaviour>;
  /** The address of another source than the sandbox. */
  readonly sourceUrl?: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly backend?: Backend;
  readonly clock?: Clock;
  /** The sandbox's own, where it is to differ. */
  readonly sourceClock?: Clock;
  /** Instruments of each exchange of the sandbox; few when not given. */
  readonly instruments?: number;
}

/** A sandbox that misbehaves as the options say, and all a real worker needs to meet it. */
export interface Setup extends Pipeline {
  readonly sandbox: Sandbox;
  /** Starts workers; they are stopped after the test. */
  work(workers?: number): Promise<void>;
  /** Plans a run, works on it and waits for its end. */
  run(request: RunOptions): Promise<RunReport>;
}

/** The setup of one test, on a database of its own. Everything is closed after the test. */
export async function openSetup(options: SetupOptions = {}): Promise<Setup> {
  const clock = options.clock ?? clockFrom(EVENING);
  const sandbox = await openSandbox({
    clock: options.sourceClock ?? clock,
    instrumentsPerExchange: options.instruments ?? 40,
    behaviour: options.behaviour ?? {},
  });
  const pipeline = await openPipeline({
    sourceUrl: options.sourceUrl ?? sandbox.url,
    clock,
    backend: options.backend ?? 'postgres',
    settings: {
      // Each test has a key of its own, of which nothing is known.
      EOD_ACCESS_KEY: `key-${randomBytes(6).toString('hex')}`,
      EOD_CONCURRENCY: '4',
      // A busy machine must not look like a stalled worker to tests that count calls.
      EOD_STALL_MS: '10000',
      ...options.settings,
    },
  });
  closeAfterTest(() => pipeline.close());
  const work = async (count = 1) => {
    for (let each = 0; each < count; each++) {
      const worker = await startWorker(pipeline);
      // The windows in flight of a test that has failed are not waited for.
      closeAfterTest(() => worker.stop(500));
    }
  };
  return {
    ...pipeline,
    sandbox,
    work,
    async run(request) {
      const runId = await start(pipeline, request);
      await work();
      return ended(pipeline, runId);
    },
  };
}

/** A test that may use a setup with nothing special about it. */
export const test = base.extend('setup', () => openSetup());

export interface RunOptions extends BackfillOptions {
  /** A scheduled run: its tick. */
  readonly tick?: string;
}

/** Plans a run and gives its number; nobody works on it yet. */
export async function start(context: WorkContext, { tick, ...options }: RunOptions): Promise<number> {
  const request = backfill(options);
  const runId =
    tick === undefined
      ? await startRun(context, request)
      : await startRun(context, { ...request, kind: 'nightly' }, { tick, requestedBy: 'schedule' });
  if (runId === null) throw new Error('a run of this tick exists');
  return runId;
}

export interface WindowRow {
  readonly id: number;
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  readonly instruments: readonly string[];
  readonly state: string;
  readonly attempts: number;
  readonly requests: number;
  readonly fetched: number;
  readonly rejected: number;
  readonly parent: number | null;
  readonly error: string | null;
  readonly diagnostic: string | null;
}

/** The windows of a run in the order they were made. */
export async function windowsOf({ db }: Pick<WorkContext, 'db'>, runId: number): Promise<WindowRow[]> {
  const result = await db.pool.query<WindowRow>(
    `select id::int, operation, exchange, to_char(from_date, 'YYYY-MM-DD') as "from",
       to_char(to_date, 'YYYY-MM-DD') as "to", instruments, state, attempts, requests, fetched::int, rejected::int,
       parent_id::int as parent, error, diagnostic
     from etl.windows where run_id = $1 order by id`,
    [runId],
  );
  return result.rows;
}

export interface CoverageRow {
  readonly operation: string;
  readonly exchange: string;
  readonly day: string;
  readonly instrument: string;
  readonly state: string;
  readonly records: number;
  readonly diagnostic: string | null;
}

/** All coverage there is, in key order. */
export async function coverageRows({ db }: Pick<WorkContext, 'db'>): Promise<CoverageRow[]> {
  const result = await db.pool.query<CoverageRow>(
    `select operation, exchange, to_char(day, 'YYYY-MM-DD') as day, instrument, state, records::int, diagnostic
       from etl.coverage order by operation, exchange, day, instrument, variant`,
  );
  return result.rows;
}

/** How many there are of each: `tally(['a', 'b', 'a'])` is `{a: 2, b: 1}`. */
export function tally(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

/** What must hold after any run, whatever happened in it. */
export async function accountsOf(setup: Setup, report: RunReport): Promise<void> {
  const { windows } = report;
  const ends = windows.loaded + windows.empty + windows.skipped + windows.blocked + windows.failed;
  if (ends + windows.cancelled !== windows.total || windows.open !== 0) {
    throw new Error(`windows do not add up: ${JSON.stringify(windows)}`);
  }
  const records = report.inserted + report.updated + report.unchanged + report.stale + report.duplicate;
  if (report.fetched !== records + report.rejected) throw new Error('records do not add up');
  const { requests } = setup.sandbox.stats();
  if (report.requests !== requests) throw new Error(`${report.requests} counted, ${requests} received`);
}

import type { Pool } from 'pg';
import { usageError } from '../core/errors.ts';
import type { RowDifference } from '../load/differences.ts';
import type { RecordCounts } from '../load/window.ts';
import type { RunKind, RunState } from './request.ts';

/** Counts of windows by end; `open` is what has not ended. */
export interface WindowCounts {
  readonly total: number;
  readonly loaded: number;
  readonly empty: number;
  readonly skipped: number;
  readonly blocked: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly open: number;
}

export interface Counts extends RecordCounts {
  readonly windows: WindowCounts;
  readonly requests: number;
  readonly bytes: number;
  /** From the first start to the last end. */
  readonly seconds: number;
}

export interface OperationReport extends Counts {
  readonly operation: string;
  readonly exchange: string;
}

/** A window that did not end well, by name. */
export interface Failure {
  readonly windowId: number;
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  readonly instruments: readonly string[];
  readonly part: string;
  readonly state: 'failed' | 'blocked' | 'cancelled';
  readonly error: string | null;
}

/** What `eod run ID --json` and the end of every run print. */
export interface RunReport extends Counts {
  readonly runId: number;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly from: string;
  readonly to: string;
  readonly error: string | null;
  readonly operations: readonly OperationReport[];
  readonly failures: readonly Failure[];
  /** Windows whose answer lacked more rows than may be withdrawn: somebody should look. */
  readonly suspicious: readonly { readonly windowId: number; readonly reason: string }[];
  /** For a preview: sample rows that would change. */
  readonly preview: readonly RowDifference[];
  /** Why windows were skipped, and how many for each reason. */
  readonly skips: readonly { readonly reason: string; readonly windows: number }[];
}

const WINDOW_STATES = ['loaded', 'empty', 'skipped', 'blocked', 'failed', 'cancelled'] as const;
const RECORD_COUNTS = [
  ...['requests', 'bytes', 'fetched', 'inserted', 'updated', 'unchanged'],
  ...['stale', 'duplicate', 'rejected', 'withdrawn'],
] as const;

const COUNT_COLUMNS = [
  // A split window is counted in the windows that replaced it; only its calls are its own.
  "count(*) filter (where state <> 'split')::int as total",
  ...WINDOW_STATES.map((state) => `count(*) filter (where state = '${state}')::int as ${state}`),
  "count(*) filter (where state in ('pending', 'running'))::int as open",
  ...RECORD_COUNTS.map((name) => `coalesce(sum(${name}), 0)::float8 as ${name}`),
  'round(coalesce(extract(epoch from max(finished_at) - min(started_at)), 0)::numeric, 3)::float8 as seconds',
].join(', ');

type FlatCounts = Record<string, number>;

function countsOf(flat: FlatCounts): Counts {
  const number = (name: string) => flat[name] ?? 0;
  return {
    windows: {
      total: number('total'),
      loaded: number('loaded'),
      empty: number('empty'),
      skipped: number('skipped'),
      blocked: number('blocked'),
      failed: number('failed'),
      cancelled: number('cancelled'),
      open: number('open'),
    },
    requests: number('requests'),
    bytes: number('bytes'),
    fetched: number('fetched'),
    inserted: number('inserted'),
    updated: number('updated'),
    unchanged: number('unchanged'),
    stale: number('stale'),
    duplicate: number('duplicate'),
    rejected: number('rejected'),
    withdrawn: number('withdrawn'),
    seconds: number('seconds'),
  };
}

interface RunRow {
  readonly id: number;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly from: string;
  readonly to: string;
  readonly error: string | null;
  readonly seconds: number;
}

/** Everything about one run. @throws PipelineError `usage` when there is no such run. */
export async function reportRun(pool: Pool, runId: number): Promise<RunReport> {
  const found = await pool.query<RunRow>(
    `select id::int, kind, state, to_char(from_date, 'YYYY-MM-DD') as "from", to_char(to_date, 'YYYY-MM-DD') as "to", error,
       round(extract(epoch from coalesce(finished_at, clock_timestamp()) - started_at)::numeric, 3)::float8 as seconds
     from etl.runs where id = $1`,
    [runId],
  );
  const run = found.rows[0];
  if (run === undefined) throw usageError(`there is no run ${runId} ("eod runs" lists them)`);
  const all = await pool.query<FlatCounts>(`select ${COUNT_COLUMNS} from etl.windows where run_id = $1`, [
    runId,
  ]);
  const each = await pool.query<FlatCounts & { operation: string; exchange: string }>(
    `select operation, exchange, ${COUNT_COLUMNS} from etl.windows where run_id = $1
      group by operation, exchange order by min(id)`,
    [runId],
  );
  const failures = await pool.query<Failure>(
    `select id::int as "windowId", operation, exchange, to_char(from_date, 'YYYY-MM-DD') as "from",
       to_char(to_date, 'YYYY-MM-DD') as "to", instruments, part, state, error
     from etl.windows where run_id = $1 and state in ('failed', 'blocked', 'cancelled') order by id`,
    [runId],
  );
  const skips = await pool.query<{ reason: string; windows: number }>(
    `select coalesce(error, '') as reason, count(*)::int as windows from etl.windows
      where run_id = $1 and state = 'skipped' group by 1 order by 2 desc, 1`,
    [runId],
  );
  const suspicious = await pool.query<{ windowId: number; reason: string }>(
    `select id::int as "windowId", suspicious as reason from etl.windows
      where run_id = $1 and suspicious is not null order by id`,
    [runId],
  );
  const preview = await pool.query<{ sample: RowDifference }>(
    `select jsonb_array_elements(preview) as sample from etl.windows
      where run_id = $1 and preview is not null order by id limit 100`,
    [runId],
  );
  return {
    runId: run.id,
    kind: run.kind,
    state: run.state,
    from: run.from,
    to: run.to,
    ...countsOf(all.rows[0] ?? {}),
    seconds: run.seconds,
    error: run.error,
    operations: each.rows.map((row) => ({
      operation: row.operation,
      exchange: row.exchange,
      ...countsOf(row),
    })),
    failures: failures.rows,
    suspicious: suspicious.rows,
    preview: preview.rows.map((row) => row.sample),
    skips: skips.rows,
  };
}

/** How far a run is; cheap enough to ask several times a second. */
export interface Progress {
  readonly state: RunState;
  readonly total: number;
  readonly ended: number;
  readonly requests: number;
  readonly fetched: number;
  /** Has part of the run yet to be planned? */
  readonly deferred: boolean;
}

export async function runProgress(pool: Pool, runId: number): Promise<Progress> {
  const result = await pool.query<Progress>(
    `select r.state, r.deferred <> '[]'::jsonb as deferred, count(w.id) filter (where w.state <> 'split')::int as total,
       count(w.id) filter (where w.state not in ('pending', 'running', 'split'))::int as ended,
       coalesce(sum(w.requests), 0)::int as requests, coalesce(sum(w.fetched), 0)::float8 as fetched
     from etl.runs r left join etl.windows w on w.run_id = r.id
     where r.id = $1 group by r.id`,
    [runId],
  );
  const progress = result.rows[0];
  if (progress === undefined) throw usageError(`there is no run ${runId} ("eod runs" lists them)`);
  return progress;
}

/** The newest runs with their totals. */
export async function listRuns(pool: Pool, limit: number): Promise<RunReport[]> {
  const found = await pool.query<{ id: number }>('select id::int from etl.runs order by id desc limit $1', [
    limit,
  ]);
  const reports: RunReport[] = [];
  for (const run of found.rows) reports.push(await reportRun(pool, run.id));
  return reports;
}

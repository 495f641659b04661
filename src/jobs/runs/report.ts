import type { Pool } from 'pg';
import { usageError } from '../../core/errors.ts';
import { inTableOrder, type RowDifference } from '../../load/market/differences.ts';
import type { RunKind, RunState } from '../../load/state/run-request.ts';
import type { RecordCounts } from '../../load/state/windows.ts';

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

/** A window whose answer lacked more rows than may be withdrawn. */
export interface Suspicion {
  readonly windowId: number;
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  readonly reason: string;
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
  readonly suspicious: readonly Suspicion[];
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

/** Sample rows of a preview that its report carries. */
const PREVIEW_ROWS = 100;

/** Everything about one run. @throws PipelineError `usage` when there is no such run. */
export async function reportRun(pool: Pool, runId: number): Promise<RunReport> {
  const [report] = await readReports(pool, [runId]);
  if (report === undefined) throw usageError(`there is no run ${runId} ("eod runs" lists them)`);
  return report;
}

/** The newest runs, the newest first, with their reports. */
export async function listRuns(pool: Pool, limit: number): Promise<RunReport[]> {
  const found = await pool.query<{ id: number }>('select id::int from etl.runs order by id desc limit $1', [
    limit,
  ]);
  return readReports(
    pool,
    found.rows.map(({ id }) => id),
  );
}

interface RunRow {
  readonly runId: number;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly from: string;
  readonly to: string;
  readonly error: string | null;
  readonly seconds: number;
}

/** Reports of these runs, as far as they exist, in this order; the same few queries for any number of them. */
async function readReports(pool: Pool, runIds: readonly number[]): Promise<RunReport[]> {
  const byRun = async <Row extends object>(text: string): Promise<Map<number, Row[]>> => {
    const { rows } = await pool.query<Row & { runId: number }>(text, [runIds]);
    const grouped = new Map<number, Row[]>();
    for (const { runId, ...row } of rows) {
      const of = grouped.get(runId) ?? [];
      of.push(row as unknown as Row);
      grouped.set(runId, of);
    }
    return grouped;
  };
  const runs = await pool.query<RunRow>(
    `select id::int as "runId", kind, state, to_char(from_date, 'YYYY-MM-DD') as "from", to_char(to_date, 'YYYY-MM-DD') as "to", error,
       round(extract(epoch from coalesce(finished_at, clock_timestamp()) - started_at)::numeric, 3)::float8 as seconds
     from etl.runs where id = any($1) order by array_position($1, id::int)`,
    [runIds],
  );
  const all = await byRun<FlatCounts>(
    `select run_id::int as "runId", ${COUNT_COLUMNS} from etl.windows where run_id = any($1) group by run_id`,
  );
  const each = await byRun<FlatCounts & { operation: string; exchange: string }>(
    `select run_id::int as "runId", operation, exchange, ${COUNT_COLUMNS} from etl.windows where run_id = any($1)
      group by run_id, operation, exchange order by min(id)`,
  );
  const failures = await byRun<Failure>(
    `select run_id::int as "runId", id::int as "windowId", operation, exchange, to_char(from_date, 'YYYY-MM-DD') as "from",
       to_char(to_date, 'YYYY-MM-DD') as "to", instruments, part, state, error
     from etl.windows where run_id = any($1) and state in ('failed', 'blocked', 'cancelled') order by id`,
  );
  const skips = await byRun<{ reason: string; windows: number }>(
    `select run_id::int as "runId", coalesce(error, '') as reason, count(*)::int as windows from etl.windows
      where run_id = any($1) and state = 'skipped' group by 1, 2 order by 3 desc, 2`,
  );
  const suspicious = await byRun<Suspicion>(
    `select run_id::int as "runId", id::int as "windowId", operation, exchange, to_char(from_date, 'YYYY-MM-DD') as "from",
       to_char(to_date, 'YYYY-MM-DD') as "to", suspicious as reason from etl.windows
      where run_id = any($1) and suspicious is not null order by id`,
  );
  const samples = await byRun<{ sample: RowDifference }>(
    `select run.id as "runId", s.sample from unnest($1::int[]) as run (id), lateral (
       select jsonb_array_elements(w.preview) as sample from etl.windows w
        where w.run_id = run.id and w.preview is not null order by w.id limit ${PREVIEW_ROWS}) s`,
  );
  return runs.rows.map(({ runId, kind, state, from, to, error, seconds }) => ({
    ...{ runId, kind, state, from, to },
    ...countsOf(all.get(runId)?.[0] ?? {}),
    ...{ seconds, error },
    operations: (each.get(runId) ?? []).map(({ operation, exchange, ...counts }) => ({
      ...{ operation, exchange },
      ...countsOf(counts as FlatCounts),
    })),
    failures: failures.get(runId) ?? [],
    suspicious: suspicious.get(runId) ?? [],
    preview: (samples.get(runId) ?? []).map(({ sample }) => inTableOrder(sample)),
    skips: skips.get(runId) ?? [],
  }));
}

import type { Pool } from 'pg';
import { usageError } from '../../core/errors.ts';
import type { RunKind, RunState } from '../../load/state/run-request.ts';

/** How far a run is; cheap enough to ask several times a second. */
export interface Progress {
  readonly kind: RunKind;
  readonly state: RunState;
  readonly total: number;
  readonly ended: number;
  readonly requests: number;
  readonly fetched: number;
  /** Has part of the run yet to be planned? */
  readonly deferred: boolean;
}

/** @throws PipelineError `usage` when there is no such run. */
export async function runProgress(pool: Pool, runId: number): Promise<Progress> {
  const result = await pool.query<Progress>(
    `select r.kind, r.state, r.deferred <> '[]'::jsonb as deferred, count(w.id) filter (where w.state <> 'split')::int as total,
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

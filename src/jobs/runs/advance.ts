import { sql } from 'drizzle-orm';
import { drizzleTransaction } from '../../load/database/transaction.ts';
import type { QueueContext } from '../context.ts';
import { enqueueOpenWindows } from '../worker/enqueue.ts';
import { afterRun, type EndedRun } from './after-run.ts';
import { planDeferred } from './planning.ts';
import type { RunRequest, Target } from './request.ts';
import { insertWindows } from './window-store.ts';

/**
 * Moves a run on after a window ended: plans what waited for the bhav copies, and closes the run
 * once no window is open. Any worker may call it at any time; the run's row lock makes it happen once.
 */
export async function advanceRun(context: QueueContext, runId: number): Promise<void> {
  if (await hasOpenWindows(context, runId)) return;
  const planned = await planWaiting(context, runId);
  if (planned) {
    await enqueueOpenWindows(context, [runId]);
    if (await hasOpenWindows(context, runId)) return;
  }
  const ended = await closeRun(context, runId);
  if (ended !== null) await afterRun(context, ended);
}

async function hasOpenWindows({ db }: QueueContext, runId: number): Promise<boolean> {
  const found = await db.pool.query(
    "select from etl.windows where run_id = $1 and state in ('pending', 'running') limit 1",
    [runId],
  );
  return found.rowCount === 1;
}

async function planWaiting(context: QueueContext, runId: number): Promise<boolean> {
  return drizzleTransaction(context.db, async (tx) => {
    const locked = await tx.execute<{ request: RunRequest; deferred: Target[] }>(sql`
      select request, deferred from etl.runs
       where id = ${runId} and state = 'running' and deferred <> '[]'::jsonb for update`);
    const run = locked.rows[0];
    if (run === undefined) return false;
    await insertWindows(tx, runId, await planDeferred(context, run.request, run.deferred));
    await tx.execute(sql`update etl.runs set deferred = '[]' where id = ${runId}`);
    return true;
  });
}

/**
 * Writes the totals and the end of a run that has no open window left.
 *
 * @returns the run when it was this call that ended it, else null.
 */
export async function closeRun(
  { db, log }: Pick<QueueContext, 'db' | 'log'>,
  runId: number,
): Promise<EndedRun | null> {
  const closed = await db.pool.query<EndedRun>(
    `update etl.runs r set
       state = case when t.bad > 0 then 'failed' else 'completed' end,
       requests = t.requests, bytes = t.bytes, fetched = t.fetched, inserted = t.inserted, updated = t.updated,
       unchanged = t.unchanged, stale = t.stale, duplicate = t.duplicate, rejected = t.rejected,
       withdrawn = t.withdrawn, finished_at = clock_timestamp()
     from (
       select count(*) filter (where state in ('failed', 'blocked')) as bad,
         coalesce(sum(requests), 0) as requests, coalesce(sum(bytes), 0) as bytes,
         coalesce(sum(fetched), 0) as fetched, coalesce(sum(inserted), 0) as inserted,
         coalesce(sum(updated), 0) as updated, coalesce(sum(unchanged), 0) as unchanged,
         coalesce(sum(stale), 0) as stale, coalesce(sum(duplicate), 0) as duplicate,
         coalesce(sum(rejected), 0) as rejected, coalesce(sum(withdrawn), 0) as withdrawn
       from etl.windows where run_id = $1) t
     where r.id = $1 and r.state = 'running' and r.deferred = '[]'::jsonb
       and not exists (select from etl.windows where run_id = $1 and state in ('pending', 'running'))
     returning r.id::int, r.kind, r.state, r.from_date::text as "from", r.to_date::text as "to"`,
    [runId],
  );
  const ended = closed.rows[0] ?? null;
  if (ended !== null) log.info({ runId, state: ended.state }, 'run has ended');
  return ended;
}

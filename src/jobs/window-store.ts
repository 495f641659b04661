import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { ClientBase, Pool } from 'pg';
import type { Database } from '../load/database.ts';
import type { PlannedWindow } from './plan.ts';
import type { RunKind } from './request.ts';

type Transaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0];

/** Windows written with one statement. */
const PORTION = 2_000;

/** Writes planned windows of a run; skipped ones are over at once. */
export async function insertWindows(
  tx: Transaction,
  runId: number,
  planned: readonly PlannedWindow[],
): Promise<void> {
  for (let at = 0; at < planned.length; at += PORTION) {
    const portion = JSON.stringify(planned.slice(at, at + PORTION));
    await tx.execute(sql`
      insert into etl.windows
        (run_id, operation, exchange, from_date, to_date, instruments, params, part, narrowed, state, error, finished_at)
      select ${runId}, w.operation, w.exchange, w."from", w."to",
             array(select jsonb_array_elements_text(w.instruments)), w.params, w.part, w.narrowed, w.state, w.reason,
             case when w.state = 'skipped' then statement_timestamp() end
        from jsonb_to_recordset(${portion}::jsonb) as w(
          operation text, exchange text, "from" date, "to" date, instruments jsonb, params jsonb,
          part text, narrowed boolean, state text, reason text)`);
  }
}

/** A window a worker has taken on. */
export interface ClaimedWindow {
  readonly id: number;
  readonly runId: number;
  readonly runKind: RunKind;
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  readonly instruments: string[];
  readonly params: Record<string, string>;
  readonly part: string;
  readonly narrowed: boolean;
  readonly attempts: number;
  /** Milliseconds since its first start. */
  readonly ageMs: number;
}

/**
 * Takes a window on: counts an attempt and the call that follows.
 *
 * @returns null when it has ended, or its run is paused, cancelled or over: nothing is to be done.
 */
export async function claimWindow(pool: Pool, windowId: number): Promise<ClaimedWindow | null> {
  const result = await pool.query<ClaimedWindow>(
    `update etl.windows w
        set state = 'running', attempts = w.attempts + 1, requests = w.requests + 1,
            started_at = coalesce(w.started_at, clock_timestamp())
       from etl.runs r
      where w.id = $1 and w.state in ('pending', 'running') and r.id = w.run_id and r.state = 'running'
      returning w.id::int, w.run_id::int as "runId", r.kind as "runKind", w.operation, w.exchange,
        to_char(w.from_date, 'YYYY-MM-DD') as "from", to_char(w.to_date, 'YYYY-MM-DD') as "to",
        w.instruments, w.params, w.part, w.narrowed, w.attempts,
        (extract(epoch from clock_timestamp() - w.started_at) * 1000)::float8 as "ageMs"`,
    [windowId],
  );
  return result.rows[0] ?? null;
}

/** What is remembered of a call that brought no data. */
export interface Trouble {
  readonly error: string;
  readonly diagnostic?: string | undefined;
}

/**
 * Puts a window back for a later try, keeping what went wrong.
 *
 * @param anew it is as if it had not been started: the time it then waits is not the source's.
 */
export async function releaseWindow(
  pool: Pool,
  windowId: number,
  trouble: Trouble | null,
  anew: boolean,
): Promise<void> {
  await pool.query(
    `update etl.windows
        set state = 'pending', error = $2, diagnostic = $3, started_at = case when $4 then null else started_at end
      where id = $1 and state = 'running'`,
    [windowId, trouble?.error ?? null, trouble?.diagnostic ?? null, anew],
  );
}

/** Windows that ended together, with what their coverage needs. */
export type EndedWindow = Omit<ClaimedWindow, 'attempts' | 'ageMs' | 'runKind'>;

/** Which open windows of a run to end. */
export interface Selection {
  readonly runId: number;
  readonly windowId?: number;
  readonly operation?: string;
  readonly exchange?: string;
}

/** Ends open windows as failed or blocked and says which they were. */
export async function endWindows(
  client: ClientBase,
  selection: Selection,
  state: 'failed' | 'blocked',
  trouble: Trouble,
): Promise<EndedWindow[]> {
  const result = await client.query<EndedWindow>(
    `update etl.windows set state = $2, error = $3, diagnostic = $4, finished_at = clock_timestamp()
      where id in (
        select id from etl.windows
         where run_id = $1 and state in ('pending', 'running')
           and ($5::bigint is null or id = $5) and ($6::text is null or operation = $6)
           and ($7::text is null or exchange = $7)
         order by id for update)
      returning id::int, run_id::int as "runId", operation, exchange,
        to_char(from_date, 'YYYY-MM-DD') as "from", to_char(to_date, 'YYYY-MM-DD') as "to",
        instruments, params, part, narrowed`,
    [
      ...[selection.runId, state, trouble.error, trouble.diagnostic ?? null],
      ...[selection.windowId ?? null, selection.operation ?? null, selection.exchange ?? null],
    ],
  );
  return result.rows;
}

/** Open windows of these runs, in the order they were planned. */
export async function openWindows(
  database: Database,
  runIds: readonly number[],
): Promise<{ id: number; runId: number; kind: RunKind }[]> {
  const result = await database.pool.query<{ id: number; runId: number; kind: RunKind }>(
    `select w.id::int, w.run_id::int as "runId", r.kind
       from etl.windows w join etl.runs r on r.id = w.run_id
      where w.run_id = any($1) and w.state in ('pending', 'running') and r.state = 'running'
      order by w.id`,
    [runIds],
  );
  return result.rows;
}

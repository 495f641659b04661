import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { ClientBase, Pool } from 'pg';
import type { Database } from '../../load/database/database.ts';
import type { Permit } from '../worker/quota.ts';
import type { Trouble } from '../worker/verdict.ts';
import type { PlannedWindow } from './plan.ts';
import type { RunKind } from './request.ts';

/** Runs that ask the source: the others read files or kept answers, and no worker takes them on. */
export const ASKING = "kind not in ('import', 'replay')";

/** Windows written with one statement. */
const PORTION = 2_000;

/** Writes planned windows of a run; skipped ones are over at once. */
export async function insertWindows(
  tx: Pick<NodePgDatabase, 'execute'>,
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

/** What came of the wish to take a window on. */
export type Claim =
  | { readonly outcome: 'claimed'; readonly probe: boolean; readonly window: ClaimedWindow }
  /** It has ended, or its run is paused, cancelled or over: nothing is to be done. */
  | { readonly outcome: 'gone' }
  /** The source refused this key; no call may be made with it. */
  | { readonly outcome: 'refused'; readonly diagnostic: string }
  /** Another worker is trying the key. */
  | { readonly outcome: 'probing' }
  /** The hour's budget holds no call for this kind of run. */
  | { readonly outcome: 'spent' };

/** Takes a window on and counts the attempt and the call that follows, all or nothing. */
export async function claimWindow(pool: Pool, windowId: number, permit: Permit): Promise<Claim> {
  const result = await pool.query<{ claim: Claim }>(
    'select etl.claim_window($1, $2, $3, $4, $5, $6, $7) as claim',
    [
      ...[windowId, permit.keyHash, new Date(permit.now), new Date(permit.hour)],
      ...[permit.limit, permit.backfillLimit, new Date(permit.probeUntil)],
    ],
  );
  return (result.rows[0] as { claim: Claim }).claim;
}

/** Undoes a claim that no call followed; the call stays counted in the hour it was meant for. */
export async function unclaimWindow(pool: Pool, windowId: number): Promise<void> {
  await pool.query(
    `update etl.windows set state = 'pending', attempts = attempts - 1, requests = requests - 1
      where id = $1 and state = 'running'`,
    [windowId],
  );
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

/** Which open windows to end; nothing given means all of every running run. */
export interface Selection {
  readonly runId?: number;
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
         where ($1::bigint is null or run_id = $1) and state in ('pending', 'running')
           and run_id in (select id from etl.runs where state = 'running' and ($5::bigint is not null or ${ASKING}))
           and ($5::bigint is null or id = $5) and ($6::text is null or operation = $6)
           and ($7::text is null or exchange = $7)
         order by id for update)
      returning id::int, run_id::int as "runId", operation, exchange,
        to_char(from_date, 'YYYY-MM-DD') as "from", to_char(to_date, 'YYYY-MM-DD') as "to",
        instruments, params, part, narrowed`,
    [
      ...[selection.runId ?? null, state, trouble.error, trouble.diagnostic ?? null],
      ...[selection.windowId ?? null, selection.operation ?? null, selection.exchange ?? null],
    ],
  );
  return result.rows;
}

/** A piece of a window that is to be split. */
export interface Piece {
  readonly from: string;
  readonly to: string;
}

/**
 * Replaces a window by windows of shorter ranges. Its own row stays, as `split`, with the calls it
 * took; records are counted in its children.
 */
export async function splitWindow(
  client: ClientBase,
  windowId: number,
  pieces: readonly Piece[],
): Promise<void> {
  const parent = await client.query(
    `update etl.windows set state = 'split', finished_at = clock_timestamp()
      where id = $1 and state in ('pending', 'running')`,
    [windowId],
  );
  if (parent.rowCount === 0) return;
  await client.query(
    `insert into etl.windows (run_id, parent_id, operation, exchange, from_date, to_date, instruments, params, part, narrowed)
     select w.run_id, w.id, w.operation, w.exchange, piece."from", piece."to", w.instruments, w.params, w.part, w.narrowed
       from etl.windows w, jsonb_to_recordset($2::jsonb) as piece("from" date, "to" date) where w.id = $1`,
    [windowId, JSON.stringify(pieces)],
  );
}

/** Windows of a run and operation that were not started and span more than so many days. */
export async function widePendingWindows(
  client: ClientBase,
  asked: { readonly runId: number; readonly operation: string; readonly days: number },
): Promise<(Piece & Pick<ClaimedWindow, 'id' | 'exchange'>)[]> {
  const result = await client.query<Piece & Pick<ClaimedWindow, 'id' | 'exchange'>>(
    `select id::int, exchange, to_char(from_date, 'YYYY-MM-DD') as "from", to_char(to_date, 'YYYY-MM-DD') as "to"
       from etl.windows where run_id = $1 and operation = $2 and state = 'pending' and to_date - from_date >= $3
      order by id for update`,
    [asked.runId, asked.operation, asked.days],
  );
  return result.rows;
}

/** A window that has not ended, as the queue needs to know it. */
export interface OpenWindow {
  readonly id: number;
  readonly runId: number;
  readonly kind: RunKind;
  /** It is a piece of a window that was split. */
  readonly piece: boolean;
}

/** Open windows of these runs that ask the source, in the order they were planned. */
export async function openWindows(database: Database, runIds: readonly number[]): Promise<OpenWindow[]> {
  const result = await database.pool.query<OpenWindow>(
    `select w.id::int, w.run_id::int as "runId", r.kind, w.parent_id is not null as piece
       from etl.windows w join etl.runs r on r.id = w.run_id
      where w.run_id = any($1) and w.state in ('pending', 'running') and r.state = 'running' and r.${ASKING}
      order by w.id`,
    [runIds],
  );
  return result.rows;
}

import { and, eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { readMember } from '../../core/errors.ts';
import type { Position } from '../../core/position.ts';
import { databaseError } from '../../postgres/database-errors.ts';
import { type Preparing, runPrepared } from '../../postgres/prepared.ts';
import { takePositionSql } from '../position-sql.ts';
import { runs, windows } from '../schema/work.ts';
import { type CallLimit, countCall, iso, returnCall } from '../source/call-budget.ts';
import { lockSourceSql, noteCalledSql } from '../source/source-state.ts';
import type { NewWindow } from './plan.ts';
import { moveWindows, moveWindowsInOrder, WINDOW_TRANSITIONS, type WindowAfter } from './transitions.ts';
import { firstOpenSql } from './windows.ts';

/** A window that a worker has claimed. */
export interface ClaimedWindow extends NewWindow {
  readonly id: number;
  readonly runId: number;
  readonly attempts: number;
  /** Failed attempts that count towards the limit. */
  readonly failedAttempts: number;
  /** How often its worker was lost while it worked on it. */
  readonly lostWorkers: number;
  /** Milliseconds in all that it was postponed because its response was not ready. */
  readonly notReadyMs: number;
  /** SHA-256 of the last response that could not be read, or states more records than it has. */
  readonly failedHash: string | null;
  /** Where its call, and the response to it, stands in the order of responses. */
  readonly position: Position;
  /** The source has not accepted the key since its run began: the other windows of the run wait for this call. */
  readonly isFirst: boolean;
  /** The last calls got no response, or the key was refused. */
  readonly isInDoubt: boolean;
  /** The source closed the hour: this call tries whether it still is. */
  readonly triesHour: boolean;
  /** When it was claimed, by the clock of Postgres; in milliseconds since the epoch. */
  readonly claimedAt: number;
  /** True if it is worth looking whether its entries are known by now. */
  readonly mayBeKnown: boolean;
}

/** The outcome of a claim. */
export type Claim =
  | { readonly outcome: 'claimed'; readonly window: ClaimedWindow }
  /** The window has ended, or its run is not running: there is nothing to do. */
  | { readonly outcome: 'gone' }
  /** The source is down, and was called within the last half minute. */
  | { readonly outcome: 'down' }
  /** The hour's budget has no call left for this kind of run. */
  | { readonly outcome: 'spent' }
  /** At least this many windows come first: they make the same request, or show whether it is out of reach. */
  | { readonly outcome: 'waits' };

/**
 * Claims a window, if its run is running, the source is not down or it is time to try it, and the hour's budget has a call
 * left. The attempt and the call are counted with the claim in one statement, so that no call is made without being counted.
 */
export async function claimWindow(
  db: NodePgDatabase & Preparing,
  windowId: number,
  callLimit: CallLimit,
): Promise<Claim> {
  const claimable = await claimIfAllowed(db, windowId, callLimit);
  if (claimable === null) return { outcome: 'gone' };
  if (claimable === 'requested') return { outcome: 'waits' };
  const { attempts, isDown, ...window } = claimable;
  if (attempts !== null) return { outcome: 'claimed', window: { ...window, attempts } };
  return { outcome: isDown ? 'down' : 'spent' };
}

/** A window that may be claimed. */
interface Claimable extends Omit<ClaimedWindow, 'attempts'> {
  /** Null if it was not claimed. */
  readonly attempts: number | null;
  /** The source is down, and was called within the last half minute. */
  readonly isDown: boolean;
}

/** True if the entries of `w` may be known by now: of nights, or if another run was under way since its run began. */
const mayBeKnownSql = sql`(r.kind = 'nightly' or exists (
               select from ${runs} m where m.id <> r.id and coalesce(m.finished_at, 'infinity') > r.started_at))`;

/** After this long, what is left of a night leaves a share of the calls to the next one, as backfills do. */
const NIGHT_MS = 18 * 3_600_000;

/** The unique index that allows only one running window per request. */
const REQUESTED_KEY = 'windows_requested_key';

/**
 * Claims a window and takes a call of the hour's budget.
 *
 * @returns null if the window has ended or its run is not running; `requested` while another window makes the same
 * request.
 */
async function claimIfAllowed(
  db: NodePgDatabase & Preparing,
  windowId: number,
  callLimit: CallLimit,
): Promise<Claimable | 'requested' | null> {
  try {
    return await claimWithCall(db, windowId, callLimit);
  } catch (error) {
    if (readMember(databaseError(error).cause, 'constraint') !== REQUESTED_KEY) throw error;
    await releaseIdle(db, windowId);
    return 'requested';
  }
}

/** Puts back windows with the same request of runs that are not running: their worker may be gone for good. */
async function releaseIdle(db: NodePgDatabase, windowId: number): Promise<void> {
  const idle = sql`${windows.id} in (
    select o.id from ${windows} o join ${runs} r on r.id = o.run_id join ${windows} w on w.id = ${windowId}
     where o.state = 'running' and o.requests > 0 and r.state <> 'running' and o.operation = w.operation
       and o.exchange = w.exchange and o.variant = w.variant and o.from_date = w.from_date and o.to_date = w.to_date
       and o.instruments = w.instruments and o.params = w.params)`;
  await moveWindowsInOrder(db, 'release', { state: 'pending' }, idle);
}

/**
 * The window's row is locked first, so that no call is counted for a window that is not claimed; and that of the source's
 * state, if there is one, so that one of several workers makes the call which tries the source.
 *
 * Written as SQL, because it is prepared and hot: drizzle would build its three parts again for every claim.
 */
async function claimWithCall(
  db: NodePgDatabase & Preparing,
  windowId: number,
  callLimit: CallLimit,
): Promise<Claimable | null> {
  const { downCalledBefore, openingFailures } = callLimit;
  const state: WindowAfter<'claim'> = 'running';
  const result = await runPrepared<Claimable & Record<string, unknown>>(
    db,
    sql`
    with source as materialized (
      ${lockSourceSql(callLimit)}
    ), claimable as (
      select w.id, w.run_id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments,
             w.params, w.variant, w.is_filtered, w.not_ready_ms, w.failed_attempts, w.refused_hash,
             -- A window that is claimed while it runs has lost the worker that had it.
             w.lost_workers + (w.state = 'running')::int as lost_workers,
             case when r.kind <> 'nightly' then ${callLimit.backfillLimit}::int
                  -- Of a night that has not ended when the next one begins, so that its prices need not wait for the hour's end.
                  when coalesce(r.resumed_at, r.started_at) < ${new Date(callLimit.now - NIGHT_MS).toISOString()}::timestamptz then ${callLimit.leftoverLimit}::int
                  else ${callLimit.limit}::int end as allowed,
             exists (select from source s where s.failures >= ${openingFailures} and s.called_at > ${iso(downCalledBefore)}) as is_down,
             exists (select from source) as is_in_doubt, not r.is_key_accepted as is_first,
             ${mayBeKnownSql} as may_be_known
        from ${windows} w join ${runs} r on r.id = w.run_id
       where w.id = ${windowId} and w.state in ${[...WINDOW_TRANSITIONS.claim.from]} and r.state = 'running'
         and (r.is_key_accepted or w.id = ${firstOpenSql(sql`r.id`)})
         for update of w
    ), counted as (
      ${countCall(callLimit, sql`from claimable where not is_down`)}
    ), placed as (
      ${takePositionSql(sql`from counted`)}
    ), claimed as (
      update ${windows} w
         set state = ${state}, attempts = w.attempts + 1, requests = w.requests + 1,
             lost_workers = claimable.lost_workers, started_at = coalesce(w.started_at, clock_timestamp())
        from claimable, counted, placed where w.id = claimable.id
      returning w.attempts, counted.tries_hour, placed.position
    ), tried as (
      ${noteCalledSql(callLimit, sql`exists (select from claimed)`)}
    )
    select c.id::int, c.run_id::int as "runId", c.operation, c.exchange,
           c.from_date::text as "from", c.to_date::text as "to", c.instruments, c.params, c.variant, c.is_filtered as "filtered",
           m.attempts, m.position, coalesce(m.tries_hour, false) as "triesHour", c.not_ready_ms as "notReadyMs", c.failed_attempts as "failedAttempts", c.refused_hash as "failedHash",
           c.lost_workers as "lostWorkers", c.is_down as "isDown", c.is_in_doubt as "isInDoubt", c.is_first as "isFirst",
           (extract(epoch from clock_timestamp()) * 1000)::float8 as "claimedAt",
           c.may_be_known as "mayBeKnown"
      from claimable c left join claimed m on true`,
  );
  return result.rows[0] ?? null;
}

/**
 * Undoes a claim after which no call was made, and gives the call back to its hour.
 *
 * @param window if it was claimed again since, because its worker seemed lost, it stays with who has it now.
 */
export async function unclaimWindow(
  db: NodePgDatabase,
  { id, attempts }: Pick<ClaimedWindow, 'id' | 'attempts'>,
  hour: Pick<CallLimit, 'keyHash' | 'hour'>,
): Promise<void> {
  const values = {
    state: 'pending',
    attempts: sql`${windows.attempts} - 1`,
    requests: sql`${windows.requests} - 1`,
  } as const;
  await moveWindows(db, 'release', values, and(eq(windows.id, id), eq(windows.attempts, attempts)));
  await returnCall(db, hour);
}

/** Counts one request of a window, and one call, less: it did not reach the source. */
export async function uncountCall(
  db: NodePgDatabase,
  { id, attempts }: Pick<ClaimedWindow, 'id' | 'attempts'>,
  hour: Pick<CallLimit, 'keyHash' | 'hour'>,
): Promise<void> {
  const isOurs = and(eq(windows.id, id), eq(windows.attempts, attempts));
  await db
    .update(windows)
    .set({ requests: sql`${windows.requests} - 1` })
    .where(isOurs);
  await returnCall(db, hour);
}

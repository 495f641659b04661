import { and, eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Position } from '../../../core/position.ts';
import { databaseError } from '../../database/database-errors.ts';
import { type Preparing, runPrepared } from '../../database/prepared.ts';
import { takePositionSql } from '../position-sql.ts';
import { accessKeys } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import { beginKeyTrial, endKeyTrial, keyIsAccepted, keyIsRefused } from '../source/access-keys.ts';
import { type CallLimit, countCall, returnCall } from '../source/call-budget.ts';
import type { NewWindow } from './plan.ts';
import { moveWindows, moveWindowsInOrder, WINDOW_TRANSITIONS, type WindowAfter } from './transitions.ts';

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
  /** It is not known whether the key is good: this call tries it, and other workers wait for the result. */
  readonly probe: boolean;
  /** The source closed the hour: this call tries whether it still is. */
  readonly triesHour: boolean;
  /** When it was claimed, by the clock of Postgres; in milliseconds since the epoch. */
  readonly claimedAt: number;
  /** When the source last accepted the key, as far as that was stored; in milliseconds since the epoch. */
  readonly keyGoodAt: number | null;
  /** True if it is worth looking whether its entries are known by now. */
  readonly mayBeKnown: boolean;
}

/** The outcome of a claim. */
export type Claim =
  | { readonly outcome: 'claimed'; readonly window: ClaimedWindow }
  /** The window has ended, or its run is not running: there is nothing to do. */
  | { readonly outcome: 'gone' }
  /** The source refused this key; no call may be made with it. */
  | { readonly outcome: 'refused'; readonly diagnostic: string }
  /** Another worker is trying the key. */
  | { readonly outcome: 'probing' }
  /** The hour's budget has no call left for this kind of run. */
  | { readonly outcome: 'spent' }
  /** At least this many windows come first: they make the same request, or show whether it is out of reach. */
  | { readonly outcome: 'waits' };

/**
 * Claims a window, if its run is running, the key may be used and the hour's budget has a call left. The attempt and
 * the call are counted with the claim in one statement, so that no call is made without being counted.
 */
export async function claimWindow(
  db: NodePgDatabase & Preparing,
  windowId: number,
  callLimit: CallLimit,
): Promise<Claim> {
  const seen = await claimIfAllowed(db, windowId, callLimit, false);
  const known = claimResult(seen, false);
  if (known !== null) return known;
  if (!(await beginKeyTrial(db, callLimit))) return { outcome: 'probing' };
  const tried = claimResult(await claimIfAllowed(db, windowId, callLimit, true), true);
  if (tried?.outcome !== 'claimed') await endKeyTrial(db, callLimit.keyHash);
  return tried ?? { outcome: 'spent' };
}

/** The outcome; null if the claim failed and it is not known whether the key is good, so that it has to be tried. */
function claimResult(seen: Claimable | 'requested' | null, probe: boolean): Claim | null {
  if (seen === null) return { outcome: 'gone' };
  if (seen === 'requested') return { outcome: 'waits' };
  const { attempts } = seen;
  if (attempts !== null) return { outcome: 'claimed', window: { ...seen, attempts, probe } };
  if (probe) return null;
  if (seen.keyRefused) return { outcome: 'refused', diagnostic: seen.keyDiagnostic ?? '' };
  return seen.keyAccepted ? { outcome: 'spent' } : null;
}

/** A window that may be claimed, and what is known about the key. */
interface Claimable extends Omit<ClaimedWindow, 'attempts' | 'probe'> {
  /** Null if it was not claimed. */
  readonly attempts: number | null;
  readonly keyAccepted: boolean;
  readonly keyRefused: boolean;
  readonly keyDiagnostic: string | null;
}

/** True if the entries of `w` may be known by now: of nights, or if another run was under way since its run began. */
const mayBeKnownSql = sql`(r.kind = 'nightly' or exists (
               select from ${runs} m where m.id <> r.id and coalesce(m.finished_at, 'infinity') > r.started_at))`;

/** After this long, what is left of a night leaves a share of the calls to the next one, as backfills do. */
const NIGHT_MS = 18 * 3_600_000;

/** The unique index that allows only one running window per request. */
const REQUESTED_KEY = 'windows_requested_key';

/**
 * Claims a window and takes a call of the hour's budget, if the key is known to be good or this call tries it
 * (`probe`).
 *
 * @returns null if the window has ended or its run is not running; `requested` while another window makes the same
 * request.
 */
async function claimIfAllowed(
  db: NodePgDatabase & Preparing,
  windowId: number,
  callLimit: CallLimit,
  probe: boolean,
): Promise<Claimable | 'requested' | null> {
  try {
    return await claimWithCall(db, windowId, callLimit, probe);
  } catch (error) {
    const { cause } = databaseError(error);
    if ((cause as { constraint?: unknown } | undefined)?.constraint !== REQUESTED_KEY) throw error;
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
 * The window's row is locked first, so that no call is counted for a window that is not claimed.
 *
 * Written as SQL, because it is prepared and hot: drizzle would build its three parts again for every claim.
 */
async function claimWithCall(
  db: NodePgDatabase & Preparing,
  windowId: number,
  callLimit: CallLimit,
  probe: boolean,
): Promise<Claimable | null> {
  const state: WindowAfter<'claim'> = 'running';
  const found = await runPrepared<Claimable & Record<string, unknown>>(
    db,
    sql`
    with claimable as (
      select w.id, w.run_id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments,
             w.params, w.variant, w.is_filtered, w.not_ready_ms, w.failed_attempts, w.refused_hash,
             -- A window that is claimed while it runs has lost the worker that had it.
             w.lost_workers + (w.state = 'running')::int as lost_workers,
             case when r.kind <> 'nightly' then ${callLimit.backfillLimit}::int
                  -- Of a night that has not ended when the next one begins, so that its prices need not wait for the hour's end.
                  when coalesce(r.resumed_at, r.started_at) < ${new Date(callLimit.now - NIGHT_MS).toISOString()}::timestamptz then ${callLimit.leftoverLimit}::int
                  else ${callLimit.limit}::int end as allowed,
             coalesce(${keyIsAccepted(callLimit)}, false) as key_accepted,
             coalesce(${keyIsRefused(callLimit)}, false) as key_refused,
             k.diagnostic as key_diagnostic, k.last_good_at,
             ${mayBeKnownSql} as may_be_known
        from ${windows} w join ${runs} r on r.id = w.run_id
             left join ${accessKeys} k on k.key_hash = ${callLimit.keyHash}
       where w.id = ${windowId} and w.state in ${[...WINDOW_TRANSITIONS.claim.from]} and r.state = 'running'
         for update of w
    ), counted as (
      ${countCall(callLimit, sql`from claimable where (key_accepted or ${probe})`)}
    ), placed as (
      ${takePositionSql(sql`from counted`)}
    ), claimed as (
      update ${windows} w
         set state = ${state}, attempts = w.attempts + 1, requests = w.requests + 1,
             lost_workers = claimable.lost_workers, started_at = coalesce(w.started_at, clock_timestamp())
        from claimable, counted, placed where w.id = claimable.id
      returning w.attempts, counted.tries_hour, placed.position
    )
    select c.id::int, c.run_id::int as "runId", c.operation, c.exchange,
           c.from_date::text as "from", c.to_date::text as "to", c.instruments, c.params, c.variant, c.is_filtered as "filtered",
           m.attempts, m.position, coalesce(m.tries_hour, false) as "triesHour", c.not_ready_ms as "notReadyMs", c.failed_attempts as "failedAttempts", c.refused_hash as "failedHash",
           c.lost_workers as "lostWorkers", c.key_accepted as "keyAccepted", c.key_refused as "keyRefused",
           c.key_diagnostic as "keyDiagnostic", (extract(epoch from c.last_good_at) * 1000)::float8 as "keyGoodAt",
           (extract(epoch from clock_timestamp()) * 1000)::float8 as "claimedAt",
           c.may_be_known as "mayBeKnown"
      from claimable c left join claimed m on true`,
  );
  return found.rows[0] ?? null;
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

import { eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { beginKeyTrial, endKeyTrial, keyIsAccepted, keyIsRefused } from '../access-keys.ts';
import { countCall, type Permit } from '../call-budget.ts';
import type { CoverageEntry } from '../coverage.ts';
import type { RunKind } from '../run-request.ts';
import { accessKeys } from '../schema/source.ts';
import { coverage, runs, windows } from '../schema/work.ts';
import type { NewWindow } from './plan.ts';
import { moveWindows, WINDOW_TRANSITIONS, type WindowAfter } from './transitions.ts';

/** A window that a worker has claimed. */
export interface ClaimedWindow extends NewWindow {
  readonly id: number;
  readonly runId: number;
  readonly runKind: RunKind;
  readonly attempts: number;
  /** Attempts that failed and count. */
  readonly failedAttempts: number;
  /** How many workers have ended while they worked on it. */
  readonly lostWorkers: number;
  /** Milliseconds it was put off in all because its answer was not ready. */
  readonly notReadyMs: number;
}

/** What came of a claim. */
export type Claim =
  | {
      readonly outcome: 'claimed';
      readonly window: ClaimedWindow;
      /** Nobody knows whether the key is good: this call tries it, and the other workers wait for it. */
      readonly probe: boolean;
      /** The source has closed the hour: this call tries whether it still does. */
      readonly triesHour: boolean;
      /** When the source last accepted the key, as far as it was written down. */
      readonly keyGoodAt: number | null;
    }
  /** It has ended, or its run is paused, cancelled or over: nothing is to be done. */
  | { readonly outcome: 'gone' }
  /** The source refused this key; no call may be made with it. */
  | { readonly outcome: 'refused'; readonly diagnostic: string }
  /** Another worker is trying the key. */
  | { readonly outcome: 'probing' }
  /** The hour's budget holds no call for this kind of run. */
  | { readonly outcome: 'spent' };

/**
 * Claims a window, if its run goes on, the key may be used and the hour's budget has a call left. The
 * attempt and the call that follows are counted with the claim in one statement, so that what is
 * counted and what is asked cannot drift apart.
 */
export async function claimWindow(db: NodePgDatabase, windowId: number, permit: Permit): Promise<Claim> {
  const seen = await claimIfAllowed(db, windowId, permit, false);
  if (seen === null) return { outcome: 'gone' };
  if (seen.attempts !== null) return claimedOf(seen, false);
  if (seen.keyRefused) return { outcome: 'refused', diagnostic: seen.keyDiagnostic ?? '' };
  if (seen.keyAccepted) return { outcome: 'spent' };
  if (!(await beginKeyTrial(db, permit))) return { outcome: 'probing' };
  const tried = await claimIfAllowed(db, windowId, permit, true);
  if (tried !== null && tried.attempts !== null) return claimedOf(tried, true);
  await endKeyTrial(db, permit.keyHash);
  return { outcome: tried === null ? 'gone' : 'spent' };
}

function claimedOf(window: ClaimedWindow & KeyFacts, probe: boolean): Claim {
  return { outcome: 'claimed', window, probe, triesHour: window.triesHour, keyGoodAt: window.keyGoodAt };
}

/** What is known of the key and its hour. */
interface KeyFacts {
  readonly keyAccepted: boolean;
  readonly keyRefused: boolean;
  readonly keyDiagnostic: string | null;
  readonly keyGoodAt: number | null;
  readonly triesHour: boolean;
}

/** A window that may be claimed, claimed or not, and what is known of the key. */
type Claimable = Omit<ClaimedWindow, 'attempts'> &
  (Pick<ClaimedWindow, 'attempts'> | { readonly attempts: null }) &
  KeyFacts;

/**
 * Claims a window with a call of the hour's budget, where the key is known to be good or this call tries it.
 * The window's row is locked first, so that no call is counted for a window that is not claimed.
 *
 * @returns null when the window has ended or its run does not go on.
 */
async function claimIfAllowed(
  db: NodePgDatabase,
  windowId: number,
  permit: Permit,
  probe: boolean,
): Promise<Claimable | null> {
  const state: WindowAfter<'claim'> = 'running';
  const found = await db.execute<Claimable & Record<string, unknown>>(sql`
    with claimable as (
      select w.id, w.run_id, r.kind as run_kind, w.operation, w.exchange, w.from_date, w.to_date, w.instruments,
             w.params, w.variant, w.filtered, w.not_ready_ms, w.failed_attempts,
             -- A window that is claimed while it runs has lost the worker that had it.
             w.lost_workers + (w.state = 'running')::int as lost_workers,
             case r.kind when 'nightly' then ${permit.limit}::int else ${permit.backfillLimit}::int end as allowed,
             coalesce(${keyIsAccepted(permit)}, false) as key_accepted,
             coalesce(${keyIsRefused(permit)}, false) as key_refused,
             k.diagnostic as key_diagnostic, k.last_good_at
        from ${windows} w join ${runs} r on r.id = w.run_id
             left join ${accessKeys} k on k.key_hash = ${permit.keyHash}
       where w.id = ${windowId} and w.state in ${[...WINDOW_TRANSITIONS.claim.from]} and r.state = 'running'
         for update of w
    ), counted as (
      ${countCall(permit, sql`from claimable where (key_accepted or ${probe})`)}
    ), claimed as (
      update ${windows} w
         set state = ${state}, attempts = w.attempts + 1, requests = w.requests + 1,
             lost_workers = claimable.lost_workers, started_at = coalesce(w.started_at, clock_timestamp())
        from claimable, counted where w.id = claimable.id
      returning w.attempts, counted.tries_hour
    )
    select c.id::int, c.run_id::int as "runId", c.run_kind as "runKind", c.operation, c.exchange,
           c.from_date::text as "from", c.to_date::text as "to", c.instruments, c.params, c.variant, c.filtered,
           m.attempts, coalesce(m.tries_hour, false) as "triesHour", c.not_ready_ms as "notReadyMs", c.failed_attempts as "failedAttempts",
           c.lost_workers as "lostWorkers", c.key_accepted as "keyAccepted", c.key_refused as "keyRefused",
           c.key_diagnostic as "keyDiagnostic", (extract(epoch from c.last_good_at) * 1000)::float8 as "keyGoodAt"
      from claimable c left join claimed m on true`);
  return found.rows[0] ?? null;
}

/** Undoes a claim that no call followed; the call stays counted in the hour it was meant for. */
export async function unclaimWindow(db: NodePgDatabase, windowId: number): Promise<void> {
  const values = {
    state: 'pending',
    attempts: sql`${windows.attempts} - 1`,
    requests: sql`${windows.requests} - 1`,
  } as const;
  await moveWindows(db, 'release', values, eq(windows.id, windowId));
}

/** Coverage `c` that was written for the operation and exchange of `w` since its run `r` was planned. */
const coveredSince = sql`
  from ${coverage} c
 where c.operation = w.operation and c.exchange = w.exchange and c.variant = w.variant
   and c.checked_at > r.started_at and c.state in ('loaded', 'empty', 'holiday') and c.diagnostic is null`;

/** Open windows `n` of later nights that ask the same operation and exchange as `w`. */
const askedLater = sql`
  from ${windows} n join ${runs} m on m.id = n.run_id
 where n.run_id > w.run_id and m.kind = 'nightly' and m.state = 'running' and n.state in ${[...WINDOW_TRANSITIONS.claim.from]}
   and n.operation = w.operation and n.exchange = w.exchange and n.variant = w.variant and n.params = w.params
   and not n.filtered`;

/** Days that a window speaks for and, where it asks for some, an instrument. */
type Question = Pick<CoverageEntry, 'day' | 'instrument'>;

/** A window of a night that has never been claimed, if part of it may be known or asked for by now; else null. */
export async function readWaitingNight(db: NodePgDatabase, windowId: number): Promise<NewWindow | null> {
  const found = await db.execute<NewWindow & Record<string, unknown>>(sql`
    select w.operation, w.exchange, w.from_date::text as "from", w.to_date::text as "to", w.instruments, w.params,
           w.variant, w.filtered
      from ${windows} w join ${runs} r on r.id = w.run_id
     where w.id = ${windowId} and w.state = 'pending' and w.attempts = 0 and not w.filtered and r.kind = 'nightly'
       and (exists (select ${askedLater}) or exists (
             select ${coveredSince} and c.day >= w.from_date
                and c.instrument = any (case when w.instruments = '{}' then array[''] else w.instruments end)))`);
  return found.rows[0] ?? null;
}

/**
 * Has each question of a window been answered since its run was planned, or is it asked by a later night?
 *
 * @param dated the answer depends on the days of the window, not on the day of the call.
 */
export async function isOvertaken(
  db: NodePgDatabase,
  windowId: number,
  questions: readonly Question[],
  dated: boolean,
): Promise<boolean> {
  const found = await db.execute(sql`
    select from ${windows} w join ${runs} r on r.id = w.run_id,
           jsonb_to_recordset(${JSON.stringify(questions)}::jsonb) as q (day date, instrument text)
     where w.id = ${windowId}
       and not exists (select ${coveredSince} and c.day = q.day and c.instrument = q.instrument)
       and not exists (
         select ${askedLater} and (q.day between n.from_date and n.to_date or not ${dated})
            and (q.instrument = any (n.instruments) or q.instrument = '' and n.instruments = '{}'))
     limit 1`);
  return questions.length > 0 && found.rowCount === 0;
}

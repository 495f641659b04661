import type { Position } from '../../core/position.ts';
import { statement } from '../../postgres/prepared.ts';
import type { WindowState } from '../request.ts';
import { callBudget, clock, sourceState } from '../schema/source-tables.ts';
import { runs, windows } from '../schema/work.ts';
import type { NewWindow } from './plan.ts';

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
  readonly unreadableHash: string | null;
  /** Where its call, and the response to it, stands in the order of responses. */
  readonly position: Position;
  /** The source has not accepted the key since its run began: the other windows of the run wait for this call. */
  readonly isFirst: boolean;
  /** The last calls got no response, or the key was refused. */
  readonly isInDoubt: boolean;
  /** When it was claimed, by the clock of Postgres; in milliseconds since the epoch. */
  readonly claimedAt: number;
  /** True if it is worth looking whether its entries are known by now. */
  readonly mayBeKnown: boolean;
}

/** A window that may be claimed. */
export interface Claimable extends Omit<ClaimedWindow, 'attempts'> {
  /** Null if it was not claimed. */
  readonly attempts: number | null;
  /** The source is down, and was called within the last half minute. */
  readonly isDown: boolean;
}

/** What a claim depends on besides the window; moments are ISO 8601, and explained by `CallLimit`. */
interface ClaimValues extends Record<string, unknown> {
  readonly windowId: number;
  /** States that a claim starts from: a value, so that no plan looks for the window in the index of the open ones. */
  readonly claimable: readonly WindowState[];
  readonly keyHash: string;
  readonly now: string;
  readonly hour: string;
  readonly downCalledBefore: string;
  readonly openingFailures: number;
  /** Calls of the hour that a night may use, a backfill, and a night that began before `leftoverBefore`. */
  readonly limit: number;
  readonly backfillLimit: number;
  readonly leftoverLimit: number;
  readonly leftoverBefore: string;
}

/**
 * Claims a window whose run is running (the transition `claim`), counts its call in the hour's budget, and takes its
 * position in the order of responses. Returns the window, with null as `attempts` if it was not claimed because the source
 * is down or the hour has no call left; no row if the window has ended or its run is not running.
 *
 * The window's row is locked first, so that no call is counted for a window that is not claimed; and that of the source's
 * state, if there is one, so that one of several workers makes the call which tries the source. Each part finds one row by
 * a primary key; only until the key is accepted in the run, its open windows are sorted for the first one.
 */
export const claimWithCall = statement<ClaimValues, Claimable & Record<string, unknown>>`
  with source as materialized (
    select failures, called_at from ${sourceState} where key_hash = ${'keyHash'} for update
  ), claimable as (
    select w.id, w.run_id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments,
           w.params, w.variant, w.is_filtered, w.not_ready_ms, w.failed_attempts, w.refused_hash,
           -- A window that is claimed while it runs has lost the worker that had it.
           w.lost_workers + (w.state = 'running')::int as lost_workers,
           case when r.kind <> 'nightly' then ${'backfillLimit'}::int
                -- Of a night that has not ended when the next one begins, so that its prices need not wait for the hour's end.
                when coalesce(r.resumed_at, r.started_at) < ${'leftoverBefore'}::timestamptz then ${'leftoverLimit'}::int
                else ${'limit'}::int end as allowed,
           exists (
             select from source
              where failures >= ${'openingFailures'}::int and called_at > ${'downCalledBefore'}::timestamptz
           ) as is_down,
           exists (select from source) as is_in_doubt,
           not r.is_key_accepted as is_first,
           -- Its entries may be known by now: of nights, or if another run was under way since its run began.
           r.kind = 'nightly' or exists (
             select from ${runs} other
              where other.id <> r.id and coalesce(other.finished_at, 'infinity') > r.started_at
           ) as may_be_known
      from ${windows} w join ${runs} r on r.id = w.run_id
     where w.id = ${'windowId'}::bigint
       and w.state = any (${'claimable'}::text[])
       and r.state = 'running'
       -- Until the source has accepted the key, only the first open window of the run, of the newest day (listOpenWindows).
       and (r.is_key_accepted or w.id = (
         select o.id from ${windows} o
          where o.run_id = r.id and o.state in ('pending', 'running')
          order by o.to_date desc, o.id limit 1
       ))
       for update of w
  ), counted as (
    -- No row if the allowed calls are used up, or the source has closed the hour.
    insert into ${callBudget} as budget (key_hash, hour, calls)
    select ${'keyHash'}::text, ${'hour'}::timestamptz, 1 from claimable where not is_down and allowed > 0
    on conflict (key_hash, hour) do update set calls = budget.calls + 1
     where budget.calls < (select allowed from claimable) and budget.refused_at is null
    returning calls
  ), placed as (
    -- As takePositions: read when the row is locked, so that it is later than every position that was taken before.
    update ${clock} set last = greatest(clock_timestamp(), last + interval '1 microsecond') from counted
    returning to_char(last at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as position
  ), claimed as (
    update ${windows} w
       set state = 'running', attempts = w.attempts + 1, requests = w.requests + 1,
           lost_workers = claimable.lost_workers, started_at = coalesce(w.started_at, clock_timestamp())
      from claimable, counted, placed where w.id = claimable.id
    returning w.attempts, placed.position
  ), tried as (
    update ${sourceState} set called_at = ${'now'}::timestamptz
     where key_hash = ${'keyHash'} and exists (select from claimed)
  )
  select id::int, run_id::int as "runId", operation, exchange, from_date::text as "from", to_date::text as "to",
         instruments, params, variant, is_filtered as "filtered", attempts, position,
         not_ready_ms as "notReadyMs", failed_attempts as "failedAttempts", refused_hash as "unreadableHash",
         lost_workers as "lostWorkers",
         is_down as "isDown", is_in_doubt as "isInDoubt", is_first as "isFirst",
         (extract(epoch from clock_timestamp()) * 1000)::float8 as "claimedAt", may_be_known as "mayBeKnown"
    from claimable left join claimed on true`;

import { and, eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoTime } from '../../core/days.ts';
import { readMember } from '../../core/errors.ts';
import { databaseError } from '../../postgres/database-errors.ts';
import type { Preparing } from '../../postgres/prepared.ts';
import { runs, windows } from '../schema/work.ts';
import { type CallLimit, returnCall } from '../source/call-budget.ts';
import { type Claimable, type ClaimedWindow, claimWithCall } from './claim-statement.ts';
import { moveWindows, moveWindowsInOrder, WINDOW_TRANSITIONS } from './transitions.ts';

export type { ClaimedWindow };

/** The outcome of a claim. */
export type Claim =
  | { readonly outcome: 'claimed'; readonly window: ClaimedWindow }
  /** The window has ended, or its run is not running: there is nothing to do. */
  | { readonly outcome: 'gone' }
  /** The source is down, and was called within the last half minute. */
  | { readonly outcome: 'down' }
  /** The hour's budget has no call left for this kind of run. */
  | { readonly outcome: 'spent' }
  /** Another window that makes the same request is running. */
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
  let claimable: Claimable | undefined;
  try {
    const { rows } = await claimWithCall(db, {
      windowId,
      claimable: WINDOW_TRANSITIONS.claim.from,
      keyHash: callLimit.keyHash,
      now: isoTime(callLimit.now),
      hour: isoTime(callLimit.hour),
      limit: callLimit.limit,
      backfillLimit: callLimit.backfillLimit,
      leftoverLimit: callLimit.leftoverLimit,
      leftoverBefore: isoTime(callLimit.now - NIGHT_MS),
      openingFailures: callLimit.openingFailures,
      downCalledBefore: isoTime(callLimit.downCalledBefore),
    });
    claimable = rows[0];
  } catch (error) {
    if (readMember(databaseError(error).cause, 'constraint') !== REQUESTED_KEY) throw error;
    await releaseIdle(db, windowId);
    return { outcome: 'waits' };
  }
  if (claimable === undefined) return { outcome: 'gone' };
  const { attempts, isDown, ...window } = claimable;
  if (attempts !== null) return { outcome: 'claimed', window: { ...window, attempts } };
  return { outcome: isDown ? 'down' : 'spent' };
}

/** After this long, what is left of a night leaves a share of the calls to the next one, as backfills do. */
const NIGHT_MS = 18 * 3_600_000;

/** The unique index that allows only one running window per request. */
const REQUESTED_KEY = 'windows_requested_key';

/** Puts back windows with the same request of runs that are not running: their worker may be gone for good. */
async function releaseIdle(db: NodePgDatabase, windowId: number): Promise<void> {
  const idle = sql`${windows.id} in (
    select other.id
      from ${windows} w
      join ${windows} other
        on other.operation = w.operation
       and other.exchange = w.exchange
       and other.variant = w.variant
       and other.from_date = w.from_date
       and other.to_date = w.to_date
       and other.instruments = w.instruments
       and other.params = w.params
      join ${runs} r on r.id = other.run_id
     where w.id = ${windowId}
       and other.state = 'running'
       and other.requests > 0
       and r.state <> 'running')`;
  await moveWindowsInOrder(db, 'release', { state: 'pending' }, idle);
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

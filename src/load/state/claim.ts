import { and, eq, type SQLWrapper, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { assessKey, beginKeyTrial, endKeyTrial } from './access-keys.ts';
import { countCall, type Permit } from './call-budget.ts';
import type { NewWindow } from './new-windows.ts';
import type { RunKind } from './run-request.ts';
import { accessKeys } from './schema/source.ts';
import { runs, windows } from './schema/work.ts';
import { asNewWindow, WINDOW_TRANSITIONS, windowMay } from './windows.ts';

/** A window a worker has taken on. */
export interface ClaimedWindow extends NewWindow {
  readonly id: number;
  readonly runId: number;
  readonly runKind: RunKind;
  readonly attempts: number;
  /** Milliseconds since its first start. */
  readonly ageMs: number;
}

/** What came of the wish to take a window on. */
export type Claim =
  | {
      readonly outcome: 'claimed';
      readonly window: ClaimedWindow;
      /** Nobody knows whether the key is good: this call tries it, and the other workers wait for it. */
      readonly probe: boolean;
      /** When the source last accepted the key, as far as it was written down. */
      readonly keyGoodAt: number | null;
    }
  /** It has ended, or its run is paused, cancelled or over: nothing is to be done. */
  | { readonly outcome: 'gone' }
  /** It lost its worker too often; nothing was claimed. */
  | { readonly outcome: 'lost'; readonly lostWorkers: number }
  /** The source refused this key; no call may be made with it. */
  | { readonly outcome: 'refused'; readonly diagnostic: string }
  /** Another worker is trying the key. */
  | { readonly outcome: 'probing' }
  /** The hour's budget holds no call for this kind of run. */
  | { readonly outcome: 'spent' };

/** Milliseconds since the epoch. */
const millis = (moment: SQLWrapper) => sql<number | null>`(extract(epoch from ${moment}) * 1000)::float8`;

/** What a claim has to know of a window whose run goes on and of the key; null: it is not to be claimed. */
async function readClaimable(db: NodePgDatabase, windowId: number, keyHash: string) {
  const found = await db
    .select({
      window: { id: windows.id, runId: windows.run_id, runKind: runs.kind, ...asNewWindow },
      state: windows.state,
      lostWorkers: windows.lost_workers,
      key: {
        state: accessKeys.state,
        diagnostic: accessKeys.diagnostic,
        goodAt: millis(accessKeys.last_good_at),
        refusedAt: millis(accessKeys.refused_at),
      },
    })
    .from(windows)
    .innerJoin(runs, eq(runs.id, windows.run_id))
    .leftJoin(accessKeys, eq(accessKeys.key_hash, keyHash))
    .where(and(eq(windows.id, windowId), windowMay('claim'), eq(runs.state, 'running')));
  return found[0] ?? null;
}

/**
 * Takes a window on, if its run goes on, the key may be used and the hour's budget has a call left. The
 * attempt and the call that follows are counted with the claim in one statement, so that what is
 * counted and what is asked cannot drift apart.
 *
 * @param maxLostWorkers a window that has lost more workers is not claimed again.
 */
export async function claimWindow(
  db: NodePgDatabase,
  windowId: number,
  permit: Permit,
  maxLostWorkers: number,
): Promise<Claim> {
  const { keyHash, now } = permit;
  const seen = await readClaimable(db, windowId, keyHash);
  if (seen === null) return { outcome: 'gone' };
  const { window, key } = seen;
  const lostWorkers = seen.lostWorkers + (seen.state === 'running' ? 1 : 0);
  if (lostWorkers > maxLostWorkers) return { outcome: 'lost', lostWorkers };
  const standing = assessKey(key, now);
  if (standing === 'refused') return { outcome: 'refused', diagnostic: key?.diagnostic ?? '' };
  const probe = standing === 'unproven';
  if (probe && !(await beginKeyTrial(db, permit))) return { outcome: 'probing' };
  const taken = await countAndTake(db, window, permit);
  if (typeof taken === 'string') {
    if (probe) await endKeyTrial(db, keyHash);
    return { outcome: taken };
  }
  return { outcome: 'claimed', window: { ...window, ...taken }, probe, keyGoodAt: key?.goodAt ?? null };
}

type Taken = Pick<ClaimedWindow, 'attempts' | 'ageMs'>;

async function countAndTake(
  db: NodePgDatabase,
  { id, runKind }: Pick<ClaimedWindow, 'id' | 'runKind'>,
  permit: Permit,
): Promise<Taken | 'gone' | 'spent'> {
  const allowed = runKind === 'nightly' ? permit.limit : permit.backfillLimit;
  if (allowed <= 0) return 'spent';
  // The window may have ended since it was read. Its row is locked first, so that no call is counted for
  // a window that is not taken.
  const taken = await db.execute<{ attempts: number | null; ageMs: number }>(sql`
    with claimable as (
      select w.id from ${windows} w join ${runs} r on r.id = w.run_id
       where w.id = ${id} and w.state in ${[...WINDOW_TRANSITIONS.claim.from]} and r.state = 'running'
         for update of w
    ), counted as (
      ${countCall(permit, allowed, sql`from claimable`)}
    ), taken as (
      update ${windows} w
         set state = 'running', attempts = w.attempts + 1, requests = w.requests + 1,
             lost_workers = w.lost_workers + (w.state = 'running')::int,
             started_at = coalesce(w.started_at, clock_timestamp())
        from claimable, counted where w.id = claimable.id
      returning w.attempts, w.started_at
    )
    select attempts, round(extract(epoch from clock_timestamp() - started_at) * 1000)::float8 as "ageMs"
      from claimable left join taken on true`);
  const row = taken.rows[0];
  if (row === undefined) return 'gone';
  return row.attempts === null ? 'spent' : { attempts: row.attempts, ageMs: row.ageMs };
}

/** Undoes a claim that no call followed; the call stays counted in the hour it was meant for. */
export async function unclaimWindow(db: NodePgDatabase, windowId: number): Promise<void> {
  await db
    .update(windows)
    .set({
      state: 'pending',
      attempts: sql`${windows.attempts} - 1`,
      requests: sql`${windows.requests} - 1`,
    })
    .where(and(eq(windows.id, windowId), windowMay('release')));
}

import { and, eq, lte, ne, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoText } from '../schema/columns.ts';
import { accessKeys } from '../schema/source-tables.ts';
import { type CallLimit, iso } from './call-budget.ts';

/** That a key is accepted is stored again after this long, so that other workers need not try it with one call. */
const REFRESH_MS = 60_000;

/** The condition that the key `k` is good. One that is neither good nor refused is tried with a single call first. */
export const keyIsAccepted = ({ keyGoodSince }: Pick<CallLimit, 'keyGoodSince'>) =>
  sql`k.state = 'good' and (k.last_good_at is null or k.last_good_at >= ${iso(keyGoodSince)})`;

/** The condition that the key `k` must not be used. */
export const keyIsRefused = ({ keyRefusedSince }: Pick<CallLimit, 'keyRefusedSince'>) =>
  sql`k.state = 'refused' and k.refused_at > ${iso(keyRefusedSince)}`;

/** True if the key was refused so long ago that it may be tried again. */
export async function hasRested(
  db: NodePgDatabase,
  { keyHash, keyRefusedSince }: Pick<CallLimit, 'keyHash' | 'keyRefusedSince'>,
): Promise<boolean> {
  const { key_hash, state, refused_at } = accessKeys;
  const isOld = lte(refused_at, iso(keyRefusedSince));
  const found = await db
    .select({ key_hash })
    .from(accessKeys)
    .where(and(eq(key_hash, keyHash), eq(state, 'refused'), isOld));
  return found.length === 1;
}

/**
 * Lets one worker try an unproven key, until `probeUntil`.
 *
 * @returns false if another worker is trying it.
 */
export async function beginKeyTrial(
  db: NodePgDatabase,
  { keyHash, now, probeUntil }: CallLimit,
): Promise<boolean> {
  const until = iso(probeUntil);
  const begun = await db
    .insert(accessKeys)
    .values({ key_hash: keyHash, state: 'unknown', probing_until: until })
    .onConflictDoUpdate({
      target: accessKeys.key_hash,
      set: { probing_until: until },
      setWhere: sql`${accessKeys.probing_until} is null or ${accessKeys.probing_until} <= ${iso(now)}`,
    });
  return begun.rowCount === 1;
}

/** Ends the trial of a key without a result, because its call said nothing about the key or was not made. */
export async function endKeyTrial(db: NodePgDatabase, keyHash: string): Promise<void> {
  await db.update(accessKeys).set({ probing_until: null }).where(eq(accessKeys.key_hash, keyHash));
}

/**
 * Records that the source accepted the key, so that all workers may use it at the same time.
 *
 * @param claim.probe whether this call tried the key: only such a call makes a refused key good again.
 * @param claim.keyGoodAt when that was last recorded, in milliseconds since the epoch.
 */
export async function markKeyAccepted(
  db: NodePgDatabase,
  { keyHash, now }: Pick<CallLimit, 'keyHash' | 'now'>,
  { probe, keyGoodAt }: { readonly probe: boolean; readonly keyGoodAt: number | null },
): Promise<void> {
  if (!probe && now - (keyGoodAt ?? 0) < REFRESH_MS) return;
  await db
    .update(accessKeys)
    .set({ state: 'good', last_good_at: iso(now), probing_until: null, diagnostic: null, refused_at: null })
    .where(and(eq(accessKeys.key_hash, keyHash), probe ? undefined : ne(accessKeys.state, 'refused')));
}

/**
 * Records that the source refused the key. The trial stays taken, because a claim that read the key just before it was
 * refused would otherwise begin another one and make one more call.
 *
 * @returns true for the one caller that has to raise the alert.
 */
export async function markKeyRefused(
  db: NodePgDatabase,
  { keyHash, now }: Pick<CallLimit, 'keyHash' | 'now'>,
  diagnostic: string,
): Promise<boolean> {
  const refused = { state: 'refused', diagnostic, refused_at: iso(now) };
  const marked = await db
    .insert(accessKeys)
    .values({ key_hash: keyHash, ...refused })
    .onConflictDoUpdate({
      target: accessKeys.key_hash,
      set: refused,
      setWhere: ne(accessKeys.state, 'refused'),
    });
  if (marked.rowCount === 1) return true;
  // It was tried again: the time until the next try starts again.
  await db.update(accessKeys).set(refused).where(eq(accessKeys.key_hash, keyHash));
  return false;
}

/** Allows a refused key one more try, because somebody has started work by hand. @returns whether it was refused. */
export async function allowKeyTrial(db: NodePgDatabase, keyHash: string): Promise<boolean> {
  const allowed = await db
    .update(accessKeys)
    .set({ state: 'unknown', probing_until: null })
    .where(and(eq(accessKeys.key_hash, keyHash), eq(accessKeys.state, 'refused')));
  return allowed.rowCount === 1;
}

/** When the source last refused this key, ISO 8601; null if it did not. */
export async function readRefusedAt(db: NodePgDatabase, keyHash: string): Promise<string | null> {
  const [key] = await db
    .select({ refusedAt: isoText(sql`${accessKeys.refused_at}`) })
    .from(accessKeys)
    .where(and(eq(accessKeys.key_hash, keyHash), eq(accessKeys.state, 'refused')));
  return key?.refusedAt ?? null;
}

/** The diagnostic with which the source refused this key; null if it did not. */
export async function readKeyRefusal(db: NodePgDatabase, keyHash: string): Promise<string | null> {
  const found = await db
    .select({ diagnostic: accessKeys.diagnostic })
    .from(accessKeys)
    .where(and(eq(accessKeys.key_hash, keyHash), eq(accessKeys.state, 'refused')));
  return found[0]?.diagnostic ?? null;
}

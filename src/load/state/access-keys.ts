import { and, eq, lte, ne, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Permit } from './call-budget.ts';
import { accessKeys } from './schema/source.ts';

/** An accepted key is written down again after this long, so that others need not try it alone. */
const REFRESH_MS = 60_000;

const iso = (moment: number) => new Date(moment).toISOString();

/** May everybody use the key `k`? One that is neither accepted nor refused is tried by a single call first. */
export const keyIsAccepted = ({ keyGoodSince }: Pick<Permit, 'keyGoodSince'>) =>
  sql`k.state = 'good' and (k.last_good_at is null or k.last_good_at >= ${iso(keyGoodSince)})`;

/** May nobody use the key `k`? */
export const keyIsRefused = ({ keyRefusedSince }: Pick<Permit, 'keyRefusedSince'>) =>
  sql`k.state = 'refused' and k.refused_at > ${iso(keyRefusedSince)}`;

/** Was the key refused so long ago that it is to be tried again? */
export async function hasRested(
  db: NodePgDatabase,
  { keyHash, keyRefusedSince }: Pick<Permit, 'keyHash' | 'keyRefusedSince'>,
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
 * Takes the trial of an unproven key for one worker, for as long as a call may take.
 *
 * @returns false when another worker is trying it.
 */
export async function beginKeyTrial(
  db: NodePgDatabase,
  { keyHash, now, probeUntil }: Permit,
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

/** The call that tried the key said nothing about it, or was not made: the next one tries. */
export async function endKeyTrial(db: NodePgDatabase, keyHash: string): Promise<void> {
  await db.update(accessKeys).set({ probing_until: null }).where(eq(accessKeys.key_hash, keyHash));
}

/**
 * The source accepted the key: everybody may use it side by side.
 *
 * @param claim.probe it was the call that tried the key: only that one makes a refused key good again.
 * @param claim.keyGoodAt when that was written down before.
 */
export async function markKeyAccepted(
  db: NodePgDatabase,
  { keyHash, now }: Pick<Permit, 'keyHash' | 'now'>,
  { probe, keyGoodAt }: { readonly probe: boolean; readonly keyGoodAt: number | null },
): Promise<void> {
  if (!probe && now - (keyGoodAt ?? 0) < REFRESH_MS) return;
  await db
    .update(accessKeys)
    .set({ state: 'good', last_good_at: iso(now), probing_until: null, diagnostic: null, refused_at: null })
    .where(and(eq(accessKeys.key_hash, keyHash), probe ? undefined : ne(accessKeys.state, 'refused')));
}

/**
 * The source refused the key. Whoever tried it stays marked as trying: a claim that has read the key
 * just before it was refused would else find the trial free, and make one more call.
 *
 * @returns true for the one caller who is to raise the alert.
 */
export async function markKeyRefused(
  db: NodePgDatabase,
  { keyHash, now }: Pick<Permit, 'keyHash' | 'now'>,
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
  // It was tried again, and rests anew.
  await db.update(accessKeys).set(refused).where(eq(accessKeys.key_hash, keyHash));
  return false;
}

/** Somebody asks for work by hand: a refused key gets one more try. @returns was it refused? */
export async function allowKeyTrial(db: NodePgDatabase, keyHash: string): Promise<boolean> {
  const allowed = await db
    .update(accessKeys)
    .set({ state: 'unknown', probing_until: null })
    .where(and(eq(accessKeys.key_hash, keyHash), eq(accessKeys.state, 'refused')));
  return allowed.rowCount === 1;
}

/** The line with which the source refused this key, or null. */
export async function readKeyRefusal(db: NodePgDatabase, keyHash: string): Promise<string | null> {
  const found = await db
    .select({ diagnostic: accessKeys.diagnostic })
    .from(accessKeys)
    .where(and(eq(accessKeys.key_hash, keyHash), eq(accessKeys.state, 'refused')));
  return found[0]?.diagnostic ?? null;
}

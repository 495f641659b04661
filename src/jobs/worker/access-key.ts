import type { Pool } from 'pg';
import type { Permit } from '../../load/state/windows.ts';

/** An accepted key is written down again after this long, so that others need not try it alone. */
const REFRESH_MS = 60_000;

const marked = new Map<string, number>();

/** The source accepted the key: everybody may use it side by side. */
export async function keyAccepted(pool: Pool, permit: Permit, probe: boolean): Promise<void> {
  if (!probe && permit.now - (marked.get(permit.keyHash) ?? 0) < REFRESH_MS) return;
  await pool.query(
    `update etl.access_keys set state = 'good', last_good_at = $2, probing_until = null, diagnostic = null, refused_at = null
      where key_hash = $1 and (state <> 'refused' or $3)`,
    [permit.keyHash, new Date(permit.now), probe],
  );
  marked.set(permit.keyHash, permit.now);
}

/** The call that tried the key told nothing about it: let the next one try. */
export async function probeFailed(pool: Pool, permit: Permit): Promise<void> {
  await pool.query('update etl.access_keys set probing_until = null where key_hash = $1', [permit.keyHash]);
}

/**
 * The source refused the key. Whoever tried it stays marked as trying: a claim that has read the key
 * just before it was refused would else find the trial free, and make one more call.
 *
 * @returns true for the one caller who is to raise the alert.
 */
export async function keyRefused(pool: Pool, permit: Permit, diagnostic: string): Promise<boolean> {
  const result = await pool.query(
    `insert into etl.access_keys as known (key_hash, state, diagnostic, refused_at) values ($1, 'refused', $2, $3)
     on conflict (key_hash) do update set
       state = 'refused', diagnostic = excluded.diagnostic, refused_at = excluded.refused_at
     where known.state <> 'refused'`,
    [permit.keyHash, diagnostic, new Date(permit.now)],
  );
  return result.rowCount === 1;
}

/** Somebody asks for work by hand: a refused key gets one more try. @returns was it refused? */
export async function trustKeyAgain(pool: Pool, keyHash: string): Promise<boolean> {
  const result = await pool.query(
    "update etl.access_keys set state = 'unknown', probing_until = null where key_hash = $1 and state = 'refused'",
    [keyHash],
  );
  return result.rowCount === 1;
}

/** The line with which the source refused this key, or null. */
export async function refusal(pool: Pool, keyHash: string): Promise<string | null> {
  const found = await pool.query<{ diagnostic: string | null }>(
    "select diagnostic from etl.access_keys where key_hash = $1 and state = 'refused'",
    [keyHash],
  );
  return found.rows[0]?.diagnostic ?? null;
}

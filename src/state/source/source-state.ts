import { and, eq, gte, isNotNull, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoTime } from '../../core/days.ts';
import { firstItem } from '../../core/iterables.ts';
import { isoText } from '../schema/columns.ts';
import { sourceState } from '../schema/source-tables.ts';
import type { CallLimit } from './call-budget.ts';

// A claim (windows/claim-statement.ts) locks the row of its key, and notes in it that a call has begun.

/** Records that a call failed and got no response. @returns since when no call has got one, and how many have failed. */
export async function noteSourceFailed(
  db: NodePgDatabase,
  { keyHash, now }: Pick<CallLimit, 'keyHash' | 'now'>,
  failure: string,
): Promise<{ readonly failures: number; readonly since: string }> {
  const { failures, failing_since } = sourceState;
  const failed = { failure, called_at: isoTime(now) };
  const states = await db
    .insert(sourceState)
    .values({ key_hash: keyHash, failures: 1, failing_since: isoTime(now), ...failed })
    .onConflictDoUpdate({
      target: sourceState.key_hash,
      set: {
        failures: sql`${failures} + 1`,
        failing_since: sql`coalesce(${failing_since}, excluded.failing_since)`,
        ...failed,
      },
    })
    .returning({ failures, since: isoText(sql`${failing_since}`) });
  return firstItem(states);
}

/** Records that the source responded. @param isKeyAccepted whether it accepted the key. */
export async function noteSourceResponded(
  db: NodePgDatabase,
  keyHash: string,
  isKeyAccepted: boolean,
): Promise<void> {
  const ofKey = eq(sourceState.key_hash, keyHash);
  if (isKeyAccepted) await db.delete(sourceState).where(ofKey);
  else await db.update(sourceState).set(RESPONDED).where(ofKey);
}

const RESPONDED = { failures: 0, failing_since: null, failure: null } as const;

/** Records that the source refused the key. */
export async function noteKeyRefused(
  db: NodePgDatabase,
  { keyHash, now }: Pick<CallLimit, 'keyHash' | 'now'>,
  diagnostic: string,
): Promise<void> {
  const refused = { ...RESPONDED, diagnostic, called_at: isoTime(now) };
  const { refused_at } = sourceState;
  await db
    .insert(sourceState)
    .values({ key_hash: keyHash, refused_at: isoTime(now), ...refused })
    .onConflictDoUpdate({
      target: sourceState.key_hash,
      set: { ...refused, refused_at: sql`coalesce(${refused_at}, excluded.refused_at)` },
    });
}

/** The refusal of a key. */
interface KeyRefusal {
  /** The line of the source. */
  readonly diagnostic: string;
  /** When it first refused the key, ISO 8601. */
  readonly since: string;
}

/** The refusal of this key; null if the source did not refuse it when it was last called. */
export async function readKeyRefusal(db: NodePgDatabase, keyHash: string): Promise<KeyRefusal | null> {
  const { key_hash, diagnostic, refused_at } = sourceState;
  const [state] = await db
    .select({
      diagnostic: sql<string>`coalesce(${diagnostic}, '')`,
      since: isoText(sql`${refused_at}`),
    })
    .from(sourceState)
    .where(and(eq(key_hash, keyHash), isNotNull(refused_at)));
  return state ?? null;
}

/** Why the source is taken as down, and since when. */
export interface SourceOutage {
  readonly cause: string;
  /** When the first call failed since the source last responded, ISO 8601. */
  readonly since: string;
}

/** The outage of the source; null unless this many calls in a row have failed. */
export async function readSourceOutage(
  db: NodePgDatabase,
  keyHash: string,
  opening: number,
): Promise<SourceOutage | null> {
  const { key_hash, failures, failure, failing_since } = sourceState;
  const [state] = await db
    .select({
      cause: sql<string>`coalesce(${failure}, '')`,
      since: isoText(sql`${failing_since}`),
    })
    .from(sourceState)
    .where(and(eq(key_hash, keyHash), gte(failures, opening)));
  return state ?? null;
}

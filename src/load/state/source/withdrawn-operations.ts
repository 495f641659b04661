import { and, eq, gt, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { withdrawnOperations } from '../schema/source-tables.ts';

/** An operation stays marked as withdrawn for this long; then it is tried again, which costs a call if it still is. */
const WITHDRAWN_FOR = sql`interval '7 days'`;

/** Stores that the source does not offer an operation to a key any more. */
export async function noteWithdrawn(
  db: NodePgDatabase,
  {
    keyHash,
    operation,
    diagnostic,
  }: { readonly keyHash: string; readonly operation: string; readonly diagnostic: string },
): Promise<void> {
  const noted = { diagnostic, noted_at: sql`clock_timestamp()` };
  await db
    .insert(withdrawnOperations)
    .values({ key_hash: keyHash, operation, ...noted })
    .onConflictDoUpdate({
      target: [withdrawnOperations.key_hash, withdrawnOperations.operation],
      set: noted,
    });
}

/** What the source said when it refused an operation in the last week; null if it did not. */
export async function readWithdrawn(
  db: NodePgDatabase,
  { keyHash, operation }: { readonly keyHash: string; readonly operation: string },
): Promise<string | null> {
  const { key_hash, diagnostic, noted_at } = withdrawnOperations;
  const [found] = await db
    .select({ diagnostic })
    .from(withdrawnOperations)
    .where(
      and(
        eq(key_hash, keyHash),
        eq(withdrawnOperations.operation, operation),
        gt(noted_at, sql`clock_timestamp() - ${WITHDRAWN_FOR}`),
      ),
    );
  return found?.diagnostic ?? null;
}

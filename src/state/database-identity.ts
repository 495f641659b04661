import { randomBytes } from 'node:crypto';
import { ne, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { databaseIdentity } from './schema/knowledge.ts';

const ownOid = sql`(select oid from pg_database where datname = current_database())`.mapWith(Number);

/**
 * The id of this database, created by the first call. A restored copy of a database has the row of the original, but
 * another oid, and gets an id of its own: the queue is disposable, so no work is lost with the old name.
 */
export async function databaseId(db: NodePgDatabase): Promise<string> {
  const { id, made_for } = databaseIdentity;
  const read = async () => {
    const [row] = await db.select({ id, made_for, ownOid }).from(databaseIdentity);
    return row?.made_for === row?.ownOid ? (row?.id ?? null) : null;
  };
  const known = await read();
  if (known !== null) return known;
  const identity = { id: randomBytes(6).toString('hex'), made_for: ownOid };
  // If two processes do this at once, the second finds what the first has written.
  const renamed = await db.update(databaseIdentity).set(identity).where(ne(made_for, ownOid));
  if (renamed.rowCount === 0) await db.insert(databaseIdentity).values(identity).onConflictDoNothing();
  const written = await read();
  if (written === null) throw new Error('the database has no id although one was just written');
  return written;
}

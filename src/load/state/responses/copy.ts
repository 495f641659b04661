import { and, eq, inArray, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import type { Database } from '../../database/database.ts';
import { responseBodies, responses } from '../schema/source.ts';
import { type AnswerFilter, matchesFilter } from './to-replay.ts';

/** How many answers are copied at a time. */
const COPIED = 500;

/**
 * Copies kept answers of another database into this one, with the times at which they were loaded. Answers that this
 * one has already stay as they are, so after an interruption it can simply be repeated. A copied answer belongs to no
 * window (id 0) until a replay reads it.
 *
 * @returns how many were new.
 */
export async function copyAnswers(
  source: NodePgDatabase,
  target: Database,
  filter: AnswerFilter,
  signal: AbortSignal,
): Promise<number> {
  const answer = alias(responses, 'answer');
  let after = { at: '-infinity', id: 0 };
  let copied = 0;
  while (!signal.aborted) {
    const found = await source
      .select({
        id: answer.id,
        hash: answer.hash,
        at: answer.fetched_at,
        // As a JSON object, because a database of another version may lack columns, or have more.
        facts: sql<string>`to_jsonb(answer)::text`,
      })
      .from(answer)
      .where(
        and(
          matchesFilter(answer, filter),
          sql`(${answer.fetched_at}, ${answer.id}) > (${after.at}::timestamptz, ${after.id}::bigint)`,
        ),
      )
      .orderBy(answer.fetched_at, answer.id)
      .limit(COPIED);
    const last = found.at(-1);
    if (last === undefined) break;
    after = last;
    await copyBodies(source, target.drizzle, [...new Set(found.map((row) => row.hash))]);
    const facts = found.map((row) => row.facts);
    copied += await insertMissing(target.drizzle, facts);
  }
  return copied;
}

async function copyBodies(source: NodePgDatabase, target: NodePgDatabase, hashes: string[]): Promise<void> {
  const known = await target
    .select({ hash: responseBodies.hash })
    .from(responseBodies)
    .where(inArray(responseBodies.hash, hashes));
  const here = new Set(known.map((row) => row.hash));
  // One at a time, because each may be large.
  for (const hash of hashes) {
    if (here.has(hash)) continue;
    const [body] = await source.select().from(responseBodies).where(eq(responseBodies.hash, hash));
    if (body !== undefined) await target.insert(responseBodies).values(body).onConflictDoNothing();
  }
}

async function insertMissing(target: NodePgDatabase, facts: readonly string[]): Promise<number> {
  const inserted = await target.execute(sql`
    insert into ${responses} (run_id, window_id, operation, exchange, from_date, to_date, instruments, params,
      variant, filtered, called_on, hash, content_type, fetched_at, loaded_at)
    select 0, 0, n.operation, n.exchange, n.from_date, n.to_date, n.instruments, n.params, n.variant, n.filtered,
      n.called_on, n.hash, n.content_type, n.fetched_at, coalesce(n.loaded_at, n.fetched_at)
    from unnest(${sql.param(facts)}::jsonb[]) with ordinality as given(facts, place),
      jsonb_populate_record(null::${responses}, given.facts) as n
    where not exists (
      select from ${responses} o
       where o.operation = n.operation and o.exchange = n.exchange and o.from_date = n.from_date
         and o.to_date = n.to_date and o.instruments = n.instruments and o.params = n.params and o.variant = n.variant
         and o.filtered = n.filtered and o.fetched_at = n.fetched_at and o.hash = n.hash)
    order by given.place`);
  return inserted.rowCount ?? 0;
}

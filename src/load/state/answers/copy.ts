import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import type { Database } from '../../database/database.ts';
import { answers, responseBodies } from '../schema/source-tables.ts';
import { type AnswerFilter, matchesFilter } from './to-replay.ts';

/** How many answers are copied at a time. */
const COPIED = 500;

/**
 * Copies kept answers of another database into this one. Answers that this
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
  const answer = alias(answers, 'answer');
  // Before answers had places, the table had another name.
  const known = await source.execute<{ name: string }>(
    sql`select coalesce(to_regclass('etl.answers'), to_regclass('etl.responses'))::text as name`,
  );
  const table = sql.raw(known.rows[0]?.name ?? 'etl.answers');
  let after = { at: '-infinity', id: 0 };
  let copied = 0;
  while (!signal.aborted) {
    // Each as a JSON object, because a database of another version may lack columns, have more, or have `filtered`.
    const { rows: found } = await source.execute<{ id: number; at: string; hash: string; facts: string }>(sql`
      select answer.id::float8 as id, answer.fetched_at::text as at, answer.hash,
             (jsonb_build_object('is_filtered', to_jsonb(answer)->'filtered') || to_jsonb(answer))::text as facts
        from ${table} as answer
       where ${and(
         matchesFilter(answer, filter),
         isNotNull(answer.hash),
         sql`(${answer.fetched_at}, ${answer.id}) > (${after.at}::timestamptz, ${after.id}::bigint)`,
       )}
       order by answer.fetched_at, answer.id limit ${COPIED}`);
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

/**
 * Each keeps its place in the order of answers. Where another answer has that place here, it gets the next free one: then
 * it is tried again with one microsecond more.
 */
async function insertMissing(target: NodePgDatabase, facts: readonly string[]): Promise<number> {
  let inserted = 0;
  for (let later = 0; later < 1_000; later += 1) {
    const found = await target.execute<{ missing: number; inserted: number }>(sql`
      with missing as materialized (
        select n.*, coalesce(n.place, n.fetched_at) + interval '1 microsecond' * ${later}::int as free, given.number
          from unnest(${sql.param(facts)}::jsonb[]) with ordinality as given(facts, number),
               jsonb_populate_record(null::${answers}, given.facts) as n
         where not exists (
           select from ${answers} o
            where o.operation = n.operation and o.exchange = n.exchange and o.from_date = n.from_date
              and o.to_date = n.to_date and o.instruments = n.instruments and o.params = n.params and o.variant = n.variant
              and o.is_filtered = n.is_filtered and o.hash = n.hash
              and date_trunc('milliseconds', o.place) = date_trunc('milliseconds', coalesce(n.place, n.fetched_at)))
      ), inserted as (
        insert into ${answers} (place, run_id, window_id, operation, exchange, from_date, to_date, instruments, params,
          variant, is_filtered, called_on, hash, content_type, fetched_at, symbols)
        select free, 0, 0, operation, exchange, from_date, to_date, instruments, params, variant, is_filtered,
          called_on, hash, content_type, fetched_at, symbols
          from missing order by number
        on conflict (place) do nothing returning 1
      )
      select (select count(*) from missing)::int as missing, (select count(*) from inserted)::int as inserted`);
    const [row] = found.rows;
    inserted += row?.inserted ?? 0;
    if (row === undefined || row.missing === row.inserted) break;
  }
  return inserted;
}

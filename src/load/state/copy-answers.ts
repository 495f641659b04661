import { type SQL, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import type { Pool, PoolClient } from 'pg';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';

/** Which kept answers; nothing given means all. */
export interface AnswerFilter {
  readonly operations?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  /** Answers that were asked about at least one day from here … */
  readonly from?: string | undefined;
  /** … to here. */
  readonly to?: string | undefined;
}

/** Does the answer, or window, `r` match? */
export function matches({ operations, exchanges, from, to }: AnswerFilter): SQL {
  return sql.join(
    [
      sql`true`,
      ...(operations === undefined ? [] : [sql`r.operation = any(${sql.param([...operations])})`]),
      ...(exchanges === undefined ? [] : [sql`r.exchange = any(${sql.param([...exchanges])})`]),
      ...(from === undefined ? [] : [sql`r.to_date >= ${from}`]),
      ...(to === undefined ? [] : [sql`r.from_date <= ${to}`]),
    ],
    sql` and `,
  );
}

/** Answers copied with one transaction. */
const PORTION = 500;

interface Copied extends Record<string, unknown> {
  readonly id: string;
  readonly at: string;
  readonly hash: string;
  readonly facts: string;
}

/**
 * Copies kept answers of another database into this one, with the moments they were loaded. Answers
 * that are here already stay as they are: after an interruption it can simply be done again. What
 * was copied belongs to no window (number 0) until a replay takes it on.
 *
 * @returns how many were new.
 */
export async function copyAnswers(
  source: Pool,
  target: Database,
  filter: AnswerFilter,
  signal: AbortSignal,
): Promise<number> {
  let after: { at: string; id: string } = { at: '-infinity', id: '0' };
  let copied = 0;
  while (!signal.aborted) {
    const found = await drizzle(source).execute<Copied>(sql`
      select r.id, r.hash, r.fetched_at::text as at, to_jsonb(r)::text as facts from etl.responses r
       where ${matches(filter)} and (r.fetched_at, r.id) > (${after.at}::timestamptz, ${after.id}::bigint)
       order by r.fetched_at, r.id limit ${PORTION}`);
    const last = found.rows.at(-1);
    if (last === undefined) break;
    after = last;
    await copyBodies(source, target, [...new Set(found.rows.map((row) => row.hash))]);
    copied += await transaction(target, ({ client }) => insertMissing(client, found.rows));
  }
  return copied;
}

async function copyBodies(source: Pool, target: Database, hashes: readonly string[]): Promise<void> {
  const known = await target.pool.query<{ hash: string }>(
    'select hash from etl.response_bodies where hash = any($1)',
    [hashes],
  );
  const here = new Set(known.rows.map((row) => row.hash));
  // One at a time: each may be as large as an answer can be.
  for (const hash of hashes) {
    if (here.has(hash)) continue;
    const body = await source.query<{ encoding: string; body: Buffer; bytes: number }>(
      'select encoding, body, bytes from etl.response_bodies where hash = $1',
      [hash],
    );
    const one = body.rows[0];
    if (one === undefined) continue;
    await target.pool.query(
      'insert into etl.response_bodies (hash, encoding, body, bytes) values ($1, $2, $3, $4) on conflict (hash) do nothing',
      [hash, one.encoding, one.body, one.bytes],
    );
  }
}

async function insertMissing(client: PoolClient, rows: readonly Copied[]): Promise<number> {
  const inserted = await client.query(
    `insert into etl.responses (run_id, window_id, operation, exchange, from_date, to_date, instruments, params,
       part, narrowed, called_on, hash, content_type, fetched_at, loaded_at)
     select 0, 0, n.operation, n.exchange, n.from_date, n.to_date, n.instruments, n.params, n.part, n.narrowed,
       n.called_on, n.hash, n.content_type, n.fetched_at,
       -- Not there in a database of an older version.
       coalesce(n.loaded_at, n.fetched_at)
     from unnest($1::jsonb[]) with ordinality as given(facts, place),
       jsonb_populate_record(null::etl.responses, given.facts) as n
     where not exists (
       select from etl.responses o
        where o.operation = n.operation and o.exchange = n.exchange and o.from_date = n.from_date
          and o.to_date = n.to_date and o.instruments = n.instruments and o.params = n.params and o.part = n.part
          and o.narrowed = n.narrowed and o.fetched_at = n.fetched_at and o.hash = n.hash)
     order by given.place`,
    [rows.map((row) => row.facts)],
  );
  return inserted.rowCount ?? 0;
}

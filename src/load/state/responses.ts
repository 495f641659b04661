import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { ClientBase, Pool } from 'pg';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** A body made ready for keeping: compressed, and named by the SHA-256 of what it was before. */
export interface PackedBody {
  readonly hash: string;
  readonly encoding: string;
  readonly body: Buffer;
  /** Length before compression. */
  readonly bytes: number;
}

/** An answer, or a file read in place of one, to be kept, with what its window does not say. */
export interface AnswerToKeep {
  /** Begun before the transaction, so that it is there when it is needed. */
  readonly packed: Promise<PackedBody>;
  readonly contentType: string | null;
  /** Day of the call in the source's zone. */
  readonly calledOn: string;
  readonly fetchedAt: Date;
}

/** Compresses a body, in zlib's own threads: to be begun before the transaction that keeps it. */
export async function packBody(body: Buffer): Promise<PackedBody> {
  return {
    hash: createHash('sha256').update(body).digest('hex'),
    encoding: 'gzip',
    body: await compress(body),
    bytes: body.length,
  };
}

/** Keepers share this lock, so that no body is found and then pruned before it is pointed to. */
const LOCK = "hashtextextended('eod response bodies', 0)";

/**
 * Keeps an answer inside its window's transaction. The same body again costs one small row.
 * The request's facts are the window's own, which never hold the access key. To be called after the
 * rows are merged: `loaded_at` is now, and with the locks of the days held its order is that of the loads.
 */
export async function keepAnswer(client: ClientBase, windowId: number, answer: AnswerToKeep): Promise<void> {
  const packed = await answer.packed;
  await client.query(`select pg_advisory_xact_lock_shared(${LOCK})`);
  const known = await client.query('select from etl.response_bodies where hash = $1', [packed.hash]);
  if (known.rowCount === 0) await insertBody(client, packed);
  await client.query(
    `insert into etl.responses (run_id, window_id, operation, exchange, from_date, to_date, instruments, params,
       part, narrowed, called_on, hash, content_type, fetched_at)
     select run_id, id, operation, exchange, from_date, to_date, instruments, params, part, narrowed, $2, $3, $4, $5
       from etl.windows where id = $1`,
    [windowId, answer.calledOn, packed.hash, answer.contentType, answer.fetchedAt],
  );
}

async function insertBody(client: ClientBase, { hash, encoding, body, bytes }: PackedBody): Promise<void> {
  await client.query(
    'insert into etl.response_bodies (hash, encoding, body, bytes) values ($1, $2, $3, $4) on conflict (hash) do nothing',
    [hash, encoding, body, bytes],
  );
}

/** A kept answer with its request, as read again. */
export interface KeptAnswer {
  readonly id: number;
  readonly exchange: string;
  /** First day asked about; of a file the session. */
  readonly from: string;
  /** Name of the file the body is, where it is no answer of the source. */
  readonly file: string | null;
  /** SHA-256 of the body, in hex. */
  readonly hash: string;
  readonly calledOn: string;
  readonly contentType: string | null;
  readonly fetchedAt: Date;
  readonly body: Buffer;
}

/** Reads a kept answer, or null when it has been pruned. */
export async function readAnswerKept(pool: Pool, responseId: number): Promise<KeptAnswer | null> {
  const found = await pool.query<KeptAnswer>(
    `select r.id::int, r.exchange, to_char(r.from_date, 'YYYY-MM-DD') as "from", r.params->>'file' as file, r.hash,
       to_char(r.called_on, 'YYYY-MM-DD') as "calledOn", r.content_type as "contentType",
       r.fetched_at as "fetchedAt", b.body
     from etl.responses r join etl.response_bodies b on b.hash = r.hash where r.id = $1`,
    [responseId],
  );
  const kept = found.rows[0];
  return kept === undefined ? null : { ...kept, body: await decompress(kept.body) };
}

/** What `prune` deletes, or would delete. */
export interface Pruned {
  readonly responses: number;
  readonly bodies: number;
  /** Compressed bytes of those bodies. */
  readonly bytes: number;
}

/** Rows deleted with one transaction. */
const PORTION = 1_000;

/** What pruning answers fetched before this moment would delete. */
export async function prunable(pool: Pool, before: Date): Promise<Pruned> {
  const found = await pool.query<Pruned>(
    `select (select count(*)::int from etl.responses where fetched_at < $1) as responses,
       count(*)::int as bodies, coalesce(sum(length(b.body)), 0)::float8 as bytes
     from etl.response_bodies b
     where not exists (select from etl.responses r where r.hash = b.hash and r.fetched_at >= $1)`,
    [before],
  );
  return found.rows[0] ?? { responses: 0, bodies: 0, bytes: 0 };
}

/** Deletes answers fetched before this moment, then the bodies nobody points to any more. */
export async function prune(database: Database, before: Date): Promise<Pruned> {
  let responses = 0;
  for (let gone = PORTION; gone === PORTION; responses += gone) {
    const deleted = await database.pool.query(
      `delete from etl.responses where id in
         (select id from etl.responses where fetched_at < $1 order by id limit ${PORTION} for update)`,
      [before],
    );
    gone = deleted.rowCount ?? 0;
  }
  const orphans = await database.pool.query<{ hash: string }>(
    `select hash from etl.response_bodies b
      where not exists (select from etl.responses r where r.hash = b.hash)`,
  );
  const hashes = orphans.rows.map((row) => row.hash);
  let bodies = 0;
  let bytes = 0;
  for (let at = 0; at < hashes.length; at += PORTION) {
    const deleted = await deleteBodies(database, hashes.slice(at, at + PORTION));
    bodies += deleted.length;
    for (const size of deleted) bytes += size;
  }
  return { responses, bodies, bytes };
}

/** Asks again, alone with the lock: a load may have pointed to a body since. */
async function deleteBodies(database: Database, hashes: readonly string[]): Promise<number[]> {
  return transaction(database, async ({ client }) => {
    await client.query(`select pg_advisory_xact_lock(${LOCK})`);
    const deleted = await client.query<{ size: number }>(
      `delete from etl.response_bodies b where hash = any($1)
         and not exists (select from etl.responses r where r.hash = b.hash)
       returning length(b.body) as size`,
      [hashes],
    );
    return deleted.rows.map((row) => row.size);
  });
}

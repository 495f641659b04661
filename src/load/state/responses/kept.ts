import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants, gunzip } from 'node:zlib';
import { and, count, eq, gte, inArray, lt, notExists, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Database } from '../../database/database.ts';
import { type Preparing, runPrepared } from '../../database/prepared.ts';
import { transaction } from '../../database/transaction.ts';
import { responseBodies, responses } from '../schema/source.ts';
import { windows } from '../schema/work.ts';

const compress = promisify(brotliCompress);

/** How the body of each encoding is read. Bodies were once compressed with gzip, and may be copied from where they are. */
const DECOMPRESS: Readonly<Record<string, (body: Buffer) => Promise<Buffer>>> = {
  br: promisify(brotliDecompress),
  gzip: promisify(gunzip),
};

/** A body made ready for keeping, named by the SHA-256 of what it is before it is compressed. */
export interface PackedBody {
  readonly hash: string;
  /** Length before compression. */
  readonly bytes: number;
  /** The body, compressed with brotli the first time it is asked for. */
  readonly compressed: () => Promise<Buffer>;
}

/** An answer, or a file read in place of one, to be kept, with what its window does not say. */
export interface AnswerToKeep {
  readonly packed: PackedBody;
  readonly contentType: string | null;
  /** Day of the call in the source's zone. */
  readonly calledOn: string;
  readonly fetchedAt: Date;
}

/** A body shorter than this is compressed in less time than the database needs to say that it has it. */
const WORTH_ASKING = 64 * 1024;

/** The name of a body: SHA-256, in hex. */
export const hashBody = (body: Buffer) => createHash('sha256').update(body).digest('hex');

/**
 * Makes a body ready for keeping: to be called before the transaction that keeps it. A body that is not kept
 * yet begins to be compressed at once, in zlib's own threads; of one that is kept the name is all that is needed.
 */
export async function packBody(db: NodePgDatabase, body: Buffer): Promise<PackedBody> {
  const hash = hashBody(body);
  let compressed: Promise<Buffer> | undefined;
  const packed = {
    hash,
    bytes: body.length,
    compressed() {
      compressed ??= compress(body, {
        chunkSize: 256 * 1024,
        // Faster than gzip at any of its levels, and smaller.
        params: { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_SIZE_HINT]: body.length },
      });
      return compressed;
    },
  };
  const isKept =
    body.length >= WORTH_ASKING && (await db.$count(responseBodies, eq(responseBodies.hash, hash))) > 0;
  // Whoever keeps it learns of an error.
  if (!isKept) packed.compressed().catch(() => undefined);
  return packed;
}

/** Writers of answers share this lock, so that no body is found and then pruned before it is pointed to. */
const LOCK = sql`hashtextextended('eod response bodies', 0)`;

/**
 * Keeps an answer inside its window's transaction. The same body again costs one small row.
 * The request's facts are the window's own, which never hold the access key. To be called after the
 * rows are merged: `loaded_at` is now, and with the locks of the days held its order is that of the loads.
 */
export async function keepAnswer(
  tx: NodePgDatabase & Preparing,
  windowId: number,
  answer: AnswerToKeep,
): Promise<void> {
  const { hash, bytes, compressed } = answer.packed;
  let isKnown = false;
  if (bytes >= WORTH_ASKING) {
    await tx.execute(sql`select pg_advisory_xact_lock_shared(${LOCK})`);
    isKnown = (await tx.$count(responseBodies, eq(responseBodies.hash, hash))) > 0;
  }
  // It may have been known before and pruned since: then it is compressed only here.
  const body = isKnown ? null : await compressed();
  await runPrepared(
    tx,
    sql`
    with locked as materialized (select pg_advisory_xact_lock_shared(${LOCK})), body as (
      insert into ${responseBodies} (hash, encoding, body, bytes)
      select ${hash}, 'br', ${body}::bytea, ${bytes}::integer from locked where not ${isKnown}::boolean
      on conflict do nothing
    )
    insert into ${responses} (run_id, window_id, operation, exchange, from_date, to_date, instruments, params, variant,
      filtered, called_on, hash, content_type, fetched_at)
    select w.run_id, w.id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments, w.params, w.variant,
      w.filtered, ${answer.calledOn}::date, ${hash}, ${answer.contentType}, ${answer.fetchedAt.toISOString()}::timestamptz
      from ${windows} w where w.id = ${windowId}`,
  );
}

/** A kept answer with its request, as read again. */
export type KeptAnswer = NonNullable<Awaited<ReturnType<typeof readKeptAnswer>>>;

/** Reads a kept answer, or null when it has been pruned. */
export async function readKeptAnswer(db: NodePgDatabase, responseId: number) {
  const [kept] = await db
    .select({
      id: responses.id,
      operation: responses.operation,
      exchange: responses.exchange,
      /** First day asked about; of a file the session. */
      from: responses.from_date,
      to: responses.to_date,
      instruments: responses.instruments,
      params: responses.params,
      variant: responses.variant,
      filtered: responses.filtered,
      hash: responses.hash,
      calledOn: responses.called_on,
      contentType: responses.content_type,
      fetchedAt: responses.fetched_at,
      encoding: responseBodies.encoding,
      body: responseBodies.body,
    })
    .from(responses)
    .innerJoin(responseBodies, eq(responseBodies.hash, responses.hash))
    .where(eq(responses.id, responseId));
  if (kept === undefined) return null;
  const { fetchedAt, encoding, body, ...answer } = kept;
  const decompress = DECOMPRESS[encoding];
  if (decompress === undefined) throw new Error(`a kept body has the unknown encoding ${encoding}`);
  return {
    ...answer,
    /** Name of the file the body is, where it is no answer of the source. */
    file: kept.params.file ?? null,
    fetchedAt: new Date(fetchedAt),
    body: await decompress(body),
  };
}

/** Rows deleted with one transaction. */
const BATCH = 1_000;

const bodySize = sql`length(${responseBodies.body})`.mapWith(Number);

/** Does no answer that meets the condition point to the body? */
function nobodyPoints(db: NodePgDatabase, condition?: SQL): SQL {
  return notExists(
    db
      .select({ id: responses.id })
      .from(responses)
      .where(and(eq(responses.hash, responseBodies.hash), condition)),
  );
}

/** What pruning answers fetched before this moment would delete; `bytes` is the compressed size of the bodies. */
export async function prunable(db: NodePgDatabase, before: Date) {
  const moment = before.toISOString();
  const [bodies] = await db
    .select({ bodies: count(), bytes: sql`coalesce(sum(${bodySize}), 0)`.mapWith(Number) })
    .from(responseBodies)
    .where(nobodyPoints(db, gte(responses.fetched_at, moment)));
  return {
    responses: await db.$count(responses, lt(responses.fetched_at, moment)),
    bodies: bodies?.bodies ?? 0,
    bytes: bodies?.bytes ?? 0,
  };
}

/** Deletes answers fetched before this moment, then the bodies nobody points to any more. */
export async function prune(database: Database, before: Date) {
  const db = database.drizzle;
  const old = db
    .select({ id: responses.id })
    .from(responses)
    .where(lt(responses.fetched_at, before.toISOString()))
    .orderBy(responses.id)
    .limit(BATCH)
    .for('update');
  let deleted = 0;
  for (let gone = BATCH; gone === BATCH; deleted += gone) {
    gone = (await db.delete(responses).where(inArray(responses.id, old))).rowCount ?? 0;
  }
  const orphans = await db.select({ hash: responseBodies.hash }).from(responseBodies).where(nobodyPoints(db));
  let bodies = 0;
  let bytes = 0;
  for (let at = 0; at < orphans.length; at += BATCH) {
    const hashes = orphans.slice(at, at + BATCH).map(({ hash }) => hash);
    for (const { size } of await deleteBodies(database, hashes)) {
      bodies += 1;
      bytes += size;
    }
  }
  return { responses: deleted, bodies, bytes };
}

/** Asks again, alone with the lock: a load may have pointed to a body since. */
function deleteBodies(database: Database, hashes: readonly string[]) {
  return transaction(database, async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(${LOCK})`);
    return tx
      .delete(responseBodies)
      .where(and(inArray(responseBodies.hash, [...hashes]), nobodyPoints(tx)))
      .returning({ size: bodySize });
  });
}

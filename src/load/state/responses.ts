import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants, gunzip } from 'node:zlib';
import {
  and,
  type Column,
  count,
  desc,
  eq,
  gte,
  inArray,
  isNull,
  lt,
  lte,
  min,
  not,
  notExists,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import { operations } from '../../operations/registry.ts';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import { responseBodies, responses } from './schema/source.ts';
import { rejects, windows } from './schema/work.ts';

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
export async function keepAnswer(tx: NodePgDatabase, windowId: number, answer: AnswerToKeep): Promise<void> {
  const { hash, bytes, compressed } = answer.packed;
  await tx.execute(sql`select pg_advisory_xact_lock_shared(${LOCK})`);
  const { run_id, id: window_id, operation, exchange, from_date, to_date } = windows;
  const { instruments, params, variant, filtered } = windows;
  const request = {
    run_id,
    window_id,
    operation,
    exchange,
    from_date,
    to_date,
    instruments,
    params,
    variant,
    filtered,
  };
  const [asked] = await tx
    .select({ request, knownBody: responseBodies.hash })
    .from(windows)
    .leftJoin(responseBodies, eq(responseBodies.hash, hash))
    .where(eq(windows.id, windowId));
  if (asked === undefined) return;
  if (asked.knownBody === null) {
    // It may have been known before and pruned since: then it is compressed only here.
    const body = await compressed();
    await tx.insert(responseBodies).values({ hash, encoding: 'br', body, bytes }).onConflictDoNothing();
  }
  await tx.insert(responses).values({
    ...asked.request,
    called_on: answer.calledOn,
    hash,
    content_type: answer.contentType,
    fetched_at: answer.fetchedAt.toISOString(),
  });
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

/** Which kept answers; nothing given means all. */
export interface AnswerFilter {
  readonly operations?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  /** Answers that were asked about at least one day from here … */
  readonly from?: string | undefined;
  /** … to here. */
  readonly to?: string | undefined;
}

/** The condition of a filter, on answers or on the windows that asked for them. */
export function matchesFilter(
  table: Record<'operation' | 'exchange' | 'from_date' | 'to_date', Column>,
  { operations, exchanges, from, to }: AnswerFilter,
): SQL | undefined {
  return and(
    operations === undefined ? undefined : inArray(table.operation, [...operations]),
    exchanges === undefined ? undefined : inArray(table.exchange, [...exchanges]),
    from === undefined ? undefined : gte(table.to_date, from),
    to === undefined ? undefined : lte(table.from_date, to),
  );
}

/** Numbers of the newest kept answers of an operation; imported files are none. */
export async function newestAnswers(db: NodePgDatabase, operation: string, limit: number): Promise<number[]> {
  const found = await db
    .select({ id: responses.id })
    .from(responses)
    .where(and(eq(responses.operation, operation), sql`not ${responses.params} ? 'file'`))
    .orderBy(desc(responses.id))
    .limit(limit);
  return found.map(({ id }) => id);
}

/** Operations and exchanges of which anything is kept. */
export function answeredPairs(db: NodePgDatabase) {
  const { operation, exchange } = responses;
  return db.selectDistinct({ operation, exchange }).from(responses).orderBy(operation, exchange);
}

/**
 * A query for the ids of the answers to replay: those that match, and every newer one about
 * the same days, because loading an older answer alone could bring back what a newer one has replaced.
 *
 * @param rejectsOnly only answers something was refused of that is open, in their own window or a replay's.
 */
export function answersToReplay(filter: AnswerFilter, rejectsOnly: boolean): SQL {
  const all = !rejectsOnly && Object.values(filter).every((value) => value === undefined);
  // All together, they need no search for newer ones.
  if (all) return sql`select id from ${responses}`;
  const undated = operations.filter((one) => one.windows.per === 'once').map((one) => one.name);
  const hasRejects = sql`exists (
    select from ${rejects} j join ${windows} w on w.id = j.window_id
     where j.resolved_at is null and (w.id = ${responses.window_id} or w.response_id = ${responses.id}))`;
  return sql`
    with recursive chosen(id) as (
      select ${responses.id} from ${responses}
       where ${and(sql`true`, matchesFilter(responses, filter), rejectsOnly ? hasRejects : undefined)}
      union
      select newer.id from chosen c join ${responses} older on older.id = c.id
        join ${responses} newer on newer.operation = older.operation and newer.exchange = older.exchange
          and newer.variant = older.variant
       where (newer.fetched_at, newer.id) > (older.fetched_at, older.id)
         and (older.operation = any(${sql.param(undated)})
           or (newer.from_date <= older.to_date and newer.to_date >= older.from_date))
         and (newer.instruments = '{}' or older.instruments = '{}' or newer.instruments && older.instruments)
    ) select id from chosen`;
}

/**
 * Answers fetched later that were asked for all of what an older one says, and were loaded without a reject;
 * the newest first.
 *
 * @param scope.anyDays whatever days they were asked about.
 * @param scope.files imported files count too. Without them there is at most one answer, the newest.
 */
export async function newerFullAnswers(
  db: NodePgDatabase,
  responseId: number,
  scope: { readonly anyDays: boolean; readonly files: boolean },
) {
  const older = alias(responses, 'older');
  const newer = alias(responses, 'newer');
  const isFile = sql<boolean>`${newer.params}->>'file' is not null`;
  const found = db
    .select({ id: newer.id, isFile })
    .from(older)
    .innerJoin(
      newer,
      and(
        eq(newer.operation, older.operation),
        eq(newer.exchange, older.exchange),
        sql`(${newer.fetched_at}, ${newer.id}) > (${older.fetched_at}, ${older.id})`,
        sql`${newer.instruments} = '{}'`,
        eq(newer.filtered, false),
        scope.anyDays
          ? undefined
          : and(lte(newer.from_date, older.from_date), gte(newer.to_date, older.to_date)),
      ),
    )
    .innerJoin(windows, eq(windows.id, newer.window_id))
    .where(
      and(
        eq(older.id, responseId),
        eq(windows.state, 'loaded'),
        eq(windows.rejected, 0),
        isNull(windows.suspicious),
        scope.files ? undefined : not(isFile),
      ),
    )
    .orderBy(desc(newer.fetched_at), desc(newer.id));
  return scope.files ? found : found.limit(1);
}

/** Answers that were copied from another database belong to the windows of the first replay that reads them. */
export async function adoptAnswers(tx: NodePgDatabase, runId: number): Promise<void> {
  await tx
    .update(responses)
    .set({ run_id: sql`${windows.run_id}`, window_id: sql`${windows.id}` })
    .from(windows)
    .where(and(eq(windows.run_id, runId), eq(windows.response_id, responses.id), eq(responses.window_id, 0)));
}

/** Windows that loaded, or replayed, a kept answer. */
export async function windowsOfAnswer(db: NodePgDatabase, responseId: number): Promise<number[]> {
  const found = await db
    .select({ id: responses.window_id })
    .from(responses)
    .where(eq(responses.id, responseId))
    .union(db.select({ id: windows.id }).from(windows).where(eq(windows.response_id, responseId)));
  return found.map(({ id }) => id);
}

/**
 * When a replay came to the first answer of an operation and exchange that was loaded at this moment or
 * later; null when it has not come to one.
 */
export async function replayReached(
  db: NodePgDatabase,
  asked: {
    readonly runId: number;
    readonly operation: string;
    readonly exchange: string;
    readonly loadedAt: string;
  },
): Promise<string | null> {
  const [found] = await db
    .select({ at: min(windows.started_at) })
    .from(windows)
    .innerJoin(responses, eq(responses.id, windows.response_id))
    .where(
      and(
        eq(windows.run_id, asked.runId),
        eq(windows.operation, asked.operation),
        eq(windows.exchange, asked.exchange),
        gte(responses.loaded_at, asked.loadedAt),
      ),
    );
  return found?.at ?? null;
}

/** Answers copied with one transaction. */
const COPIED = 500;

/**
 * Copies kept answers of another database into this one, with the moments they were loaded. Answers
 * that are here already stay as they are: after an interruption it can simply be done again. What
 * was copied belongs to no window (number 0) until a replay reads it.
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
        // As a document, because a database of another version may lack columns, or have more.
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
  // One at a time: each may be as large as an answer can be.
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

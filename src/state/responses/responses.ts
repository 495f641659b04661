import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants, gunzip } from 'node:zlib';
import { and, eq, notExists, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Position } from '../../core/position.ts';
import { sha256 } from '../../core/sha256.ts';
import type { Database } from '../../postgres/database.ts';
import { type Preparing, statement } from '../../postgres/prepared.ts';
import { lockUntilCommit, transaction } from '../../postgres/transaction.ts';
import { isAnyOf, positionText } from '../schema/columns.ts';
import { responseBodies, responses } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import { noteUnreadableResponse } from '../windows/windows.ts';
import { type FactValues, factValues, type ResponseFact } from './response-facts.ts';

const compress = promisify(brotliCompress);

/** How a body of each encoding is decompressed. Older databases, from which responses may be copied, have gzip. */
const DECOMPRESS: Readonly<Record<string, (body: Buffer) => Promise<Buffer>>> = {
  br: promisify(brotliDecompress),
  gzip: promisify(gunzip),
};

/** A body ready to be kept, named by the SHA-256 of its uncompressed bytes. */
interface PackedBody {
  readonly hash: string;
  /** Length before compression. */
  readonly bytes: number;
  /** True if it is kept already, as far as is known. It may have been pruned since, or its transaction rolled back. */
  mayBeKept: boolean;
  /** The body, compressed with brotli when this is first called. */
  readonly compressed: () => Promise<Buffer>;
}

/** A body that another response has, by its name. */
export const keptBody = (hash: string): PackedBody => ({
  hash,
  bytes: 0,
  mayBeKept: true,
  compressed: () => Promise.reject(new Error(`the body ${hash} is not kept any more`)),
});

/** A response or file that was received, with what its window does not say about it. */
export interface ResponseToKeep {
  /** Its body; null if it was computed from what is stored, and is computed anew when that changes. */
  readonly packed: PackedBody | null;
  readonly contentType: string | null;
  /** Day of the call in the source's zone. */
  readonly calledOn: string;
  /** The symbols that the rows of a file without tickers were given, by scrip code. */
  readonly symbols?: Readonly<Record<string, string>> | null;
}

/** Compressing a shorter body takes less time than a query for whether it is kept already. */
const WORTH_A_QUERY = 64 * 1024;

/**
 * Makes a body ready to be kept. Call it before the transaction that keeps it: compression of a body that is not kept
 * yet starts at once in zlib's threads. Of a body that is kept already, only the name is needed.
 */
export async function packBody(db: NodePgDatabase, body: Buffer, hash = sha256(body)): Promise<PackedBody> {
  const mayBeKept =
    body.length >= WORTH_A_QUERY && (await db.$count(responseBodies, eq(responseBodies.hash, hash))) > 0;
  let compressed: Promise<Buffer> | undefined;
  const packed = {
    hash,
    bytes: body.length,
    mayBeKept,
    compressed() {
      compressed ??= compress(body, {
        chunkSize: 256 * 1024,
        // Faster than gzip at any of its levels, and smaller.
        params: { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_SIZE_HINT]: body.length },
      });
      return compressed;
    },
  };
  // The caller that keeps it gets the error.
  if (!mayBeKept) packed.compressed().catch(() => undefined);
  return packed;
}

/** Writers of responses share this lock, so that no body is found and then pruned before a response refers to it. */
const LOCK = 'eod response bodies';

/** Takes the lock of a writer until the transaction ends. */
const lockBodies = (tx: NodePgDatabase) =>
  tx.execute(sql`select pg_advisory_xact_lock_shared(hashtextextended(${LOCK}, 0))`);

/**
 * Notes a response inside its window's transaction, and keeps its body. A body that is kept already costs only one
 * small row. The request is described by the window's columns, which never hold the access key.
 */
export async function keepResponse(
  tx: NodePgDatabase & Preparing,
  windowId: number,
  {
    packed,
    fact,
    fetchedAt,
    symbols = null,
    ...noted
  }: ResponseToKeep & {
    readonly position: Position;
    /** The time of the call. */
    readonly fetchedAt: Date;
    readonly fact: ResponseFact;
  },
): Promise<void> {
  const { hash, bytes } = packed ?? { hash: null, bytes: 0 };
  // If it was pruned since `packBody` looked, it is compressed only here.
  const isKnown = packed === null || (packed.mayBeKept && (await isKept(tx, packed.hash)));
  const body = isKnown ? null : await packed.compressed();
  // All parts of a file have the same body, which is sent once.
  if (packed !== null) packed.mayBeKept = true;
  await insertResponse(tx, {
    ...noted,
    ...factValues(fact),
    windowId,
    fetchedAt: fetchedAt.toISOString(),
    symbols: symbols === null ? null : JSON.stringify(symbols),
    hash,
    bytes,
    body,
    isKnown,
    lock: LOCK,
  });
}

/** True if a body is kept. It stays kept until the transaction ends. */
async function isKept(tx: NodePgDatabase, hash: string): Promise<boolean> {
  // A statement of its own, because the next one has to see what was committed before the lock was free.
  await lockBodies(tx);
  return (await tx.$count(responseBodies, eq(responseBodies.hash, hash))) > 0;
}

/**
 * Inserts a response of a window, and its body unless that `isKnown` to be kept. At a position that has a response already,
 * what it said is replaced.
 */
const insertResponse = statement<
  FactValues & {
    readonly position: Position;
    readonly windowId: number;
    readonly calledOn: string;
    readonly hash: string | null;
    readonly body: Buffer | null;
    readonly bytes: number;
    readonly isKnown: boolean;
    readonly contentType: string | null;
    readonly fetchedAt: string;
    readonly symbols: string | null;
    readonly lock: typeof LOCK;
  },
  Record<string, unknown>
>`
  with locked as materialized (
    select pg_advisory_xact_lock_shared(hashtextextended(${'lock'}::text, 0))
  ), body as (
    insert into ${responseBodies} (hash, encoding, body, bytes)
    select ${'hash'}::text, 'br', ${'body'}::bytea, ${'bytes'}::integer from locked where not ${'isKnown'}::boolean
    on conflict do nothing
  )
  insert into ${responses} as stored (position, run_id, window_id, operation, exchange, from_date, to_date, instruments, params,
    variant, is_filtered, called_on, hash, content_type, fetched_at, symbols, is_believed,
    said, records, diagnostic, entries, is_suspicious)
  select ${'position'}::timestamptz, w.run_id, w.id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments, w.params,
         w.variant, w.is_filtered, ${'calledOn'}::date, ${'hash'}::text, ${'contentType'}, ${'fetchedAt'}::timestamptz,
         ${'symbols'}::jsonb, ${'resolvesRejects'}::boolean,
         ${'said'}::text, ${'records'}::integer, ${'diagnostic'}::text, ${'entries'}::jsonb, ${'isSuspicious'}::boolean
    from ${windows} w where w.id = ${'windowId'}::bigint
  on conflict (position) do update
     set said = excluded.said, records = excluded.records, diagnostic = excluded.diagnostic, entries = excluded.entries,
         is_suspicious = excluded.is_suspicious, is_believed = stored.is_believed or excluded.is_believed`;

/**
 * Keeps the body of a response that cannot be read, for people to look at. It belongs to no kept response, so that no
 * replay meets it: only its window names it.
 */
export async function keepUnreadableResponse(
  database: Database,
  windowId: number,
  packed: PackedBody,
): Promise<void> {
  const body = await packed.compressed();
  await transaction(database, async (tx) => {
    await lockBodies(tx);
    const { hash, bytes } = packed;
    await tx.insert(responseBodies).values({ hash, encoding: 'br', body, bytes }).onConflictDoNothing();
    await noteUnreadableResponse(tx, windowId, hash);
  });
}

/** A kept response with its request and its uncompressed body. */
export type KeptResponse = NonNullable<Awaited<ReturnType<typeof readKeptResponse>>>;

/** Reads a kept response; null if it has no body. */
export async function readKeptResponse(db: NodePgDatabase, responseId: number) {
  const [kept] = await db
    .select({
      id: responses.id,
      position: positionText(responses.position),
      operation: responses.operation,
      exchange: responses.exchange,
      /** First day requested; of a file, that of the part. */
      from: responses.from_date,
      to: responses.to_date,
      instruments: responses.instruments,
      params: responses.params,
      variant: responses.variant,
      filtered: responses.is_filtered,
      hash: responseBodies.hash,
      calledOn: responses.called_on,
      contentType: responses.content_type,
      symbols: responses.symbols,
      fetchedAt: responses.fetched_at,
      encoding: responseBodies.encoding,
      body: responseBodies.body,
    })
    .from(responses)
    .innerJoin(responseBodies, eq(responseBodies.hash, responses.hash))
    .where(eq(responses.id, responseId));
  if (kept === undefined) return null;
  const { fetchedAt, encoding, body, ...response } = kept;
  const decompress = DECOMPRESS[encoding];
  if (decompress === undefined) throw new Error(`a kept body has the unknown encoding ${encoding}`);
  return {
    ...response,
    /** Name of the imported file that the body is; null if it is a response. */
    file: kept.params.file ?? null,
    fetchedAt: new Date(fetchedAt),
    body: await decompress(body),
  };
}

/** The condition that neither a response nor a window, whose response could not be read, has the body. */
function isUnused(db: NodePgDatabase): SQL | undefined {
  const { hash } = responseBodies;
  return and(
    notExists(db.select({ id: responses.id }).from(responses).where(eq(responses.hash, hash))),
    notExists(db.select({ id: windows.id }).from(windows).where(eq(windows.refused_hash, hash))),
  );
}

/**
 * Deletes the bodies of responses that could not be read, once their windows are deleted. Those of all others are kept:
 * rows follow from them.
 *
 * @param dryRun deletes nothing.
 * @returns how many, and their compressed size.
 */
export async function pruneBodies(
  database: Database,
  dryRun: boolean,
): Promise<{ readonly bodies: number; readonly bytes: number }> {
  const { hash, body } = responseBodies;
  const size = sql`length(${body})`.mapWith(Number);
  const db = database.drizzle;
  const unused = await db.select({ hash, size }).from(responseBodies).where(isUnused(db));
  const hashes = unused.map((body) => body.hash);
  const pruned = dryRun
    ? unused
    : await transaction(database, async (tx) => {
        // Checked again with the exclusive lock held, because a load may have used a body since.
        await lockUntilCommit(tx, LOCK);
        const isPruned = and(isAnyOf(hash, hashes), isUnused(tx));
        return tx.delete(responseBodies).where(isPruned).returning({ size });
      });
  return { bodies: pruned.length, bytes: pruned.reduce((sum, body) => sum + body.size, 0) };
}

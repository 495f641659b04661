import {
  and,
  asc,
  type Column,
  count,
  desc,
  eq,
  inArray,
  isNotNull,
  isNull,
  ne,
  notExists,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import { operationNamed } from '../../operations/registry.ts';
import { type AnswerFilter, matchesFilter } from './responses.ts';
import { responses } from './schema/source.ts';
import { rejects, windows } from './schema/work.ts';

const now = sql`clock_timestamp()`;

/** A record that did not pass, in the order of the answer. */
export interface RejectEntry {
  readonly position: number;
  readonly record: unknown;
  readonly problems: (typeof rejects.$inferSelect)['problems'];
}

/** A load as far as its rejects, and older ones, are concerned. */
interface RejectsOfLoad {
  readonly runId: number;
  readonly windowId: number;
  readonly operation: string;
  readonly exchange: string;
  readonly rejects: readonly RejectEntry[];
  /** Windows whose open rejects are among the records of this load, read once more. */
  readonly rereads?: readonly number[];
  readonly outcome: { readonly state: 'loaded' | 'empty' | 'failed' };
}

/**
 * Keeps the refused records of a load, inside its transaction, and ends open rejects that it makes out
 * of date.
 *
 * A newer answer that loads and covers the question of an older one replaces it: the open rejects of the
 * older one are resolved, and what is still refused is among those of the newer one. Where
 * the very same records are read once more (`rereads`), those that pass now are resolved and those
 * that do not stay open under their number, with today's problems.
 */
export async function writeRejects(tx: NodePgDatabase, load: RejectsOfLoad): Promise<void> {
  if (load.outcome.state === 'loaded') await resolveOutdated(tx, load);
  await insertRejects(tx, load, await updateReread(tx, load));
}

async function resolveOutdated(tx: NodePgDatabase, load: RejectsOfLoad): Promise<void> {
  const dated = operationNamed(load.operation).windows.per !== 'once';
  const newer = alias(windows, 'newer');
  const older = alias(windows, 'older');
  const reject = alias(rejects, 'reject');
  const outdated = tx
    .select({ id: reject.id })
    .from(newer)
    .innerJoin(
      reject,
      and(
        eq(reject.operation, newer.operation),
        eq(reject.exchange, newer.exchange),
        isNull(reject.resolved_at),
      ),
    )
    .innerJoin(older, eq(older.id, reject.window_id))
    .where(
      and(
        eq(newer.id, load.windowId),
        eq(newer.filtered, false),
        ne(older.id, newer.id),
        sql`${older.id} <> all(${sql.param(load.rereads ?? [])}::bigint[])`,
        eq(older.variant, newer.variant),
        sql`(${newer.instruments} = '{}' or (${older.instruments} <> '{}' and ${older.instruments} <@ ${newer.instruments}))`,
        dated
          ? sql`${older.from_date} >= ${newer.from_date} and ${older.to_date} <= ${newer.to_date}`
          : undefined,
        sql`${firstLoadedAt(older, reject.rejected_at)} <= ${firstLoadedAt(newer, sql`clock_timestamp()`)}`,
      ),
    )
    .orderBy(reject.id)
    .for('update', { of: reject });
  await tx.update(rejects).set({ resolved_at: now }).where(inArray(rejects.id, outdated));
}

/** When the answer of a window was first loaded: of a replay's window that is long ago. */
function firstLoadedAt(
  window: { readonly id: Column; readonly response_id: Column },
  otherwise: Column | SQL,
) {
  return sql`coalesce((
    select kept.loaded_at from ${responses} kept
     where kept.id = coalesce(${window.response_id}, (
       select min(own.id) from ${responses} own where own.window_id = ${window.id}))), ${otherwise})`;
}

/** @returns the rejects that are to be written anew. */
async function updateReread(tx: NodePgDatabase, load: RejectsOfLoad): Promise<readonly RejectEntry[]> {
  const { rereads = [], outcome } = load;
  if (rereads.length === 0) return load.rejects;
  const open = await tx
    .select({ id: rejects.id, position: rejects.position })
    .from(rejects)
    .where(and(inArray(rejects.window_id, [...rereads]), isNull(rejects.resolved_at)))
    .orderBy(rejects.id)
    .for('update');
  const still = new Map(load.rejects.map((reject) => [reject.position, reject]));
  // Of a window that failed nothing was stored: records that pass now are not resolved either.
  const passed = outcome.state === 'failed' ? [] : open.filter((row) => !still.has(row.position));
  await tx
    .update(rejects)
    .set({ resolved_at: now })
    .where(hasId(passed.map((row) => row.id)));
  const kept = open.filter((row) => still.has(row.position));
  const problems = JSON.stringify(
    kept.map((row) => ({ id: row.id, problems: still.get(row.position)?.problems })),
  );
  await tx
    .update(rejects)
    .set({ problems: sql`today.problems` })
    .from(sql`jsonb_to_recordset(${problems}::jsonb) as today(id bigint, problems jsonb)`)
    .where(sql`${rejects.id} = today.id and ${rejects.problems} <> today.problems`);
  const known = new Set(kept.map((row) => row.position));
  return load.rejects.filter((reject) => !known.has(reject.position));
}

/** One statement carries at most about this many characters of records. */
const STATEMENT_CHARACTERS = 4 * 1024 * 1024;

async function insertRejects(
  tx: NodePgDatabase,
  { runId, windowId, operation, exchange }: RejectsOfLoad,
  entries: readonly RejectEntry[],
): Promise<void> {
  let records: string[] = [];
  let characters = 0;
  for (const [place, { position, record, problems }] of entries.entries()) {
    const text = JSON.stringify({ position, record: record ?? null, problems });
    records.push(text);
    characters += text.length;
    if (characters < STATEMENT_CHARACTERS && place < entries.length - 1) continue;
    await tx.execute(sql`
      insert into ${rejects} (run_id, window_id, operation, exchange, position, record, problems)
      select ${runId}, ${windowId}, ${operation}, ${exchange}, r.position, r.record, r.problems
        from jsonb_to_recordset(${`[${records.join(',')}]`}::jsonb)
          as r(position integer, record jsonb, problems jsonb)`);
    records = [];
    characters = 0;
  }
}

/** Is the reject one of these? As one parameter, since there may be any number of them. */
const hasId = (ids: readonly number[]) => sql`${rejects.id} = any(${sql.param(ids)}::bigint[])`;

/** Which open rejects; nothing given means all. */
export interface RejectFilter {
  readonly ids?: readonly number[];
  readonly operations?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
}

function isOpen({ ids, operations, exchanges }: RejectFilter): SQL | undefined {
  return and(
    isNull(rejects.resolved_at),
    ids === undefined ? undefined : hasId(ids),
    operations === undefined ? undefined : inArray(rejects.operation, [...operations]),
    exchanges === undefined ? undefined : inArray(rejects.exchange, [...exchanges]),
  );
}

/** A refused record as a list shows it. */
export type OpenReject = Awaited<ReturnType<typeof openRejects>>[number];

const asOpenReject = {
  id: rejects.id,
  operation: rejects.operation,
  exchange: rejects.exchange,
  from: windows.from_date,
  to: windows.to_date,
  /** Place in the answer or file, from 0. */
  position: rejects.position,
  problems: rejects.problems,
  runId: rejects.run_id,
  windowId: rejects.window_id,
  rejectedAt: sql<string>`to_json(${rejects.rejected_at})#>>'{}'`,
};

/** Rejects that are not resolved, the newest first. */
export async function openRejects(db: NodePgDatabase, filter: RejectFilter, limit: number) {
  return db
    .select(asOpenReject)
    .from(rejects)
    .innerJoin(windows, eq(windows.id, rejects.window_id))
    .where(isOpen(filter))
    .orderBy(desc(rejects.id))
    .limit(limit);
}

/** Numbers of open rejects. */
export async function openRejectIds(db: NodePgDatabase, filter: RejectFilter): Promise<number[]> {
  const found = await db
    .select({ id: rejects.id })
    .from(rejects)
    .where(isOpen(filter))
    .orderBy(asc(rejects.id));
  return found.map((row) => row.id);
}

/** How many rejects of each operation and exchange are open. */
export function countOpenRejects(db: NodePgDatabase) {
  const { operation, exchange } = rejects;
  return db
    .select({ operation, exchange, rejects: count() })
    .from(rejects)
    .where(isOpen({}))
    .groupBy(operation, exchange);
}

/** One refused record with all that is known of it. */
export type RejectDetail = NonNullable<Awaited<ReturnType<typeof readReject>>>;

// Drizzle would read a record that is a JSON text, as "12", once more, as 12.
const recordText = sql<string | null>`${rejects.record}::text`;
const recordOf = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

/** One reject, or null when there is none of this number. */
export async function readReject(db: NodePgDatabase, id: number) {
  const [found] = await db
    .select({
      ...asOpenReject,
      record: recordText,
      instruments: windows.instruments,
      params: windows.params,
      resolvedAt: sql<string | null>`to_json(${rejects.resolved_at})#>>'{}'`,
      /** The imported file it stands in, or null where it is of an answer. */
      file: windows.source_file,
      windowResponseId: windows.response_id,
    })
    .from(rejects)
    .innerJoin(windows, eq(windows.id, rejects.window_id))
    .where(eq(rejects.id, id));
  if (found === undefined) return null;
  const { windowResponseId, ...reject } = found;
  const own = eq(responses.window_id, reject.windowId);
  const [kept] = await db
    .select({ id: responses.id })
    .from(responses)
    .where(windowResponseId === null ? own : or(own, eq(responses.id, windowResponseId)))
    .limit(1);
  /** Of the kept answer it stands in; null where that is not kept. */
  const responseId = kept?.id ?? null;
  return { ...reject, record: recordOf(reject.record), responseId };
}

/** The open rejects of a window, in the order of its answer. */
export async function openRejectsOfWindow(db: NodePgDatabase, windowId: number) {
  const found = await db
    .select({
      position: rejects.position,
      record: recordText,
      problems: rejects.problems,
      rejectedAt: rejects.rejected_at,
    })
    .from(rejects)
    .where(and(eq(rejects.window_id, windowId), isNull(rejects.resolved_at)))
    .orderBy(rejects.position);
  return found.map(({ record, rejectedAt, ...reject }) => ({
    ...reject,
    record: recordOf(record),
    rejectedAt: new Date(rejectedAt),
  }));
}

/** Rejects of an imported file that is not kept: only importing it again can resolve them. */
export type UnkeptFile = Awaited<ReturnType<typeof unkeptFiles>>[number];

/** The files among those of these rejects that cannot be read again from what is kept, by name. */
export async function unkeptFiles(db: NodePgDatabase, ids: readonly number[]) {
  const kept = db
    .select({ id: responses.id })
    .from(responses)
    .where(or(eq(responses.window_id, windows.id), eq(responses.id, windows.response_id)));
  return db
    .select({ file: sql<string>`${windows.source_file}`, rejects: count() })
    .from(rejects)
    .innerJoin(windows, eq(windows.id, rejects.window_id))
    .where(and(hasId(ids), isNotNull(windows.source_file), notExists(kept)))
    .groupBy(windows.source_file)
    .orderBy(windows.source_file);
}

/**
 * A query for the ids of windows that have open rejects and whose answer is not kept. Windows of files
 * are not among them: their rows are read by the file's header, so only another import can read them again.
 */
export function windowsWithUnkeptRejects(filter: AnswerFilter): SQL {
  return sql`
    select ${windows.id} from ${windows}
     where ${and(isNull(windows.source_file), matchesFilter(windows, filter))}
       and ${windows.id} in (select window_id from ${rejects} where resolved_at is null)
       and not exists (
         select from ${responses} k where k.window_id = ${windows.id} or k.id = ${windows.response_id})`;
}

import { and, asc, count, desc, eq, gte, inArray, isNull, lt, lte, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import type { Place } from '../../core/place.ts';
import { sha256 } from '../../core/sha256.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import type { Preparing } from '../database/prepared.ts';
import { locksOn, takeLocks } from './loads/locks.ts';
import { rejectedRecords, rejects, resolving } from './schema/load-results.ts';
import { answers } from './schema/source-tables.ts';
import { windows } from './schema/work.ts';

/** A rejected record of an answer. */
export interface RejectEntry {
  readonly position: number;
  readonly record: unknown;
  readonly problems: (typeof rejects.$inferSelect)['problems'];
  /** The day that it names, if that can be read. */
  readonly day?: string;
  /** Whether it is of a day, quarter or exchange that was not requested. */
  readonly stray?: boolean;
}

/** What is needed of a load to store its rejects. */
interface RejectsOfLoad extends Pair {
  readonly windowId: number;
  readonly place: Place;
  readonly runId: number;
  readonly rejects: readonly RejectEntry[];
  /** Is it an answer that was stored before, or what is left of one? */
  readonly isReadAgain: boolean;
  /** Were its other records stored? */
  readonly resolvesRejects: boolean;
  /** If it is read again for some of its days only: these. */
  readonly within?: DayRange | null;
  /** What it was asked for, if not what its window says. */
  readonly asked?: Asked;
}

/** What an answer was asked for. */
interface Asked extends DayRange {
  readonly instruments: readonly string[];
  readonly variant: string;
}

/**
 * Stores the rejected records of a load, inside its transaction: each once per question, however often it is sent. If the
 * answer is read again, those of its records that are not rejected any more are resolved. Whether a later answer resolves a
 * reject is not stored here but asked of `etl.answers` (see the view `etl.rejects`), so neither has to wait for the other.
 */
export async function writeRejects(tx: NodePgDatabase & Preparing, load: RejectsOfLoad): Promise<void> {
  const fingerprints = load.rejects.length === 0 ? [] : await noteSightings(tx, load);
  if (load.isReadAgain && load.resolvesRejects) await settlePassed(tx, load, fingerprints);
}

/** Has one of these operations an open reject? */
export async function hasOpenRejects(
  tx: NodePgDatabase,
  { operations, exchange }: { readonly operations: readonly string[]; readonly exchange: string },
): Promise<boolean> {
  const open = tx
    .select({ id: rejects.id })
    .from(rejects)
    .where(isOpen({ operations, exchanges: [exchange] }));
  return (await open.limit(1)).length > 0;
}

/** Do the days of a question, or of a file, say which day a reject is about? */
const isDated = (name: string) => dataSetNamed(name).request.dates !== 'none';

/** Identifies a record and its question: a record that names no instrument is about the one that was asked for. */
function fingerprintOf({ operation }: RejectsOfLoad, asked: Asked, { record, day }: RejectEntry): string {
  const { per } = dataSetNamed(operation).windows;
  const days = isDated(operation) ? [day ?? asked.from, day ?? asked.to] : [];
  const scope = [asked.variant, per === 'instrument' ? asked.instruments : [], days];
  return sha256(JSON.stringify([scope, record], sortedKeys));
}

/** For JSON.stringify. The order must not matter, because jsonb does not keep it. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** One statement carries at most about this many characters of records. */
const STATEMENT_CHARACTERS = 4 * 1024 * 1024;

/**
 * Notes that an answer contains records: known rejects are extended to its place, forward or back, and others inserted. A
 * record that came again after an answer had resolved it is another reject. An answer that is loaded late does not split
 * one, though it may stand between two answers that had the record: what is open, and where it was seen last, does not
 * depend on the order of loads; how often a resolved record is listed does.
 *
 * @returns the fingerprints of the records.
 */
async function noteSightings(tx: NodePgDatabase & Preparing, load: RejectsOfLoad): Promise<string[]> {
  const asked = load.asked ?? (await askedByWindow(tx, load.windowId));
  if (asked === undefined) return [];
  const present = new Map<string, RejectEntry>();
  for (const entry of load.rejects) {
    const fingerprint = fingerprintOf(load, asked, entry);
    // An answer may contain the same record twice.
    if (!present.has(fingerprint)) present.set(fingerprint, entry);
  }
  await lockRejects(tx, load, [{ asked, rejects: load.rejects }]);
  let records: string[] = [];
  let characters = 0;
  for (const [fingerprint, { position, record = null, problems, day, stray = false }] of present) {
    const text = JSON.stringify({ position, day, fingerprint, record, problems, stray });
    records.push(text);
    characters += text.length;
    if (characters < STATEMENT_CHARACTERS) continue;
    await extendOrInsert(tx, load, asked, records);
    records = [];
    characters = 0;
  }
  if (records.length > 0) await extendOrInsert(tx, load, asked, records);
  return [...present.keys()];
}

/** Is there an answer that resolves the record `r`, before a place? */
const isResolvedBefore = (r: string, place: string) =>
  sql.raw(`exists (select ${resolving(r)} and a.place < ${place})`);
const isResolved = isResolvedBefore('r', "'infinity'");

/** Is the answer that had the record `r` last read again as `s`, after it had passed once, and nothing else resolves it? */
const failsAgain = sql`(r.settled_at is not null and s.last_seen_at = r.last_seen_at and not ${isResolved} and not exists (
  select from ${rejectedRecords} n where n.fingerprint = r.fingerprint and n.operation = r.operation
     and n.exchange = r.exchange and n.last_seen_at > r.last_seen_at))`;

/**
 * Takes the locks for rejected records of some answers of an operation, until the transaction ends: of two loads with the
 * same record, each finds what the other one has inserted. Whoever writes those of several answers takes all locks first.
 */
export async function lockRejects(
  tx: Preparing,
  { operation, exchange }: { readonly operation: string; readonly exchange: string },
  sent: readonly { readonly asked: Pick<Asked, 'from'>; readonly rejects: readonly RejectEntry[] }[],
): Promise<void> {
  const days = sent.flatMap(({ asked, rejects: some }) => some.map(({ day }) => day ?? asked.from));
  await takeLocks(tx, locksOn(`eod|rejects|${operation}|${exchange}`, isDated(operation) ? days : null));
}

async function askedByWindow(tx: NodePgDatabase, windowId: number): Promise<Asked | undefined> {
  const { from_date, to_date, instruments, variant } = windows;
  const [asked] = await tx
    .select({ from: from_date, to: to_date, instruments, variant })
    .from(windows)
    .where(eq(windows.id, windowId));
  return asked;
}

async function extendOrInsert(
  tx: NodePgDatabase,
  { runId, windowId, operation, exchange, place }: RejectsOfLoad,
  asked: Asked,
  records: readonly string[],
): Promise<void> {
  await tx.execute(sql`
    with sent as materialized (
      select ${runId}::bigint as run_id, ${windowId}::bigint as window_id, ${operation}::text as operation, ${exchange}::text as exchange,
             sent.position, coalesce(day, ${asked.from}) as from_date, coalesce(day, ${asked.to}) as to_date,
             ${sql.param(asked.instruments)}::text[] as instruments, ${asked.variant}::text as variant, ${isDated(operation)}::boolean as is_dated,
             fingerprint, record, problems, stray as is_stray, ${place}::timestamptz as first_seen_at, ${place}::timestamptz as last_seen_at
        from jsonb_to_recordset(${`[${records.join(',')}]`}::jsonb) as sent(
          position integer, day date, fingerprint text, record jsonb, problems jsonb, stray boolean)
    ), placed as materialized (
      select s.*, known.id as known
        from sent s left join lateral (
          select r.id
            from ${rejectedRecords} r, lateral (select s.last_seen_at < r.first_seen_at as is_before, s.last_seen_at > r.last_seen_at as is_after) seen
           where r.operation = s.operation and r.exchange = s.exchange and r.fingerprint = s.fingerprint
             and case when is_before then not ${isResolvedBefore('s', 'r.first_seen_at')}
                      when is_after then coalesce(r.settled_at > s.last_seen_at, true) and not ${isResolvedBefore('r', 's.last_seen_at')}
                      else true end
           order by is_before or is_after, is_after, case when is_before then r.first_seen_at end, r.last_seen_at desc limit 1
        ) known on true
    ), locked as materialized (
      -- In the order of the numbers, as everywhere, so that two writers cannot deadlock.
      select id from ${rejectedRecords} where id in (select known from placed) order by id for update
    ), moved as (
      update ${rejectedRecords} r
         set (run_id, window_id, position, from_date, to_date, instruments, variant, problems, is_stray, last_seen_at, settled_at)
             = row(s.run_id, s.window_id, s.position, s.from_date, s.to_date, s.instruments, s.variant, s.problems, s.is_stray, s.last_seen_at, null)
        from placed s join locked on locked.id = s.known
       where r.id = s.known and s.last_seen_at > r.last_seen_at
    ), kept as (
      update ${rejectedRecords} r
         set first_seen_at = least(r.first_seen_at, s.first_seen_at), problems = s.problems, is_stray = s.is_stray,
             settled_at = case when ${failsAgain} then null else r.settled_at end
        from placed s join locked on locked.id = s.known
       where r.id = s.known and s.last_seen_at <= r.last_seen_at
         and (s.first_seen_at < r.first_seen_at or s.problems <> r.problems or s.is_stray <> r.is_stray or ${failsAgain})
    )
    insert into ${rejectedRecords} (run_id, window_id, operation, exchange, position, from_date, to_date, instruments, variant,
      is_dated, fingerprint, record, problems, is_stray, first_seen_at, last_seen_at)
    select run_id, window_id, operation, exchange, position, from_date, to_date, instruments, variant,
           is_dated, fingerprint, record, problems, is_stray, first_seen_at, last_seen_at
      from placed where known is null order by fingerprint`);
}

/** Resolves the open rejects that an answer had when it was read before, and has no longer. */
async function settlePassed(
  tx: NodePgDatabase,
  { operation, exchange, place, within = null }: RejectsOfLoad,
  present: readonly string[],
): Promise<void> {
  await tx.execute(sql`
    with passed as materialized (
      select r.id from ${rejectedRecords} r
       where r.last_seen_at = ${place}::timestamptz and r.operation = ${operation} and r.exchange = ${exchange} and r.settled_at is null
         and r.fingerprint <> all(${sql.param(present)}::text[]) and not ${isResolved}
         ${within === null ? sql`` : sql`and r.is_dated and r.from_date >= ${within.from} and r.to_date <= ${within.to}`} order by r.id for update
    )
    update ${rejectedRecords} r set settled_at = clock_timestamp() from passed where r.id = passed.id`);
}

/** Forgets that these answers have resolved rejects: as they are read now, they cannot. */
export async function forgetResolvedBy(
  tx: NodePgDatabase,
  { operations, exchange }: { readonly operations: readonly string[]; readonly exchange: string },
  places: readonly Place[],
): Promise<void> {
  const { settled_at } = rejectedRecords;
  await tx
    .update(rejectedRecords)
    .set({ settled_at: null })
    .where(
      and(
        inArray(rejectedRecords.operation, [...operations]),
        eq(rejectedRecords.exchange, exchange),
        sql`${settled_at} = any(${sql.param(places)}::timestamptz[])`,
      ),
    );
}

/** Notes which rejects later answers have resolved, so that these are not looked for at every question. */
export async function settleRejects(db: NodePgDatabase): Promise<void> {
  await db.execute(sql`
    with unsettled as materialized (
      -- One that a load is about to move forward is left to the next call.
      select r.id, (select min(a.place) ${sql.raw(resolving('r'))}) as resolved_at
        from ${rejectedRecords} r where r.settled_at is null order by r.id for update skip locked
    )
    update ${rejectedRecords} r set settled_at = u.resolved_at from unsettled u where r.id = u.id and u.resolved_at is not null`);
}

/**
 * Deletes rejects that were resolved before this moment. Open ones are kept, because nothing else has their records.
 *
 * @param dryRun deletes nothing.
 * @returns how many.
 */
export async function pruneRejects(db: NodePgDatabase, before: Date, dryRun: boolean): Promise<number> {
  const isOld = lt(rejects.resolved_at, before.toISOString());
  if (dryRun) return db.$count(rejects, isOld);
  const old = db.select({ id: rejects.id }).from(rejects).where(isOld);
  return (await db.delete(rejectedRecords).where(inArray(rejectedRecords.id, old))).rowCount ?? 0;
}

/** The condition that a reject is one of these. One array parameter, because there may be any number of ids. */
const hasId = (ids: readonly number[]) => sql`${rejects.id} = any(${sql.param(ids)}::bigint[])`;

/** Which open rejects; nothing given means all. */
export interface RejectFilter {
  readonly ids?: readonly number[];
  readonly operations?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  /** Only rejects of this day, or of days that include it. */
  readonly day?: string | undefined;
}

function isOpen({ ids, operations, exchanges, day }: RejectFilter): SQL | undefined {
  return and(
    isNull(rejects.resolved_at),
    ids === undefined ? undefined : hasId(ids),
    operations === undefined ? undefined : inArray(rejects.operation, [...operations]),
    exchanges === undefined ? undefined : inArray(rejects.exchange, [...exchanges]),
    day === undefined ? undefined : and(lte(rejects.from_date, day), gte(rejects.to_date, day)),
  );
}

/** A rejected record as a list shows it. */
export type OpenReject = Awaited<ReturnType<typeof openRejects>>[number];

const asOpenReject = {
  id: rejects.id,
  operation: rejects.operation,
  exchange: rejects.exchange,
  from: rejects.from_date,
  to: rejects.to_date,
  /** Position in the answer or file, from 0. */
  position: rejects.position,
  problems: rejects.problems,
  runId: rejects.run_id,
  windowId: rejects.window_id,
  firstSeenAt: sql<string>`to_json(${rejects.first_seen_at})#>>'{}'`,
  lastSeenAt: sql<string>`to_json(${rejects.last_seen_at})#>>'{}'`,
};

/** Rejects that are not resolved, the newest first. */
export async function openRejects(db: NodePgDatabase, filter: RejectFilter, limit: number) {
  return db
    .select(asOpenReject)
    .from(rejects)
    .where(isOpen(filter))
    .orderBy(desc(rejects.window_id), desc(rejects.position), desc(rejects.id))
    .limit(limit);
}

/** Ids of open rejects. */
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

/** A rejected record with everything that is known about it. */
export type RejectDetail = NonNullable<Awaited<ReturnType<typeof readReject>>>;

// As text, because drizzle parses a jsonb string value such as "12" a second time, to 12.
const recordText = sql<string | null>`${rejects.record}::text`;
const recordOf = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

/** A reject; null if there is none with this id. */
export async function readReject(db: NodePgDatabase, id: number) {
  const [found] = await db
    .select({
      ...asOpenReject,
      record: recordText,
      instruments: windows.instruments,
      params: windows.params,
      resolvedAt: sql<string | null>`to_json(${rejects.resolved_at})#>>'{}'`,
      /** The imported file that contains it; null if it is of an answer. */
      file: windows.source_file,
      /** Id of the kept answer that contains it; null if that is not kept. */
      responseId: sql<
        number | null
      >`(select id::int from ${answers} a where a.place = ${rejects.last_seen_at} and a.hash is not null)`,
    })
    .from(rejects)
    .innerJoin(windows, eq(windows.id, rejects.window_id))
    .where(eq(rejects.id, id));
  return found === undefined ? null : { ...found, record: recordOf(found.record) };
}

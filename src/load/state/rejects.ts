import { createHash } from 'node:crypto';
import {
  and,
  asc,
  count,
  desc,
  eq,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  not,
  notExists,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { alias } from 'drizzle-orm/pg-core';
import type { Place } from '../../core/place.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { type AnswerFilter, matchesFilter } from './answers/to-replay.ts';
import { placeText } from './schema/columns.ts';
import { answers } from './schema/source.ts';
import { rejects, windows } from './schema/work.ts';

const now = sql`clock_timestamp()`;

/** A rejected record of an answer. */
export interface RejectEntry {
  readonly position: number;
  readonly record: unknown;
  readonly problems: (typeof rejects.$inferSelect)['problems'];
  /** The day that it names, if that can be read. */
  readonly day?: string;
  /** Is it of a day, quarter or exchange that was not asked for? */
  readonly stray?: boolean;
}

/** What is needed of a load to store its rejects and resolve older ones. */
interface RejectsOfLoad {
  readonly windowId: number;
  readonly place: Place;
  readonly runId: number;
  readonly operation: string;
  readonly exchange: string;
  readonly rejects: readonly RejectEntry[];
  /** Other windows that have read the same answer, if it is read again: their open rejects are among its records. */
  readonly readByWindows?: readonly number[] | undefined;
  /** Can the answer tell that a record is no longer sent? */
  readonly believed: boolean;
  /** What it was asked for, if not what its window says. */
  readonly asked?: {
    readonly from: string;
    readonly to: string;
    readonly instruments: readonly string[];
    readonly variant: string;
    readonly filtered: boolean;
  };
}

/** What the answer of a window was asked for. */
type Asked = Pick<
  typeof windows.$inferSelect,
  'from_date' | 'to_date' | 'instruments' | 'variant' | 'filtered'
>;

/**
 * Stores the rejected records of a load, inside its transaction: each once per question, however often it is sent, and
 * as resolved if an answer to that question that was fetched later has been loaded. Resolves open rejects that this
 * answer would contain if they were still sent, and does not reject: the record was read now, or is no longer sent.
 */
export async function writeRejects(tx: NodePgDatabase, load: RejectsOfLoad): Promise<void> {
  const given = load.asked;
  const asked =
    given === undefined
      ? await askedByWindow(tx, load.windowId)
      : { ...given, from_date: given.from, to_date: given.to, instruments: [...given.instruments] };
  if (asked === undefined) return;
  const isOutdated = await outdatedTest(tx, load, asked);
  const present = new Map<string, PresentReject>();
  for (const entry of load.rejects) {
    const fingerprint = fingerprintOf(load, asked, entry);
    // An answer may contain the same record twice.
    if (!present.has(fingerprint)) present.set(fingerprint, { ...entry, outdated: isOutdated(entry) });
  }
  // Locked in one order everywhere, so that two loads cannot deadlock.
  const outdated = await lockOutdated(tx, load, asked, [...present.keys()]);
  if (outdated.length > 0) await tx.update(rejects).set({ resolved_at: now }).where(hasId(outdated));
  await keepRejects(tx, load, asked, present);
}

async function askedByWindow(tx: NodePgDatabase, windowId: number): Promise<Asked | undefined> {
  const [asked] = await tx
    .select({
      from_date: windows.from_date,
      to_date: windows.to_date,
      instruments: windows.instruments,
      variant: windows.variant,
      filtered: windows.filtered,
    })
    .from(windows)
    .where(eq(windows.id, windowId));
  return asked;
}

/** Has one of these operations an open reject? */
export async function hasOpenRejects(
  tx: NodePgDatabase,
  { operations, exchange }: { readonly operations: readonly string[]; readonly exchange: string },
): Promise<boolean> {
  return (await openRejects(tx, { operations, exchanges: [exchange] }, 1)).length > 0;
}

/** Do the days of a question, or of a file, say which day a reject is about? */
const isDated = (name: string) => dataSetNamed(name).request.dates !== 'none';

/** Identifies a record and its question: a record that names no instrument is about the one that was asked for. */
function fingerprintOf({ operation }: RejectsOfLoad, asked: Asked, { record, day }: RejectEntry): string {
  const { per } = dataSetNamed(operation).windows;
  const days = isDated(operation) ? [day ?? asked.from_date, day ?? asked.to_date] : [];
  const scope = [asked.variant, per === 'instrument' ? asked.instruments : [], days];
  return createHash('sha256')
    .update(JSON.stringify([scope, record], sortedKeys))
    .digest('hex');
}

/** For JSON.stringify. The order must not matter, because jsonb does not keep it. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A reject of an answer; `outdated`: an answer to the same question that was fetched later has been loaded already. */
type PresentReject = RejectEntry & { readonly outdated: boolean };

async function outdatedTest(
  tx: NodePgDatabase,
  { operation, exchange, place, rejects: found }: RejectsOfLoad,
  asked: Asked,
): Promise<(entry: RejectEntry) => boolean> {
  if (found.length === 0) return () => false;
  const dated = isDated(operation);
  const later = await tx
    .select({ from: answers.from_date, to: answers.to_date })
    .from(answers)
    .where(
      and(
        eq(answers.operation, operation),
        eq(answers.exchange, exchange),
        gt(answers.place, place),
        answers.believed,
        not(answers.filtered),
        eq(answers.variant, asked.variant),
        sql`(${answers.instruments} = '{}' or (${asked.instruments.length > 0} and ${sql.param(asked.instruments)}::text[] <@ ${answers.instruments}))`,
        dated ? and(lte(answers.from_date, asked.to_date), gte(answers.to_date, asked.from_date)) : undefined,
      ),
    );
  return ({ day }) =>
    later.some(
      ({ from, to }) => !dated || (from <= (day ?? asked.from_date) && (day ?? asked.to_date) <= to),
    );
}

/**
 * Locks the open rejects of the days that were asked for.
 *
 * @returns the ids of those that the answer resolves: none if nothing of it was stored or its emptiness is in doubt,
 *   none that were seen in a later answer, and none that are `present` in it.
 */
async function lockOutdated(
  tx: NodePgDatabase,
  load: RejectsOfLoad,
  asked: Asked,
  present: readonly string[],
): Promise<number[]> {
  const { readByWindows = [], believed, place } = load;
  const dated = isDated(load.operation);
  const older = alias(windows, 'older');
  const reject = alias(rejects, 'reject');
  const answered = sql`(
    not ${asked.filtered} and ${older.variant} = ${asked.variant}
    and (${asked.instruments.length === 0} or (${older.instruments} <> '{}' and ${older.instruments} <@ ${sql.param(asked.instruments)}::text[]))
    and (${!dated} or (${reject.from_date} >= ${asked.from_date} and ${reject.to_date} <= ${asked.to_date})))`;
  const open = await tx
    .select({
      id: reject.id,
      outdated: sql<boolean>`${reject.last_seen_at} <= ${place}::timestamptz
        and ${reject.fingerprint} <> all(${sql.param(present)}::text[])
        and (${reject.window_id} = any(${sql.param(readByWindows)}::bigint[]) or ${answered})`,
    })
    .from(reject)
    .innerJoin(older, eq(older.id, reject.window_id))
    .where(
      and(
        eq(reject.operation, load.operation),
        eq(reject.exchange, load.exchange),
        isNull(reject.resolved_at),
        dated ? lte(reject.from_date, asked.to_date) : undefined,
        dated ? gte(reject.to_date, asked.from_date) : undefined,
      ),
    )
    .orderBy(reject.id)
    .for('update', { of: reject });
  return believed ? open.filter(({ outdated }) => outdated).map(({ id }) => id) : [];
}

/** One statement carries at most about this many characters of records. */
const STATEMENT_CHARACTERS = 4 * 1024 * 1024;

/**
 * Inserts new rejects; for known ones, updates when they were seen and in which answer last. A record that was resolved
 * and came again later is another reject, so an answer from the time of the first one does not change the second.
 */
async function keepRejects(
  tx: NodePgDatabase,
  { runId, windowId, operation, exchange, place }: RejectsOfLoad,
  asked: Asked,
  present: ReadonlyMap<string, PresentReject>,
): Promise<void> {
  let records: string[] = [];
  let characters = 0;
  const write = async () => {
    await tx.execute(sql`
      insert into ${rejects} as known (run_id, window_id, operation, exchange, position, from_date, to_date,
        fingerprint, record, problems, stray, first_seen_at, last_seen_at, resolved_at)
      select ${runId}, ${windowId}, ${operation}, ${exchange}, r.position, coalesce(r.day, ${asked.from_date}),
             coalesce(r.day, ${asked.to_date}), r.fingerprint, r.record, r.problems, r.stray, seen.at, seen.at,
             case when r.outdated and not r.known then ${now} end
        from (select ${place}::timestamptz as at) seen, (
          select sent.*, sent.outdated and exists (
              select from ${rejects} open where open.operation = ${operation} and open.exchange = ${exchange}
                 and open.fingerprint = sent.fingerprint and open.resolved_at is null)
              and not exists (
              select from ${rejects} past where past.operation = ${operation} and past.exchange = ${exchange}
                 and past.fingerprint = sent.fingerprint and past.resolved_at is not null
                 and ${place}::timestamptz between past.first_seen_at and past.last_seen_at) as known
            from jsonb_to_recordset(${`[${records.join(',')}]`}::jsonb) as sent(
              position integer, day date, fingerprint text, record jsonb, problems jsonb, stray boolean, outdated boolean)) r
       where r.known or not r.outdated or not exists (
               select from ${rejects} old where old.operation = ${operation} and old.exchange = ${exchange}
                  and old.fingerprint = r.fingerprint)
       order by r.fingerprint
      on conflict (operation, exchange, fingerprint) where resolved_at is null do update set
        run_id = case when excluded.last_seen_at > known.last_seen_at then excluded.run_id else known.run_id end,
        window_id = case when excluded.last_seen_at > known.last_seen_at then excluded.window_id else known.window_id end,
        from_date = case when excluded.last_seen_at > known.last_seen_at then excluded.from_date else known.from_date end,
        to_date = case when excluded.last_seen_at > known.last_seen_at then excluded.to_date else known.to_date end,
        position = case when excluded.last_seen_at > known.last_seen_at then excluded.position else known.position end,
        problems = excluded.problems,
        stray = excluded.stray,
        first_seen_at = least(known.first_seen_at, excluded.first_seen_at),
        last_seen_at = greatest(known.last_seen_at, excluded.last_seen_at)
      where excluded.last_seen_at > known.last_seen_at or excluded.first_seen_at < known.first_seen_at
        or excluded.problems <> known.problems`);
    records = [];
    characters = 0;
  };
  // In the order of the fingerprints, so that two loads cannot deadlock.
  for (const fingerprint of [...present.keys()].sort()) {
    const {
      position,
      record = null,
      problems,
      day,
      stray = false,
      outdated,
    } = present.get(fingerprint) as PresentReject;
    const text = JSON.stringify({ position, day, fingerprint, record, problems, stray, outdated });
    records.push(text);
    characters += text.length;
    if (characters >= STATEMENT_CHARACTERS) await write();
  }
  if (records.length > 0) await write();
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
  return (await db.delete(rejects).where(isOld)).rowCount ?? 0;
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
    .innerJoin(windows, eq(windows.id, rejects.window_id))
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
      windowAnswerId: windows.answer_id,
    })
    .from(rejects)
    .innerJoin(windows, eq(windows.id, rejects.window_id))
    .where(eq(rejects.id, id));
  if (found === undefined) return null;
  const { windowAnswerId, ...reject } = found;
  const own = eq(answers.window_id, reject.windowId);
  const [kept] = await db
    .select({ id: answers.id })
    .from(answers)
    .where(
      and(isNotNull(answers.hash), windowAnswerId === null ? own : or(own, eq(answers.id, windowAnswerId))),
    )
    .limit(1);
  /** Id of the kept answer that contains it; null if that is not kept. */
  return { ...reject, record: recordOf(reject.record), responseId: kept?.id ?? null };
}

/** The open rejects of a window, in the order of its answer. */
export async function openRejectsOfWindow(db: NodePgDatabase, windowId: number) {
  const found = await db
    .select({
      position: rejects.position,
      record: recordText,
      problems: rejects.problems,
      day: sql<
        string | null
      >`case when ${rejects.from_date} = ${rejects.to_date} then ${rejects.from_date}::text end`,
      /** The time of the last call that it came with. */
      seenAt: sql<string>`coalesce((select a.fetched_at from ${answers} a where a.place = ${rejects.last_seen_at}), ${rejects.last_seen_at})`,
      place: placeText(rejects.last_seen_at),
    })
    .from(rejects)
    .where(and(eq(rejects.window_id, windowId), isNull(rejects.resolved_at)))
    .orderBy(rejects.position);
  return found.map(({ record, seenAt, ...reject }) => ({
    ...reject,
    record: recordOf(record),
    seenAt: new Date(seenAt),
  }));
}

/** Rejects of an imported file that is not kept: only importing it again can resolve them. */
export type UnkeptFile = Awaited<ReturnType<typeof unkeptFiles>>[number];

/** The files among those of these rejects that cannot be read again from what is kept, by name. */
export async function unkeptFiles(db: NodePgDatabase, ids: readonly number[]) {
  const kept = db
    .select({ id: answers.id })
    .from(answers)
    .where(
      and(isNotNull(answers.hash), or(eq(answers.window_id, windows.id), eq(answers.id, windows.answer_id))),
    );
  return db
    .select({ file: sql<string>`${windows.source_file}`, rejects: count() })
    .from(rejects)
    .innerJoin(windows, eq(windows.id, rejects.window_id))
    .where(and(hasId(ids), isNotNull(windows.source_file), notExists(kept)))
    .groupBy(windows.source_file)
    .orderBy(windows.source_file);
}

/**
 * A query for the ids of windows that have open rejects and whose answer is not kept, except windows of files: reading
 * their rows takes the file's header, so only another import can do that.
 */
export function windowsWithUnkeptRejects(filter: AnswerFilter): SQL {
  return sql`
    select ${windows.id} from ${windows}
     where ${and(isNull(windows.source_file), matchesFilter(windows, filter))}
       and ${windows.id} in (select window_id from ${rejects} where resolved_at is null)
       and not exists (
         select from ${answers} k where k.hash is not null and (k.window_id = ${windows.id} or k.id = ${windows.answer_id}))`;
}

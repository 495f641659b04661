import { and, asc, desc, eq, gte, inArray, isNull, lt, lte, type SQL, sql, sum } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../core/days.ts';
import type { Position } from '../core/position.ts';
import { sha256 } from '../core/sha256.ts';
import { dataSetNamed } from '../operations/registry.ts';
import type { Preparing } from '../postgres/prepared.ts';
import { type LoadGroup, takeLocks } from './loads/locks.ts';
import { daysAgo, isAnyOf } from './schema/columns.ts';
import {
  openRejects as openRejectCounts,
  rejectedRecords,
  rejectResolutions,
  rejects,
} from './schema/load-results.ts';
import { responses } from './schema/source-tables.ts';
import { windows } from './schema/work.ts';

/** A rejected record of a response. */
export interface RejectEntry {
  readonly position: number;
  readonly record: unknown;
  readonly problems: (typeof rejects.$inferSelect)['problems'];
  /** The day that it names, if that can be read. */
  readonly day?: string;
  /** Whether it is of a day, quarter or exchange that was not requested. */
  readonly stray?: boolean;
}

/** The rejected records of a response, and what was requested with it. */
interface RejectsOfResponse extends DayRange {
  readonly operation: string;
  readonly instruments: readonly string[];
  readonly variant: string;
  readonly runId: number;
  readonly windowId: number;
  readonly position: Position;
  readonly rejects: readonly RejectEntry[];
}

/** Those of a response that is read again. */
interface RejectsReadAgain extends RejectsOfResponse {
  /** Whether it can show that a record is no longer rejected. */
  readonly resolves: boolean;
}

type Writing = NodePgDatabase & Preparing;

/** True if the days of a request, or of a file, say which day a reject is about. */
const isDated = (name: string) => dataSetNamed(name).request.dates !== 'none';

/** Identifies a record and its entry: a record that names no instrument is about the one that was requested. */
function fingerprintReject(
  { operation, from, to, instruments, variant }: RejectsOfResponse,
  { record, day }: RejectEntry,
): string {
  const { per } = dataSetNamed(operation).windows;
  const days = isDated(operation) ? [day ?? from, day ?? to] : [];
  const scope = [variant, per === 'instrument' ? instruments : [], days];
  return sha256(JSON.stringify([scope, record], sortedKeys));
}

/** For JSON.stringify. The order must not matter, because jsonb does not keep it. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The locks for rejects of operations, until the transaction ends. Loads, which write them in one order, share them. A
 * refold resolves others as well, so it waits for the loads and they for it.
 */
export const lockRejects = (
  tx: Preparing,
  { operations, exchange }: LoadGroup,
  { shared }: { readonly shared: boolean },
): Promise<void> =>
  takeLocks(
    tx,
    operations.map((operation) => ({ name: `eod|rejects|${operation}|${exchange}`, shared })),
  );

/** A rejected record as it is stored. */
type RejectedRecord = ReturnType<typeof buildRejectedRecord>;

function buildRejectedRecord(exchange: string, response: RejectsOfResponse, entry: RejectEntry) {
  const { operation, position } = response;
  const { day, stray = false, record = null } = entry;
  return {
    fingerprint: fingerprintReject(response, entry),
    operation,
    exchange,
    is_dated: isDated(operation),
    record,
    first_seen_at: position,
    run_id: response.runId,
    window_id: response.windowId,
    position: entry.position,
    from_date: day ?? response.from,
    to_date: day ?? response.to,
    instruments: response.instruments,
    variant: response.variant,
    problems: entry.problems,
    is_stray: stray,
    last_seen_at: position,
  };
}

/**
 * Stores the rejected records of responses, inside the transaction of their load: each once per request, however often
 * it is sent, with the positions of the first and of the last response that had it. Whether a later response resolves a
 * reject is not stored here but computed from `etl.responses` (see the view `etl.rejects`), so neither has to wait for
 * the other.
 */
export async function writeRejects(
  tx: Writing,
  exchange: string,
  responses: readonly RejectsOfResponse[],
): Promise<void> {
  const records = new Map<string, RejectedRecord>();
  for (const response of responses.toSorted((a, b) => (a.position < b.position ? -1 : 1))) {
    for (const entry of response.rejects) {
      const rejected = buildRejectedRecord(exchange, response, entry);
      const name = `${rejected.fingerprint} ${response.operation}`;
      const { first_seen_at, last_seen_at } = records.get(name) ?? rejected;
      // A response may contain the same record twice.
      if (records.has(name) && last_seen_at === response.position) continue;
      records.set(name, { ...rejected, first_seen_at });
    }
  }
  if (records.size === 0) return;
  const operations = [...new Set(responses.map(({ operation }) => operation))];
  await lockRejects(tx, { operations, exchange }, { shared: true });
  await storeRecords(tx, [...records.values()]);
}

/**
 * Stores records, in one order, so that two loads cannot deadlock. Of one that is stored already, the last response with it
 * prevails, whichever is loaded last. If that is read again, after the record had passed once, it is open again unless
 * another response resolves it.
 */
async function storeRecords(tx: Writing, records: readonly RejectedRecord[]): Promise<void> {
  await tx.execute(sql`
    insert into ${rejectedRecords} as r (operation, exchange, fingerprint, is_dated, record, first_seen_at, run_id, window_id,
      position, from_date, to_date, instruments, variant, problems, is_stray, last_seen_at)
    select operation, exchange, fingerprint, is_dated, record, first_seen_at, run_id, window_id,
           position, from_date, to_date, instruments, variant, problems, is_stray, last_seen_at
      from jsonb_populate_recordset(null::${rejectedRecords}, ${JSON.stringify(records)}::jsonb)
     order by fingerprint, operation
    on conflict (operation, exchange, fingerprint) do update set
      run_id = case when excluded.last_seen_at >= r.last_seen_at then excluded.run_id else r.run_id end,
      window_id = case when excluded.last_seen_at >= r.last_seen_at then excluded.window_id else r.window_id end,
      position = case when excluded.last_seen_at >= r.last_seen_at then excluded.position else r.position end,
      from_date = case when excluded.last_seen_at >= r.last_seen_at then excluded.from_date else r.from_date end,
      to_date = case when excluded.last_seen_at >= r.last_seen_at then excluded.to_date else r.to_date end,
      instruments = case when excluded.last_seen_at >= r.last_seen_at then excluded.instruments else r.instruments end,
      variant = case when excluded.last_seen_at >= r.last_seen_at then excluded.variant else r.variant end,
      problems = case when excluded.last_seen_at >= r.last_seen_at then excluded.problems else r.problems end,
      is_stray = case when excluded.last_seen_at >= r.last_seen_at then excluded.is_stray else r.is_stray end,
      first_seen_at = least(r.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(r.last_seen_at, excluded.last_seen_at),
      settled_at = case
        when excluded.last_seen_at > r.last_seen_at then null
        when excluded.last_seen_at = r.last_seen_at and (
          select min(n.resolved_at) from ${rejectResolutions} n where (n.reject_id, n.last_seen_at) = (r.id, r.last_seen_at)
        ) is null then null
        else r.settled_at end
     where excluded.last_seen_at > r.last_seen_at
        or excluded.first_seen_at < r.first_seen_at
        or (
          excluded.last_seen_at = r.last_seen_at
          and (
            (excluded.problems, excluded.is_stray) is distinct from (r.problems, r.is_stray)
            or (r.settled_at is not null and (
              select min(n.resolved_at) from ${rejectResolutions} n where (n.reject_id, n.last_seen_at) = (r.id, r.last_seen_at)
            ) is null)
          )
        )`);
}

/**
 * Stores the rejects of responses that were read again. Their records that are not rejected any more are resolved. A reject
 * that such a response had resolved is open again if the response, as it is read now, cannot resolve rejects. Call it with
 * their lock held.
 */
export async function rewriteRejects(
  tx: Writing,
  group: LoadGroup,
  responses: readonly RejectsReadAgain[],
): Promise<void> {
  const { operation, exchange, settled_at } = rejectedRecords;
  const resolvingNone = responses.filter(({ resolves }) => !resolves).map(({ position }) => position);
  await tx
    .update(rejectedRecords)
    .set({ settled_at: null })
    .where(
      and(
        inArray(operation, [...group.operations]),
        eq(exchange, group.exchange),
        isAnyOf(settled_at, resolvingNone),
      ),
    );
  await writeRejects(tx, group.exchange, responses);
  const passing = responses.flatMap((response) =>
    response.resolves
      ? [{ operation: response.operation, position: response.position, present: presentIn(response) }]
      : [],
  );
  await tx.execute(sql`
    update ${rejectedRecords} r set settled_at = clock_timestamp()
      from jsonb_to_recordset(${JSON.stringify(passing)}::jsonb) as s(operation text, position timestamptz, present text[])
     where r.last_seen_at = s.position
       and r.operation = s.operation
       and r.exchange = ${group.exchange}
       and r.settled_at is null
       and r.fingerprint <> all(s.present)
       and (
         select min(n.resolved_at) from ${rejectResolutions} n where (n.reject_id, n.last_seen_at) = (r.id, r.last_seen_at)
       ) is null`);
}

const presentIn = (response: RejectsOfResponse) =>
  response.rejects.map((entry) => fingerprintReject(response, entry));

/** Notes which rejects later responses have resolved, so that these are not looked for at every entry. */
export async function settleRejects(db: NodePgDatabase): Promise<void> {
  await db.execute(sql`
    with unsettled as materialized (
      -- One that a load is about to move forward is left to the next call.
      select r.id, (
        -- Of one that a load has moved forward meanwhile, the view may still show the earlier position.
        select min(n.resolved_at) from ${rejectResolutions} n where (n.reject_id, n.last_seen_at) = (r.id, r.last_seen_at)
      ) as resolved_at
        from ${rejectedRecords} r where r.settled_at is null order by r.id for update skip locked
    )
    update ${rejectedRecords} r set settled_at = u.resolved_at from unsettled u where r.id = u.id and u.resolved_at is not null`);
}

/**
 * Deletes rejects that were resolved more than so many days ago. Open ones are kept, because nothing else has their records.
 *
 * @param dryRun deletes nothing.
 * @returns how many.
 */
export async function pruneRejects(db: NodePgDatabase, days: number, dryRun: boolean): Promise<number> {
  const isOld = lt(rejects.resolved_at, daysAgo(days));
  if (dryRun) return db.$count(rejects, isOld);
  // One that comes again meanwhile has another last response, and stays.
  const deleted = await db.execute(sql`
    delete from ${rejectedRecords} r using ${rejects} resolved
     where r.id = resolved.id and r.last_seen_at = resolved.last_seen_at and resolved.resolved_at < ${daysAgo(days)}`);
  return deleted.rowCount ?? 0;
}

/** Which open rejects; nothing given means all. */
export interface RejectFilter {
  readonly ids?: readonly number[];
  readonly operations?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
  /** Only rejects of days from this one on, or up to this one. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

function isOpen({ ids, operations, exchanges, from, to }: RejectFilter): SQL | undefined {
  return and(
    isNull(rejects.resolved_at),
    isNull(rejects.accepted_at),
    ids === undefined ? undefined : isAnyOf(rejects.id, ids),
    operations === undefined ? undefined : inArray(rejects.operation, [...operations]),
    exchanges === undefined ? undefined : inArray(rejects.exchange, [...exchanges]),
    from === undefined ? undefined : gte(rejects.to_date, from),
    to === undefined ? undefined : lte(rejects.from_date, to),
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
  /** Position in the response or file, from 0. */
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
export async function listOpenRejectIds(db: NodePgDatabase, filter: RejectFilter): Promise<number[]> {
  const rows = await db
    .select({ id: rejects.id })
    .from(rejects)
    .where(isOpen(filter))
    .orderBy(asc(rejects.id));
  return rows.map((row) => row.id);
}

/**
 * Notes that a person accepts that these open rejects are not stored. The same record in a later response is the same
 * reject; one that differs is open. Of a response of which nothing was stored none is accepted, because all of it is
 * missing.
 *
 * @returns how many.
 */
export async function acceptRejects(db: NodePgDatabase, filter: RejectFilter, by: string): Promise<number> {
  const ids = await listOpenRejectIds(db, filter);
  const accepted = await db.execute(sql`
    update ${rejectedRecords} set accepted_at = clock_timestamp(), accepted_by = ${by}
     where id = any(${sql.param(ids)}::bigint[])
       and accepted_at is null
       and not exists (select from ${windows} w where w.id = window_id and w.state = 'failed')`);
  return accepted.rowCount ?? 0;
}

/** How many rejects of each operation and exchange are open. */
export function countOpenRejects(db: NodePgDatabase) {
  const { operation, exchange, rejects: open } = openRejectCounts;
  return db
    .select({ operation, exchange, rejects: sum(open).mapWith(Number) })
    .from(openRejectCounts)
    .groupBy(operation, exchange);
}

// As text, because drizzle parses a jsonb string value such as "12" a second time, to 12.
const recordText = sql<string | null>`${rejects.record}::text`;
const parseRecord = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

/** A reject; null if there is none with this id. */
export async function readReject(db: NodePgDatabase, id: number) {
  const [reject] = await db
    .select({
      ...asOpenReject,
      record: recordText,
      instruments: windows.instruments,
      params: windows.params,
      resolvedAt: sql<string | null>`to_json(${rejects.resolved_at})#>>'{}'`,
      acceptedAt: sql<string | null>`to_json(${rejects.accepted_at})#>>'{}'`,
      acceptedBy: rejects.accepted_by,
      /** The imported file that contains it; null if it is of a response. */
      file: windows.source_file,
      /** Id of the kept response that contains it; null if that is not kept. */
      responseId: sql<
        number | null
      >`(select id::int from ${responses} a where a.position = ${rejects.last_seen_at} and a.hash is not null)`,
    })
    .from(rejects)
    .innerJoin(windows, eq(windows.id, rejects.window_id))
    .where(eq(rejects.id, id));
  return reject === undefined ? null : { ...reject, record: parseRecord(reject.record) };
}

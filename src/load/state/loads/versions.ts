import { and, asc, eq, gt, inArray, isNotNull, isNull, lte, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { BEFORE_ALL as ANY_POSITION } from '../../../core/position.ts';
import { isoText, positionText } from '../schema/columns.ts';
import { loads, pastBegins } from '../schema/load-results.ts';
import { runs } from '../schema/work.ts';

/** A version of the tables of `market`, for users a state: all loads up to it were committed, and none after it. */
interface StoredVersion {
  /** 0 before the first load. */
  readonly version: number;
  /** When it was committed, ISO 8601 with all digits; null before the first load. */
  readonly committedAt: string | null;
}

/** The table that says from which state on the past of a table can be shown, for statements. */
export const PAST_BEGINS = 'etl.past_begins';

const BEFORE_ALL: StoredVersion = { version: 0, committedAt: null };

const storedVersion = { version: loads.state, committedAt: isoText(sql`${loads.committed_at}`) };

/** The last version that was committed by a moment; the current one if that is null. */
export async function versionAt(db: NodePgDatabase, moment: string | null): Promise<StoredVersion> {
  const [found] = await db
    .select(storedVersion)
    .from(loads)
    .where(
      sql`${loads.state} = ${moment === null ? sql`market.state()` : sql`market.state(${moment}::timestamptz)`}`,
    );
  return found ?? BEFORE_ALL;
}

/** The versions before the first load and after the last load of each of these runs. */
export async function versionsOfRuns(
  db: NodePgDatabase,
  runIds: readonly number[],
): Promise<{ runId: number; before: number; after: number }[]> {
  // For a run that loaded nothing, both are the version at its end.
  const atEnd = sql`market.state(coalesce(${runs.finished_at}, clock_timestamp()))`;
  return db
    .select({
      runId: runs.id,
      before: sql`coalesce(min(${loads.state}) - 1, ${atEnd})`.mapWith(Number),
      after: sql`coalesce(max(${loads.state}), ${atEnd})`.mapWith(Number),
    })
    .from(runs)
    .leftJoin(loads, eq(loads.run_id, runs.id))
    .where(inArray(runs.id, [...runIds]))
    .groupBy(runs.id);
}

/** Stores that tables have another history now: their versions before that of a load cannot be shown any more. */
export async function notePastBegins(
  tx: NodePgDatabase,
  {
    tables,
    exchange,
    loadId,
  }: { readonly tables: readonly string[]; readonly exchange: string; readonly loadId: number },
): Promise<void> {
  await tx.execute(sql`
    insert into ${pastBegins} (table_name, exchange, state, run_id)
    select name, ${exchange}, l.state, l.run_id from ${loads} l, unnest(${sql.param(tables)}::text[]) as name where l.id = ${loadId}
     order by name on conflict (table_name, exchange) do update set state = excluded.state, run_id = excluded.run_id`);
}

/** The tables whose history a run has replaced, with the first version that can be shown since. */
export async function pastsOfRun(db: NodePgDatabase, runId: number) {
  return db
    .select({ table: pastBegins.table_name, version: sql`max(${pastBegins.state})`.mapWith(Number) })
    .from(pastBegins)
    .where(eq(pastBegins.run_id, runId))
    .groupBy(pastBegins.table_name)
    .orderBy(pastBegins.table_name);
}

/** A moment as the server reads the text, and the server's time. */
export async function readMoment(db: NodePgDatabase, moment: string) {
  const at = sql`${moment}::timestamptz`;
  const [read] = await db
    .select({ at: isoText(at), now: isoText(sql`now`), isFuture: sql<boolean>`${at} > now` })
    .from(sql`clock_timestamp() as now`);
  if (read === undefined) throw new Error('a select of one row returned none');
  return read;
}

/** A load whose rows can be digested. */
export interface DigestedLoad {
  readonly loadId: number;
  readonly version: number;
  readonly operation: string;
  readonly exchange: string;
  /** Days of the rows that it changed; infinite if they have none, null if it changed none. */
  readonly from: string | null;
  readonly to: string | null;
  /** What its row says besides, as text; it never changes. */
  readonly facts: string;
  /** Of a load that replaced rows and history of its days in a rebuild: the tables; else null. */
  readonly rebuilt: readonly string[] | null;
  readonly rowsDigest: string | null;
  readonly chainDigest: string | null;
}

/** The tables whose days a load has replaced; null if it was not the load of a rebuild. */
const rebuiltTables = sql<
  string[] | null
>`case when ${loads.position} = ${ANY_POSITION}::timestamptz then string_to_array(etl.rebuilt_tables(${loads.window_id}), ',') end`;

// The load that covers all of a rebuild changed no row itself, and its digest is that of all rows of its tables.
const digestedFrom = sql`coalesce(${loads.changed_from}, case when ${rebuiltTables} is not null then '-infinity'::date end)`;
const digestedTo = sql`coalesce(${loads.changed_to}, case when ${rebuiltTables} is not null then 'infinity'::date end)`;

const loadFacts = sql<string>`jsonb_build_array(${loads.id}, ${loads.window_id}, ${loads.run_id}, ${loads.from_date},
  ${loads.to_date}, ${loads.instruments}, ${loads.variant}, ${positionText(loads.position)}, ${isoText(sql`${loads.fetched_at}`)},
  ${isoText(sql`${loads.committed_at}`)}, ${loads.inserted}, ${loads.updated}, ${loads.withdrawn})::text`;

/** The loads of the versions after one, in their order. */
export async function readDigests(
  db: NodePgDatabase,
  { after, upTo, limit, isMissing }: { after: number; upTo: number; limit: number; isMissing: boolean },
): Promise<DigestedLoad[]> {
  return db
    .select({
      loadId: loads.id,
      version: loads.state,
      operation: loads.operation,
      exchange: loads.exchange,
      from: sql<string | null>`${digestedFrom}::text`,
      to: sql<string | null>`${digestedTo}::text`,
      facts: loadFacts,
      rebuilt: rebuiltTables,
      rowsDigest: loads.rows_digest,
      chainDigest: loads.chain_digest,
    })
    .from(loads)
    .where(
      and(gt(loads.state, after), lte(loads.state, upTo), isMissing ? isNull(loads.chain_digest) : undefined),
    )
    .orderBy(asc(loads.state))
    .limit(limit);
}

/** The loads of rebuilds, in the order of their versions. */
export function readRebuilds(db: NodePgDatabase) {
  return db
    .select({
      version: loads.state,
      exchange: loads.exchange,
      from: sql<string>`${digestedFrom}::text`,
      to: sql<string>`${digestedTo}::text`,
      rebuilt: rebuiltTables,
      /** Whether it replaced the rows of all instruments. */
      isWhole: sql<boolean>`${loads.instruments} = '{}'`,
    })
    .from(loads)
    .where(and(eq(loads.position, ANY_POSITION), isNotNull(rebuiltTables)))
    .orderBy(asc(loads.state));
}

/** The digest of all versions up to one; null if it is not computed. */
export async function readChain(db: NodePgDatabase, version: number): Promise<string | null> {
  const [found] = await db.select({ chain: loads.chain_digest }).from(loads).where(eq(loads.state, version));
  return found?.chain ?? null;
}

/** True if this session may store digests. A replica cannot, nor a role that may only read. */
export async function canWriteDigests(db: NodePgDatabase): Promise<boolean> {
  const [found] = await db
    .select({
      canWrite: sql<boolean>`not current_setting('transaction_read_only')::boolean and has_table_privilege('etl.loads', 'update')`,
    })
    .from(sql`(values (1)) as one`);
  return found?.canWrite === true;
}

/** Stores the digests of a load. */
export async function writeDigest(
  db: NodePgDatabase,
  { loadId, rows, chain }: { readonly loadId: number; readonly rows: string; readonly chain: string },
): Promise<void> {
  await db.update(loads).set({ rows_digest: rows, chain_digest: chain }).where(eq(loads.id, loadId));
}

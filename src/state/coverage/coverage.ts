import { and, eq, inArray, not, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { type Pair, pairName } from '../../core/exchanges.ts';
import type { Position } from '../../core/position.ts';
import { type Preparing, statement } from '../../postgres/prepared.ts';
import type { CoverageEntry, CoverageState } from '../registers.ts';
import { isAnyOf } from '../schema/columns.ts';
import { coverage } from '../schema/load-results.ts';
import { runs } from '../schema/work.ts';

/** What is said of an entry, where it is another window of the same operation and exchange that requested it. */
interface CoverageOfWindow extends CoverageEntry {
  readonly runId?: number;
  readonly windowId?: number;
}

/** What a response, a failed call or a holiday says of some entries. */
interface CoverageFacts extends Pair {
  readonly runId: number;
  readonly windowId: number | null;
  /** Where the response or call stands in the order of responses. */
  readonly position: Position;
  readonly coverage: readonly CoverageOfWindow[];
  /** True if the response's days are not loaded, whatever was before. */
  readonly suspicious?: boolean;
}

/**
 * Moves the registers of entries forward on the newest version of each row, so that it does not matter in which order
 * loads come here: of what was said last, and of what was loaded, the later position is kept, and at the same one what
 * comes in. Writes no row that stays the same. `entries` is JSON of `CoverageOfWindow`. Rows are written in key order, so
 * that two writers cannot deadlock; each is found by the primary key.
 */
const moveRegisters = statement<
  Omit<CoverageFacts, 'coverage'> & { entries: string } & Record<string, unknown>,
  Record<string, unknown>
>`
  insert into ${coverage} as stored (operation, exchange, day, instrument, variant,
    last_position, last_said, last_records, last_diagnostic, loaded_position, loaded_records, suspicious_position,
    run_id, window_id, checked_at)
  select ${'operation'}::text, ${'exchange'}::text, entry.day, entry.instrument, entry.variant,
         called.position, entry.state, entry.records, entry.diagnostic,
         case when entry.state = 'loaded' then called.position end,
         case when entry.state = 'loaded' then entry.records end,
         case when ${'suspicious'}::boolean then called.position end,
         coalesce(entry."runId", ${'runId'}::bigint), coalesce(entry."windowId", ${'windowId'}::bigint),
         case when isfinite(called.position) then statement_timestamp() else called.position end
    from (select ${'position'}::timestamptz) called(position),
         jsonb_to_recordset(${'entries'}::jsonb) as entry(
           day date, instrument text, variant text, state text, records bigint, diagnostic text,
           "runId" bigint, "windowId" bigint)
   order by entry.day, entry.instrument, entry.variant
  on conflict on constraint coverage_pkey do update set
    last_position = greatest(excluded.last_position, stored.last_position),
    last_said = case
      when excluded.last_position >= stored.last_position then excluded.last_said else stored.last_said end,
    last_records = case
      when excluded.last_position >= stored.last_position then excluded.last_records else stored.last_records end,
    last_diagnostic = case
      when excluded.last_position >= stored.last_position then excluded.last_diagnostic else stored.last_diagnostic end,
    loaded_position = greatest(excluded.loaded_position, stored.loaded_position),
    loaded_records = case
      when excluded.loaded_position >= coalesce(stored.loaded_position, '-infinity') then excluded.loaded_records
      else stored.loaded_records end,
    suspicious_position = greatest(excluded.suspicious_position, stored.suspicious_position),
    run_id = case when excluded.last_position > stored.last_position then excluded.run_id else stored.run_id end,
    window_id = case when excluded.last_position > stored.last_position then excluded.window_id else stored.window_id end,
    checked_at = greatest(excluded.checked_at, stored.checked_at)
   where (
       excluded.last_position >= stored.last_position
       and (excluded.last_position, excluded.last_said, excluded.last_records, excluded.last_diagnostic)
         is distinct from (stored.last_position, stored.last_said, stored.last_records, stored.last_diagnostic)
     )
     or (
       excluded.loaded_position >= coalesce(stored.loaded_position, '-infinity')
       and (excluded.loaded_position, excluded.loaded_records)
         is distinct from (stored.loaded_position, stored.loaded_records)
     )
     or greatest(excluded.suspicious_position, stored.suspicious_position) is distinct from stored.suspicious_position`;

/**
 * Records what a response, a failed call or a holiday says of entries (registers.ts); their states follow. What responses
 * did with the rows of days is written with their withdrawals (sum-of-facts.ts).
 */
export async function writeCoverage(db: Preparing, facts: CoverageFacts): Promise<void> {
  const { coverage: entries, suspicious = false, ...values } = facts;
  if (entries.length > 0)
    await moveRegisters(db, { ...values, suspicious, entries: JSON.stringify(entries) });
}

/** Entries about days: about a whole exchange, or about each of these instruments. */
interface RequestedDays extends Pair {
  readonly days: readonly string[];
  readonly instruments: readonly string[];
  /** States in which an entry is covered. */
  readonly states: readonly CoverageState[];
}

/** How many responses there are to a request about a day. */
export interface ResponseCount {
  readonly day: string;
  readonly variant: string;
  /** State of the response for the whole exchange, or null where there is none. */
  readonly ofExchange: CoverageState | null;
  /** Responses for the whole exchange and for these instruments; of them, those with `not_published`. */
  readonly responses: number;
  readonly awaited: number;
}

const isAwaited = sql<boolean>`${coverage.state} = 'not_published'`;

const isResponseTo = ({ operation, exchange, days, instruments, states }: RequestedDays) =>
  and(
    eq(coverage.operation, operation),
    eq(coverage.exchange, exchange),
    isAnyOf(coverage.day, days),
    isAnyOf(coverage.instrument, instruments),
    inArray(coverage.state, [...states]),
  );

/** Counts the responses to each entry that has any. Postgres aggregates, so few rows are returned. */
export async function countResponses(db: NodePgDatabase, requested: RequestedDays): Promise<ResponseCount[]> {
  if (requested.days.length === 0) return [];
  return db
    .select({
      day: coverage.day,
      variant: coverage.variant,
      ofExchange: sql<CoverageState | null>`max(${coverage.state}) filter (where ${coverage.instrument} = '')`,
      responses: sql<number>`count(*)::int`,
      awaited: sql<number>`count(*) filter (where ${coverage.state} = 'not_published')::int`,
    })
    .from(coverage)
    .where(isResponseTo({ ...requested, instruments: ['', ...requested.instruments] }))
    .groupBy(coverage.day, coverage.variant);
}

/** Instruments that have a response other than `not_published` to the same request about each of these days. */
export async function listInstrumentsCoveredEachDay(
  db: NodePgDatabase,
  requested: RequestedDays,
): Promise<{ readonly variant: string; readonly instruments: readonly string[] }[]> {
  const counted = db
    .select({ variant: coverage.variant, instrument: coverage.instrument })
    .from(coverage)
    .where(and(isResponseTo(requested), not(isAwaited)))
    .groupBy(coverage.variant, coverage.instrument)
    .having(sql`count(*) = ${new Set(requested.days).size}`)
    .as('counted');
  return db
    .select({ variant: counted.variant, instruments: sql<string[]>`array_agg(${counted.instrument})` })
    .from(counted)
    .groupBy(counted.variant);
}

/** Instruments with a response to a request about a day. */
interface ResponseList {
  readonly day: string;
  readonly variant: string;
  /** True if their response is `not_published`. */
  readonly awaited: boolean;
  readonly instruments: readonly string[];
}

/** Which instruments have a response to each entry about these days. */
export async function listResponses(db: NodePgDatabase, requested: RequestedDays): Promise<ResponseList[]> {
  return db
    .select({
      day: coverage.day,
      variant: coverage.variant,
      awaited: isAwaited,
      instruments: sql<string[]>`array_agg(${coverage.instrument})`,
    })
    .from(coverage)
    .where(isResponseTo(requested))
    .groupBy(coverage.day, coverage.variant, isAwaited);
}

/** The names of those of these operations and exchanges of which anything was ever loaded. */
export async function listLoadedPairs(
  db: NodePgDatabase,
  pairs: readonly Pair[],
): Promise<ReadonlySet<string>> {
  const result = await db.execute<Pair & Record<string, unknown>>(sql`
    select distinct p.operation, p.exchange
      from jsonb_to_recordset(${JSON.stringify(pairs)}::jsonb) as p(operation text, exchange text)
     where exists (
       select from ${coverage} c
        where c.operation = p.operation and c.exchange = p.exchange and c.state = 'loaded')`);
  return new Set(result.rows.map(pairName));
}

/** The run that last requested the newest day of each operation and exchange, and when. */
export async function listLastRequests(db: NodePgDatabase) {
  const result = await db.execute<
    Pair & Record<string, unknown> & { runId: number; requestedAt: string }
  >(sql`
    select p.operation, p.exchange, newest.run_id::int as "runId", newest.checked_at as "requestedAt"
      from etl.requested_pairs() p cross join lateral (
        select c.run_id, c.checked_at from ${coverage} c left join ${runs} r on r.id = c.run_id
         where c.operation = p.operation and c.exchange = p.exchange and r.kind is distinct from 'import'
         order by c.day desc, c.checked_at desc limit 1) newest`);
  return result.rows;
}

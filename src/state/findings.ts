import { and, count, desc, eq, gte, inArray, isNull, lt, lte, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day, DayRange } from '../core/days.ts';
import { firstItem } from '../core/iterables.ts';
import { lockUntilCommit } from '../postgres/transaction.ts';
import { daysAgo } from './schema/columns.ts';
import { checkedDays, findings, type SEVERITIES } from './schema/knowledge.ts';

export type Severity = (typeof SEVERITIES)[number];

/** Something that is wrong, or was. */
export type Finding = Awaited<ReturnType<typeof listFindings>>['findings'][number];

interface FindingFilter {
  readonly id?: number | undefined;
  readonly check?: string | undefined;
  /** Only findings of these severities. */
  readonly severity?: readonly Severity[] | undefined;
  readonly operation?: string | undefined;
  readonly exchanges?: readonly string[] | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Include findings that a later check did not find again, and accepted ones. */
  readonly resolved?: boolean | undefined;
  readonly limit: number;
}

/** Neither resolved nor accepted. */
const isOpen = and(isNull(findings.resolved_at), isNull(findings.accepted_at));

/** The condition that a finding is one of these. */
function isAmong(filter: Omit<FindingFilter, 'limit'>): SQL | undefined {
  const { id, check, severity, operation, exchanges, from, to } = filter;
  return and(
    id === undefined ? undefined : eq(findings.id, id),
    check === undefined ? undefined : eq(findings.check, check),
    severity === undefined ? undefined : inArray(findings.severity, [...severity]),
    operation === undefined ? undefined : eq(findings.operation, operation),
    exchanges === undefined ? undefined : inArray(findings.exchange, [...exchanges]),
    from === undefined ? undefined : gte(findings.date, from),
    to === undefined ? undefined : lte(findings.date, to),
    filter.resolved === true ? undefined : isOpen,
  );
}

/** Findings, the newest days first, and how many match in all. */
export async function listFindings(db: NodePgDatabase, filter: FindingFilter) {
  const matches = isAmong(filter);
  const worstFirst = sql`array_position(array['error', 'warning', 'info'], ${findings.severity})`;
  const listed = await db
    .select()
    .from(findings)
    .where(matches)
    .orderBy(desc(findings.date), worstFirst, findings.check, findings.exchange, findings.instrument)
    .limit(filter.limit);
  return {
    total: await db.$count(findings, matches),
    findings: listed.map(({ run_id, found_at, resolved_at, accepted_at, accepted_by, ...finding }) => ({
      ...finding,
      runId: run_id,
      foundAt: new Date(found_at).toISOString(),
      resolvedAt: resolved_at === null ? null : new Date(resolved_at).toISOString(),
      acceptedAt: accepted_at === null ? null : new Date(accepted_at).toISOString(),
      acceptedBy: accepted_by,
    })),
  };
}

/**
 * Notes that a person accepts that the data of these open findings is so. They are open again once a check expects or
 * finds something else.
 *
 * @returns how many.
 */
export async function acceptFindings(
  db: NodePgDatabase,
  filter: Omit<FindingFilter, 'limit' | 'resolved'>,
  by: string,
): Promise<number> {
  const accepted = await db
    .update(findings)
    .set({ accepted_at: sql`clock_timestamp()`, accepted_by: by })
    .where(isAmong(filter));
  return accepted.rowCount ?? 0;
}

/** A rule of which a query finds what breaks it. */
export interface FindingQuery {
  readonly name: string;
  /** The operation whose data the findings are about. */
  readonly operation: string;
  /**
   * True if findings carry a day of the checked range. If not, all rows are checked whatever the range is (a
   * classification is valid for years), and each finding has a day of its own.
   */
  readonly dated: boolean;
  /**
   * A select of exchange, date, instrument, expected, found: one row per finding. `$1` and `$2` are the first and last
   * day, and it may use two tables of exchange and day: `sessions`, those of the calendar, and `complete`, those whose
   * bhav copy was loaded for the whole exchange. Sums and neighbours mean nothing where only some instruments were
   * requested.
   */
  readonly sql: string;
}

interface CheckedRange extends DayRange {
  /** Exchange and day of the calendar's trading days that the SQL of the check may use. */
  readonly tradingDays: readonly { readonly exchange: string; readonly day: string }[];
}

export interface FindingCounts {
  /** Findings that are open now. */
  readonly open: number;
  /** How many of the open ones are new, or were found again after they had been resolved. */
  readonly fresh: number;
  /** Findings that were open and were not found again. */
  readonly resolved: number;
}

/**
 * Runs a check: one statement looks for findings, stores new and changed ones, and resolves those not found again. It
 * is written as SQL, because the check is, and drizzle has no materialized CTEs. A check that is switched off finds
 * nothing.
 */
export async function runCheck(
  tx: NodePgDatabase,
  check: FindingQuery,
  range: CheckedRange,
  kept: { readonly severity: Severity | 'off'; readonly runId: number | null },
): Promise<FindingCounts> {
  // Two at the same time could report the same finding twice, or deadlock.
  await lockUntilCommit(tx, 'eod:reconcile');
  // Tables that were just loaded have no statistics yet: the planner takes them to be small and joins on one of several
  // columns. Hash joins use all columns, and cost the same whatever the planner assumes.
  await tx.execute(sql`set local enable_nestloop = off`);
  await tx.execute(sql`set local enable_mergejoin = off`);
  const exchanges = sql.param(range.tradingDays.map(({ exchange }) => exchange));
  const days = sql.param(range.tradingDays.map(({ day }) => day));
  // The first four parameters are $1 to $4 of the check, whose text comes from the module of the check.
  const { rows } = await tx.execute<FindingCounts & Record<string, unknown>>(sql`
    with span as (
      select ${range.from}::date as first, ${range.to}::date as last
    ), sessions as (
      select exchange, day from unnest(${exchanges}::text[], ${days}::date[]) as s(exchange, day)
    ), complete as (
      select * from etl.loaded_trading_days('GetBhavCopyCM')
    ), disagreement as materialized (
      select distinct on (exchange, date, instrument) exchange, date, instrument, expected, found
        from (${sql.raw(check.sql)}) as checked
       where ${kept.severity !== 'off'}::boolean
       order by exchange, date, instrument, found
    ), written as (
      insert into ${findings} as stored
        ("check", severity, operation, exchange, date, instrument, expected, found, run_id)
      select ${check.name}, ${kept.severity}, ${check.operation}, exchange, date, instrument, expected, found, ${kept.runId}::bigint
        from disagreement
      on conflict on constraint findings_key do update set
        severity = excluded.severity, expected = excluded.expected, found = excluded.found, run_id = excluded.run_id,
        resolved_at = null,
        accepted_at = case
          when stored.resolved_at is null
           and (stored.expected, stored.found) is not distinct from (excluded.expected, excluded.found)
          then stored.accepted_at end,
        found_at = case when stored.resolved_at is null then stored.found_at else excluded.found_at end
       where stored.resolved_at is not null
          or (stored.severity, stored.expected, stored.found)
            is distinct from (excluded.severity, excluded.expected, excluded.found)
      returning found_at = now() as is_fresh
    ), closed as (
      update ${findings} stored set resolved_at = now()
       where stored."check" = ${check.name}
         and stored.resolved_at is null
         and (not ${check.dated}::boolean or stored.date between ${range.from} and ${range.to})
         and not exists (
           select from disagreement d
            where d.exchange = stored.exchange and d.date = stored.date and d.instrument = stored.instrument
         )
      returning 1
    )
    select (
             select count(*) from disagreement d where not exists (
               select from ${findings} accepted
                where accepted."check" = ${check.name}
                  and accepted.exchange = d.exchange
                  and accepted.date = d.date
                  and accepted.instrument = d.instrument
                  and accepted.accepted_at is not null
                  and accepted.resolved_at is null
                  and (accepted.expected, accepted.found) is not distinct from (d.expected, d.found)
             )
           )::int as open,
           (select count(*) from written where is_fresh)::int as fresh,
           (select count(*) from closed)::int as resolved`);
  return firstItem(rows);
}

/** Remembers that all checks were run over these days; what was loaded after they `began` is not checked. */
export async function markChecked(
  tx: NodePgDatabase,
  { from, to }: Pick<CheckedRange, 'from' | 'to'>,
  began: string,
): Promise<void> {
  await tx.execute(sql`
    insert into ${checkedDays} as c (day, checked_at)
    select distinct day, ${began}::timestamptz from etl.loaded_trading_days('GetBhavCopyCM')
     where day between ${from} and ${to} and checked_at < ${began}::timestamptz order by day
        on conflict (day) do update set checked_at = excluded.checked_at where c.checked_at < excluded.checked_at`);
}

/** What is known of which days were checked. */
export interface CheckedDays {
  /** Days with a bhav copy. */
  readonly loaded: number;
  /** Of these, how many were not checked since they were loaded last, and the first and last of them. */
  readonly unchecked: number;
  readonly from: Day | null;
  readonly to: Day | null;
  /** When any day was checked last. */
  readonly checkedAt: string | null;
}

/** Which days with a bhav copy were not checked since, of a range or of all. */
export async function readCheckedDays(
  db: NodePgDatabase,
  { from = '-infinity', to = 'infinity' }: Pick<FindingFilter, 'from' | 'to'> = {},
): Promise<CheckedDays> {
  const { rows } = await db.execute<CheckedDays & Record<string, unknown>>(sql`
    select count(*)::int as loaded, (count(*) filter (where missing))::int as unchecked,
           (min(day) filter (where missing))::text as from, (max(day) filter (where missing))::text as to,
           to_char(max(checked_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "checkedAt"
      from (select l.day, c.checked_at, c.checked_at is null or c.checked_at < l.loaded_at as missing
              from (
                     select day, max(checked_at) as loaded_at from etl.loaded_trading_days('GetBhavCopyCM') group by day
                   ) as l
              left join ${checkedDays} c using (day)
             where l.day between ${from} and ${to}) as days`);
  return firstItem(rows);
}

/** How many findings are open, by check and severity. */
export function countOpenFindings(db: NodePgDatabase) {
  return db
    .select({ check: findings.check, severity: findings.severity, findings: count() })
    .from(findings)
    .where(isOpen)
    .groupBy(findings.check, findings.severity);
}

/** Deletes findings that were resolved more than so many days ago. @param dryRun deletes nothing. @returns how many. */
export async function pruneFindings(db: NodePgDatabase, days: number, dryRun: boolean): Promise<number> {
  const isOld = lt(findings.resolved_at, daysAgo(days));
  if (dryRun) return db.$count(findings, isOld);
  return (await db.delete(findings).where(isOld)).rowCount ?? 0;
}

import type { PoolClient } from 'pg';
import { addDays, type Day } from '../../core/days.ts';
import { transaction } from '../../load/database/transaction.ts';
import type { Context } from '../context.ts';
import { type Check, LEAD_IN_DAYS, type Severity, WITH_COMMON } from './checks/check.ts';
import { severities } from './checks/index.ts';

/** What one check found in the range. */
export interface CheckResult {
  readonly check: string;
  readonly severity: Severity;
  /** Findings that stand now. */
  readonly open: number;
  /** Of these, found for the first time or found again. */
  readonly fresh: number;
  /** Found before, and no longer. */
  readonly resolved: number;
}

export interface ReconcileRange {
  readonly from: Day;
  readonly to: Day;
  /** The run after which it is done, where there is one. */
  readonly runId?: number;
}

/**
 * Lets the stored data sets check one another over a range of days and keeps what is wrong in
 * `etl.findings`. Reads `market`, changes nothing there.
 *
 * @returns a line for each check that is not switched off, in the order of `checks`.
 * @throws PipelineError `database`; `usage` for an unknown check in EOD_FINDING_SEVERITY.
 */
export async function reconcileData(context: Context, range: ReconcileRange): Promise<CheckResult[]> {
  const { exchanges, days } = sessionsAround(context, range);
  const results: CheckResult[] = [];
  for (const [check, severity] of severities(context.config)) {
    const result = await transaction(context.db, async (client) => {
      // Two at once would report the same finding twice, or wait for each other crosswise.
      await client.query("select pg_advisory_xact_lock(hashtextextended('eod reconcile', 0))");
      // Tables loaded a moment ago have no statistics yet: the planner takes them for small and joins on
      // one column of several. Hash joins use them all, and cost the same whatever it believes.
      await client.query(
        'set local enable_nestloop = off; set local enable_mergejoin = off; set local jit = off',
      );
      if (severity === 'off') return forget(client, check, range);
      return apply(client, check, [range.from, range.to, exchanges, days, severity, range.runId ?? null]);
    });
    if (result !== null && severity !== 'off') results.push({ check: check.name, severity, ...result });
  }
  return results;
}

function sessionsAround({ calendar, config }: Context, { from, to }: ReconcileRange) {
  const first = addDays(from, -LEAD_IN_DAYS);
  const known = config.EOD_EXCHANGES.flatMap((exchange) =>
    calendar.sessions(exchange, first, to).map((day) => ({ exchange, day })),
  );
  return { exchanges: known.map(({ exchange }) => exchange), days: known.map(({ day }) => day) };
}

type Counts = Pick<CheckResult, 'open' | 'fresh' | 'resolved'>;

/** One statement: look, keep what is new or different, close what is no longer found. */
async function apply(client: PoolClient, check: Check, values: readonly unknown[]): Promise<Counts> {
  const found = await client.query<Counts>(
    `with span as (select $1::date as first, $2::date as last), ${WITH_COMMON},
     found as materialized (
       select distinct on (exchange, date, instrument) exchange, date, instrument, expected, found
         from (${check.sql}) as wrong order by exchange, date, instrument, found
     ), kept as (
       insert into etl.findings as f
         ("check", severity, operation, exchange, date, instrument, expected, found, run_id)
       select '${check.name}', $5, '${check.operation}', exchange, date, instrument, expected, found, $6::bigint from found
       on conflict on constraint findings_key do update
         set severity = excluded.severity, expected = excluded.expected, found = excluded.found,
             run_id = excluded.run_id, resolved_at = null,
             found_at = case when f.resolved_at is null then f.found_at else excluded.found_at end
         where f.resolved_at is not null
            or (f.severity, f.expected, f.found) is distinct from (excluded.severity, excluded.expected, excluded.found)
       returning found_at = now() as fresh
     ), closed as (
       update etl.findings f set resolved_at = now()
        where f."check" = '${check.name}' and f.resolved_at is null
          and ${check.dated ? 'f.date between $1 and $2' : 'true'}
          and not exists (
            select from found n where n.exchange = f.exchange and n.date = f.date and n.instrument = f.instrument)
       returning 1
     )
     select (select count(*) from found)::int as open, (select count(*) from kept where fresh)::int as fresh,
            (select count(*) from closed)::int as resolved`,
    [...values],
  );
  return found.rows[0] ?? { open: 0, fresh: 0, resolved: 0 };
}

/** What a check found that nobody wants to know any more is no open finding. */
async function forget(client: PoolClient, check: Check, { from, to }: ReconcileRange): Promise<null> {
  await client.query(
    `update etl.findings set resolved_at = now()
      where "check" = $1 and resolved_at is null and (date between $2 and $3 or not $4)`,
    [check.name, from, to, check.dated],
  );
  return null;
}

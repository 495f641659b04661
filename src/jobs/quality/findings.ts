import type { Pool } from 'pg';
import type { Day } from '../../core/days.ts';
import type { Severity } from './checks/check.ts';

/** One thing that is wrong, or was. */
export interface Finding {
  readonly id: number;
  readonly check: string;
  readonly severity: Severity;
  readonly operation: string;
  readonly exchange: string;
  readonly date: Day;
  readonly instrument: string;
  readonly expected: string | null;
  readonly found: string | null;
  readonly runId: number | null;
  /** Moments as ISO 8601 in UTC. */
  readonly foundAt: string;
  readonly resolvedAt: string | null;
}

export interface FindingFilter {
  readonly check?: string | undefined;
  /** These and nothing milder. */
  readonly severity?: readonly Severity[] | undefined;
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  /** Also those that a later look found no more. */
  readonly resolved?: boolean | undefined;
  readonly limit: number;
}

const WHERE = `($1::text is null or "check" = $1) and ($2::text[] is null or severity = any($2))
  and ($3::date is null or date >= $3) and ($4::date is null or date <= $4) and ($5 or resolved_at is null)`;

const iso = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** Findings, the newest days first, and how many there are in all. */
export async function listFindings(
  pool: Pool,
  filter: FindingFilter,
): Promise<{ total: number; findings: Finding[] }> {
  const values = [
    ...[filter.check ?? null, filter.severity ?? null, filter.from ?? null, filter.to ?? null],
    filter.resolved ?? false,
  ];
  const counted = await pool.query<{ total: number }>(
    `select count(*)::int as total from etl.findings where ${WHERE}`,
    values,
  );
  const listed = await pool.query<Finding>(
    `select id::int, "check", severity, operation, exchange, date::text, instrument, expected, found,
            run_id::int as "runId", ${iso('found_at')} as "foundAt", ${iso('resolved_at')} as "resolvedAt"
       from etl.findings where ${WHERE}
      order by date desc, array_position(array['error', 'warning', 'info'], severity), "check", exchange, instrument
      limit $6`,
    [...values, filter.limit],
  );
  return { total: counted.rows[0]?.total ?? 0, findings: listed.rows };
}

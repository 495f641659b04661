import type { ClientBase, Pool } from 'pg';

export type CoverageState = 'loaded' | 'empty' | 'holiday' | 'not_published' | 'blocked' | 'failed';

/** What is now known of one session day (of one instrument, of one question). */
export interface CoverageEntry {
  readonly day: string;
  /** '' where the whole exchange was asked. */
  readonly instrument: string;
  readonly part: string;
  readonly state: CoverageState;
  readonly records: number;
  readonly diagnostic?: string;
}

export interface CoverageOwner {
  readonly operation: string;
  readonly exchange: string;
  readonly runId: number;
  readonly windowId: number | null;
  readonly coverage: readonly CoverageEntry[];
}

/**
 * Records what is known of days. What was loaded stays `loaded` whatever a later call meets: the
 * rows are still there. Rows are written in key order, so that two writers cannot deadlock.
 */
export async function writeCoverage(client: ClientBase | Pool, owner: CoverageOwner): Promise<void> {
  const entries = owner.coverage;
  if (entries.length === 0) return;
  await client.query(
    `insert into etl.coverage as known
       (operation, exchange, day, instrument, part, state, records, diagnostic, run_id, window_id, checked_at)
     select $1, $2, e.day, e.instrument, e.part, e.state, e.records, e.diagnostic, $3, $4, statement_timestamp()
       from unnest($5::date[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[])
         as e(day, instrument, part, state, records, diagnostic)
      order by 3, 4, 5
     on conflict on constraint coverage_pkey do update set
       state = case when known.state = 'loaded' then 'loaded' else excluded.state end,
       records = case when known.state = 'loaded' and excluded.state <> 'loaded' then known.records else excluded.records end,
       diagnostic = excluded.diagnostic, run_id = excluded.run_id, window_id = excluded.window_id,
       checked_at = excluded.checked_at`,
    [
      ...[owner.operation, owner.exchange, owner.runId, owner.windowId],
      entries.map((entry) => entry.day),
      entries.map((entry) => entry.instrument),
      entries.map((entry) => entry.part),
      entries.map((entry) => entry.state),
      entries.map((entry) => entry.records),
      entries.map((entry) => entry.diagnostic ?? null),
    ],
  );
}

/** A question about a day that needs no asking again. */
export interface CoveredKey {
  readonly day: string;
  readonly instrument: string;
  readonly part: string;
}

/** Days of a range that hold one of these states. */
export async function readCovered(
  pool: Pool,
  asked: {
    readonly operation: string;
    readonly exchange: string;
    readonly from: string;
    readonly to: string;
    readonly states: readonly CoverageState[];
  },
): Promise<CoveredKey[]> {
  const result = await pool.query<CoveredKey>(
    `select to_char(day, 'YYYY-MM-DD') as day, instrument, part from etl.coverage
      where operation = $1 and exchange = $2 and day between $3 and $4 and state = any($5)
      order by day, instrument, part`,
    [asked.operation, asked.exchange, asked.from, asked.to, asked.states],
  );
  return result.rows;
}

/** The watermark: the last day of which an operation and exchange is loaded, or null. */
export async function lastLoadedDay(pool: Pool, operation: string, exchange: string): Promise<string | null> {
  const result = await pool.query<{ day: string | null }>(
    `select to_char(max(day), 'YYYY-MM-DD') as day from etl.coverage
      where operation = $1 and exchange = $2 and state = 'loaded'`,
    [operation, exchange],
  );
  return result.rows[0]?.day ?? null;
}

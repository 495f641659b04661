import { sql } from 'drizzle-orm';
import { type Preparing, runPrepared } from '../../postgres/prepared.ts';
import type { CoverageEntry } from '../registers.ts';
import { loads } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import { factColumns, SAID } from './response-facts.ts';

/** The load of the response that is repeated. */
interface RepeatedLoad extends Readonly<Record<'responseId' | 'fetched' | 'stale' | 'duplicate', number>> {
  readonly coverage: readonly CoverageEntry[];
}

/**
 * Finds the load whose rows are stored now, if a response repeats it: the last load that may be about its days,
 * whatever operation, import or replay it is of, was of the same bytes to the same request, read by the same code,
 * without rejects, warnings or suspicions, and said of each trading day that it is loaded.
 */
export async function findRepeated(
  db: Preparing,
  {
    windowId,
    digest,
    position,
    operations,
    tradingDays,
  }: {
    readonly windowId: number;
    readonly digest: string;
    readonly position: string;
    readonly operations: readonly string[];
    readonly tradingDays: readonly string[];
  },
): Promise<RepeatedLoad | null> {
  const { rows } = await runPrepared<RepeatedLoad & Record<string, unknown>>(
    db,
    sql`
    select a.id::float8 as "responseId", l.fetched::float8, l.stale::float8, l.duplicate::float8, said.coverage
      from ${windows} w
      join ${loads} l on l.digest = ${digest} and (l.operation, l.exchange, l.from_date, l.to_date, l.instruments, l.variant, l.is_filtered)
                       = (w.operation, w.exchange, w.from_date, w.to_date, w.instruments, w.variant, w.is_filtered)
      join ${windows} last on last.id = l.window_id and last.params = w.params
      join ${responses} a on a.position = l.position,
           lateral (select array_agg(q.day order by q.day) as days,
              jsonb_agg(jsonb_build_object('day', q.day, 'instrument', q.instrument, 'variant', a.variant, 'state', q.said, 'records', q.records)) as coverage
              from ${SAID}) said
     where w.id = ${windowId} and w.instruments = '{}' and not w.is_filtered and l.position < ${position}::timestamptz
       and l.rejected = 0 and last.state = 'loaded' and last.warnings = '{}' and last.suspicious is null
       and a.said = 'loaded' and said.days = ${sql.param(tradingDays)}::date[]
       and not exists (
         select from ${loads} o
          where o.operation = any(${sql.param(operations)}::text[]) and o.exchange = w.exchange
            and o.from_date <= w.to_date and o.to_date >= w.from_date
            and o.id <> l.id and (o.state > l.state or o.position >= l.position))`,
  );
  return rows[0] ?? null;
}

/** Notes a response that has the same bytes, and says the same, as a kept one. */
export async function copyResponse(
  tx: Preparing,
  {
    windowId,
    position,
    fetchedAt,
    calledOn,
    of,
  }: {
    readonly windowId: number;
    readonly position: string;
    readonly fetchedAt: Date;
    readonly calledOn: string;
    /** The id of the other one. */
    readonly of: number;
  },
): Promise<void> {
  await runPrepared(
    tx,
    sql`
    insert into ${responses} (position, run_id, window_id, operation, exchange, from_date, to_date, instruments, params, variant,
      is_filtered, called_on, hash, content_type, fetched_at, is_believed, ${factColumns.names})
    select ${position}::timestamptz, w.run_id, w.id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments, w.params, w.variant,
      w.is_filtered, ${calledOn}::date, a.hash, a.content_type, ${fetchedAt.toISOString()}::timestamptz, a.is_believed, ${factColumns.of(sql`a`)}
      from ${windows} w, ${responses} a where w.id = ${windowId} and a.id = ${of}`,
  );
}

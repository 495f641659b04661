import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { PipelineError } from '../../core/errors.ts';
import { coverage } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';

/** Which entries are summed. */
interface SummedEntries {
  readonly operations: readonly string[];
  readonly exchange: string;
  /** Null: all. */
  readonly days: { readonly from: string; readonly to: string } | null;
}

/** So often rows may be moved by others while they are compared. */
const MOST_TRIES = 10;

/**
 * Writes the registers of entries as the sum of the facts, where responses that were read again say something else, or
 * something for the first time, or a person has accepted what one did.
 *
 * @throws PipelineError `database_locked` if other loads kept moving rows meanwhile.
 */
export async function sumCoverage(db: NodePgDatabase, entries: SummedEntries): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    if ((await writeDifferingRegisters(db, entries)) === 0) return;
  }
  const { operations, exchange } = entries;
  throw new PipelineError(
    `other loads kept changing the coverage of ${operations.join(', ')} ${exchange} while it was compared with its facts`,
    { kind: 'database_locked' },
  );
}

/**
 * Writes the registers that differ from the sum of the facts (migrations/repeatable/coverage.sql). Rows are locked in
 * key order, so that two writers cannot deadlock.
 *
 * @returns how many entries are left: another load has moved or inserted them meanwhile, and they have to be compared again.
 */
async function writeDifferingRegisters(
  db: NodePgDatabase,
  { operations, exchange, days }: SummedEntries,
): Promise<number> {
  const { rows } = await db.execute<{ left: number }>(sql`
    with differing as materialized (
      select * from etl.compared_coverage(
               ${sql.param(operations)}::text[], ${exchange}::text, ${days?.from ?? null}::date, ${days?.to ?? null}::date)
       where is_last_different or is_loaded_different or is_suspicious_different or is_emptied_different or is_withheld_different
    ), locked as materialized (
      select c.ctid as stored_row
        from ${coverage} c join differing s on s.stored_row = c.ctid
       order by c.operation, c.exchange, c.day, c.instrument, c.variant for update of c
    ), removed as (
      delete from ${coverage} c using differing s join locked using (stored_row)
       where c.ctid = s.stored_row and s.is_last_different and s.last_position is null
    ), inserted as (
      insert into ${coverage} (operation, exchange, day, instrument, variant,
        last_position, last_said, last_records, last_diagnostic, loaded_position, loaded_records,
        suspicious_position, emptied_position, withheld_position, run_id, window_id, checked_at)
      select s.operation, s.exchange, s.day, s.instrument, s.variant,
             s.last_position, s.last_said, s.last_records, s.last_diagnostic, s.loaded_position, s.loaded_records,
             s.suspicious_position, s.emptied_position, s.withheld_position, r.run_id, r.window_id, r.fetched_at
        from differing s join ${responses} r on r.position = s.last_position
       where s.stored_row is null
       order by s.operation, s.exchange, s.day, s.instrument, s.variant
      on conflict on constraint coverage_pkey do nothing
      returning 1
    ), changed as (
      update ${coverage} c set
             last_position = case when s.is_last_different then s.last_position else c.last_position end,
             last_said = case when s.is_last_different then s.last_said else c.last_said end,
             last_records = case when s.is_last_different then s.last_records else c.last_records end,
             last_diagnostic = case when s.is_last_different then s.last_diagnostic else c.last_diagnostic end,
             loaded_position = case when s.is_loaded_different then s.loaded_position else c.loaded_position end,
             loaded_records = case when s.is_loaded_different then s.loaded_records else c.loaded_records end,
             suspicious_position = case when s.is_suspicious_different then s.suspicious_position else c.suspicious_position end,
             emptied_position = case when s.is_emptied_different then s.emptied_position else c.emptied_position end,
             withheld_position = case when s.is_withheld_different then s.withheld_position else c.withheld_position end
        from differing s join locked using (stored_row)
       where c.ctid = s.stored_row and not (s.is_last_different and s.last_position is null)
    )
    select (select count(*) from differing)::int - (select count(*) from locked)::int
           - (select count(*) from inserted)::int as left`);
  return rows[0]?.left ?? 0;
}

import { type Preparing, statement } from '../../postgres/prepared.ts';
import type { CoverageEntry } from '../registers.ts';
import { coverage } from '../schema/load-results.ts';
import { runs, windows } from '../schema/work.ts';

/** A day that a window is about and, if it requests instruments, one of them. */
type Entry = Pick<CoverageEntry, 'day' | 'instrument'>;

/**
 * Selects an entry that a window has to request. Of `entries`, JSON of `Entry`, those stay that another run has not covered
 * since the window's run began, and that no later night requests; all of them, if the run requests again what is covered.
 * The entry is looked up by the key of the coverage; later nights by the windows of their runs.
 */
const selectOpenEntry = statement<
  { windowId: number; entries: string; isDated: boolean },
  Record<string, unknown>
>`
  select
    from ${windows} w
    join ${runs} r on r.id = w.run_id,
         jsonb_to_recordset(${'entries'}::jsonb) as entry(day date, instrument text)
   where w.id = ${'windowId'}::bigint
     and (
       -- The run requests again what is covered.
       (
         r.kind <> 'nightly'
         and exists (
           select from jsonb_array_elements(r.request->'targets') target
            where target->>'operation' = w.operation
              and target->>'exchange' = w.exchange
              and target->>'refetchFrom' is not null
         )
       )
       or not (
         -- Another run has covered the entry since the run of the window began; of a night, a later one has requested it.
         exists (
           select from ${coverage} c
            where c.operation = w.operation
              and c.exchange = w.exchange
              and c.variant = w.variant
              and c.day = entry.day
              and c.instrument = entry.instrument
              and c.checked_at > r.started_at
              and c.run_id <> w.run_id
              and c.diagnostic is null
              and (
                c.state in ('loaded', 'empty', 'holiday')
                or (
                  c.state = 'not_published'
                  and r.kind = 'nightly'
                  and exists (
                    select from ${runs} later where later.id = c.run_id and later.id > r.id and later.kind = 'nightly'
                  )
                )
              )
         )
         -- A later night will request the entry; unless isDated, whatever the days of its window.
         or (
           r.kind = 'nightly'
           and exists (
             select from ${windows} other join ${runs} later on later.id = other.run_id
              where other.run_id > w.run_id
                and later.kind = 'nightly'
                and later.state = 'running'
                and not other.is_filtered
                and other.state in ('pending', 'running')
                and other.operation = w.operation
                and other.exchange = w.exchange
                and other.variant = w.variant
                and other.params = w.params
                and (not ${'isDated'}::boolean or entry.day between other.from_date and other.to_date)
                and (
                  entry.instrument = any (other.instruments)
                  or (entry.instrument = '' and other.instruments = '{}')
                )
           )
         )
       )
     )
   limit 1`;

/**
 * True if every entry of a window was covered by another run since its own was planned. Of a night, because nights
 * accumulate while a key is refused, so are those that a later night requests, or has requested, whatever the
 * response was. A run that requests again what is covered makes all of its requests, unless it is a night.
 *
 * @param isDated whether the response depends on the days of the window, and not on the day of the call.
 */
export async function isOvertaken(
  db: Preparing,
  windowId: number,
  entries: readonly Entry[],
  isDated: boolean,
): Promise<boolean> {
  if (entries.length === 0) return false;
  const open = await selectOpenEntry(db, { windowId, entries: JSON.stringify(entries), isDated });
  return open.rowCount === 0;
}

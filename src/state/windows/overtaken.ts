import { sql } from 'drizzle-orm';
import { type Preparing, statement } from '../../postgres/prepared.ts';
import type { CoverageEntry } from '../registers.ts';
import { coverage } from '../schema/load-results.ts';
import { runs, windows } from '../schema/work.ts';
import { WINDOW_TRANSITIONS } from './transitions.ts';

// Conditions on a window `w` of a run `r`, and on one of its entries, `q`.

/** The run requests again what is covered. */
const REQUESTS_AGAIN = sql`(
  r.kind <> 'nightly'
  and exists (
    select from jsonb_array_elements(r.request->'targets') t
     where t->>'operation' = w.operation
       and t->>'exchange' = w.exchange
       and t->>'refetchFrom' is not null
  )
)`;

/** A run that is a night was begun later. */
const IS_OF_LATER_NIGHT = sql`exists (
  select from ${runs} m where m.id = c.run_id and m.id > r.id and m.kind = 'nightly'
)`;

/** Another run has covered the entry since the run of the window began; of a night, a later one has requested it. */
const IS_COVERED = sql`exists (
  select from ${coverage} c
   where c.operation = w.operation
     and c.exchange = w.exchange
     and c.variant = w.variant
     and c.day = q.day
     and c.instrument = q.instrument
     and c.checked_at > r.started_at
     and c.run_id <> w.run_id
     and c.diagnostic is null
     and (
       c.state in ('loaded', 'empty', 'holiday')
       or (c.state = 'not_published' and r.kind = 'nightly' and ${IS_OF_LATER_NIGHT})
     )
)`;

/** A later night will request the entry; unless `isDated`, whatever the days of its window. */
const IS_LEFT_TO_LATER_NIGHT = sql`(
  r.kind = 'nightly'
  and exists (
    select from ${windows} n join ${runs} m on m.id = n.run_id
     where n.run_id > w.run_id
       and m.kind = 'nightly'
       and m.state = 'running'
       and not n.is_filtered
       and n.state in ${[...WINDOW_TRANSITIONS.claim.from]}
       and n.operation = w.operation
       and n.exchange = w.exchange
       and n.variant = w.variant
       and n.params = w.params
       and (not ${sql.placeholder('isDated')}::boolean or q.day between n.from_date and n.to_date)
       and (q.instrument = any (n.instruments) or (q.instrument = '' and n.instruments = '{}'))
  )
)`;

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
  select from ${windows} w join ${runs} r on r.id = w.run_id,
         jsonb_to_recordset(${'entries'}::jsonb) as q (day date, instrument text)
   where w.id = ${'windowId'}::bigint
     and (${REQUESTS_AGAIN} or not (${IS_COVERED} or ${IS_LEFT_TO_LATER_NIGHT}))
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

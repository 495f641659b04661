import { type Preparing, statement } from '../../postgres/prepared.ts';
import type { CoverageEntry } from '../registers.ts';
import { loads } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';

/** The load of the response that is repeated. */
interface RepeatedLoad extends Readonly<Record<'responseId' | 'fetched' | 'stale' | 'duplicate', number>> {
  readonly coverage: readonly CoverageEntry[];
}

/** A response, by its window, of which it is looked whether it repeats a load. */
interface ResponseToCompare extends Record<string, unknown> {
  readonly windowId: number;
  /** Of its bytes and the code that read it. */
  readonly digest: string;
  readonly position: string;
  /** The data sets that fill the same tables. */
  readonly operations: readonly string[];
  readonly tradingDays: readonly string[];
}

/**
 * The load whose rows are stored now, if a response repeats it: the last load that may be about its days, whatever
 * operation, import or replay it is of, was of the same bytes to the same request, read by the same code, without rejects,
 * warnings or suspicions, and said of each trading day that it is loaded. Loads are found by loads_requested_idx.
 */
const selectRepeated = statement<ResponseToCompare, RepeatedLoad & Record<string, unknown>>`
  select r.id::float8 as "responseId", l.fetched::float8, l.stale::float8, l.duplicate::float8, said.coverage
    from ${windows} w
    join ${loads} l
      on l.digest = ${'digest'}
     and (l.operation, l.exchange, l.from_date, l.to_date, l.instruments, l.variant, l.is_filtered)
       = (w.operation, w.exchange, w.from_date, w.to_date, w.instruments, w.variant, w.is_filtered)
    join ${windows} loaded on loaded.id = l.window_id and loaded.params = w.params
    join ${responses} r on r.position = l.position
   cross join lateral (
     select array_agg(entry.day order by entry.day) as days,
            jsonb_agg(jsonb_build_object('day', entry.day, 'instrument', entry.instrument, 'variant', r.variant,
              'state', entry.said, 'records', entry.records)) as coverage
       from etl.said_of_entries(r.to_date, r.instruments, r.said, r.records, r.diagnostic, r.entries)
         as entry(day, instrument, said, records, diagnostic)
   ) said
   where w.id = ${'windowId'}::bigint
     and w.instruments = '{}'
     and not w.is_filtered
     and l.position < ${'position'}::timestamptz
     and l.rejected = 0
     and loaded.state = 'loaded'
     and loaded.warnings = '{}'
     and loaded.suspicious is null
     and r.said = 'loaded'
     and said.days = ${'tradingDays'}::date[]
     and not exists (
       select from ${loads} other
        where other.operation = any (${'operations'}::text[])
          and other.exchange = w.exchange
          and other.from_date <= w.to_date
          and other.to_date >= w.from_date
          and other.id <> l.id
          and (other.state > l.state or other.position >= l.position)
     )`;

/** Finds the load that a response repeats; null if it repeats none. */
export async function findRepeated(db: Preparing, response: ResponseToCompare): Promise<RepeatedLoad | null> {
  const { rows } = await selectRepeated(db, response);
  return rows[0] ?? null;
}

/** Notes a response that has the same bytes, and says the same, as a kept one, `copiedId`. */
export const copyResponse = statement<
  {
    readonly windowId: number;
    readonly position: string;
    readonly fetchedAt: string;
    readonly calledOn: string;
    readonly copiedId: number;
  },
  Record<string, unknown>
>`
  insert into ${responses} (position, run_id, window_id, operation, exchange, from_date, to_date, instruments, params, variant,
    is_filtered, called_on, hash, content_type, fetched_at, is_believed, said, records, diagnostic, entries, is_suspicious)
  select ${'position'}::timestamptz, w.run_id, w.id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments, w.params,
         w.variant, w.is_filtered, ${'calledOn'}::date, copied.hash, copied.content_type, ${'fetchedAt'}::timestamptz,
         copied.is_believed, copied.said, copied.records, copied.diagnostic, copied.entries, copied.is_suspicious
    from ${windows} w, ${responses} copied
   where w.id = ${'windowId'}::bigint and copied.id = ${'copiedId'}::bigint`;

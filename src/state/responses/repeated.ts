import { statement } from '../../postgres/prepared.ts';
import type { CoverageEntry } from '../registers.ts';
import { loads } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';

/**
 * Selects what became of the records of the response with this digest and what it said of its days, if no other one was
 * loaded later, or was requested later, that may be about them: then its rows are what is stored. `operations`: all that
 * fill its tables, by whatever call, import or replay.
 */
export const selectRepeated = statement<
  Record<'digest' | 'position' | 'operation' | 'exchange' | 'to', string> & { operations: readonly string[] },
  Record<'fetched' | 'stale' | 'duplicate', number> & {
    hash: string;
    contentType: string | null;
    coverage: readonly CoverageEntry[];
  }
>`
  select l.fetched::float8, l.stale::float8, l.duplicate::float8, r.hash, r.content_type as "contentType",
         (select jsonb_agg(jsonb_build_object('day', entry.day, 'instrument', '', 'variant', '', 'state', entry.said,
                   'records', entry.records) order by entry.day)
            from etl.said_of_entries(r.to_date, r.instruments, r.said, r.records, r.diagnostic, r.entries)
              as entry(day, instrument, said, records, diagnostic)) as coverage
    from ${loads} l join ${responses} r on r.position = l.position
   where (l.operation, l.exchange, l.to_date) = (${'operation'}::text, ${'exchange'}::text, ${'to'}::date)
     and l.digest = ${'digest'}::text
     and l.position < ${'position'}::timestamptz
     and r.hash is not null
     and not exists (
       select from ${loads} other
        where other.id <> l.id
          and other.operation = any(${'operations'}::text[])
          and other.exchange = l.exchange
          and other.from_date <= l.to_date
          and other.to_date >= l.from_date
          and (other.state > l.state or other.position >= l.position)
     )`;

import { statement } from '../../postgres/prepared.ts';
import type { CoverageEntry } from '../registers.ts';
import { loads } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';

/**
 * Selects what became of the records of an earlier response with the same digest, and what it said of its days. No row if
 * another load of the same tables and of any of these days came later, in the order of loads or of responses: only what the
 * last one said is what is stored. A response that has a digest lists whole days, so no entry has an instrument or variant.
 *
 * `operations`: all that fill its tables, by whatever call, import or replay.
 */
export const selectRepeated = statement<
  Record<'digest' | 'position' | 'operation' | 'exchange' | 'to', string> & { operations: readonly string[] },
  Record<'fetched' | 'stale' | 'duplicate', number> & {
    hash: string;
    contentType: string | null;
    coverage: readonly CoverageEntry[];
  }
>`
  select load.fetched::float8, load.stale::float8, load.duplicate::float8, response.hash, response.content_type as "contentType",
         (select jsonb_agg(jsonb_build_object('day', entry.day, 'instrument', '', 'variant', '', 'state', entry.said,
                   'records', entry.records) order by entry.day)
            from etl.said_of_entries(response.to_date, response.instruments, response.said, response.records, response.diagnostic, response.entries)
              as entry(day, instrument, said, records, diagnostic)) as coverage
    from ${loads} load join ${responses} response on response.position = load.position
   where (load.operation, load.exchange, load.to_date) = (${'operation'}::text, ${'exchange'}::text, ${'to'}::date)
     and load.digest = ${'digest'}::text
     and load.position < ${'position'}::timestamptz
     and response.hash is not null
     and not exists (
       select from ${loads} other
        where other.id <> load.id
          and other.operation = any(${'operations'}::text[])
          and other.exchange = load.exchange
          and other.from_date <= load.to_date
          and other.to_date >= load.from_date
          and (other.state > load.state or other.position >= load.position)
     )`;

import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { PipelineError } from '../../core/errors.ts';
import { SAID } from '../responses/response-facts.ts';
import { coverage, withdrawals } from '../schema/load-results.ts';
import { responses } from '../schema/source-tables.ts';
import { dayEffectsSql } from '../withdrawals.ts';

// The registers of `etl.coverage` (registers.ts) are the sum of what each response said of its entries and did with the
// rows of days (withdrawals.ts), with the newest failed call or holiday.

/** The columns of each register. */
const REGISTERS = {
  last: ['last_position', 'last_said', 'last_records', 'last_diagnostic'],
  loaded: ['loaded_position', 'loaded_records'],
  suspicious: ['suspicious_position'],
  emptied: ['emptied_position'],
  withheld: ['withheld_position'],
} as const;
export const REGISTER_NAMES = Object.keys(REGISTERS) as readonly (keyof typeof REGISTERS)[];
const COLUMNS = Object.values(REGISTERS).flat();
const KEY_COLUMNS = ['operation', 'exchange', 'day', 'instrument', 'variant'];
const KEY = sql.raw(KEY_COLUMNS.join(', '));
const list = (columns: readonly SQL[]) => sql.join([...columns], sql`, `);
/** A column as it is stored, and as it is in the sum. */
const stored = (column: string) => sql.raw(`b.stored_${column}`);
const summed = (column: string) => sql.raw(/emptied|withheld/.test(column) ? `m.${column}` : `b.${column}`);

/**
 * True if a register differs from the sum. One that is later, of a call without a response or of a response of which it
 * is not known what it said, is right.
 */
function differs(name: keyof typeof REGISTERS): SQL {
  const columns = REGISTERS[name];
  const [position] = columns;
  return sql`case when (${list(columns.map(stored))}) is not distinct from (${list(columns.map(summed))}) then false
      when ${stored(position)} > coalesce(${summed(position)}, '-infinity') then exists (
        select from ${responses} k where k.position = ${stored(position)} and (k.said is not null or k.entries is not null))
      else true end`;
}

/** Which entries are compared. */
interface Compared {
  readonly operations: readonly string[];
  readonly exchange: string;
  /** Null: all. */
  readonly days: { readonly from: string; readonly to: string } | null;
}

/**
 * `compared`: the registers of entries as the sum of what the responses said and did, and whether those that are stored
 * differ.
 */
export function comparingCoverage({ operations, exchange, days }: Compared): SQL {
  const isOfPair = (row: SQL) =>
    sql`${row}operation = any(${sql.param(operations)}::text[]) and ${row}exchange = ${exchange}::text`;
  const isWithin = days === null ? sql`` : sql` and day between ${days.from}::date and ${days.to}::date`;
  // Some responses are about the day of their call.
  const mayBeWithin =
    days === null
      ? sql``
      : sql` and (a.from_date <= ${days.to}::date and a.to_date >= ${days.from}::date or a.called_on between ${days.from}::date and ${days.to}::date)`;
  const requested = sql`${isOfPair(sql`a.`)}${mayBeWithin}`;
  const isLoaded = sql` filter (where said = 'loaded')`;
  const newest = (column: SQL, filter = sql``) =>
    sql`(array_agg(${column} order by position desc)${filter})[1]`;
  return sql`
    accepted as materialized (
      select w.position, coalesce(w.day, o.called_on) as day
        from ${withdrawals} w join ${responses} o on o.position = w.position where w.state = 'accepted' and w.remaining_rows = 0
    ), said as (
      select a.operation, a.exchange, q.day, q.instrument, a.variant, a.position, q.records, q.diagnostic, a.is_suspicious,
             case when q.said = 'not_published' and q.instrument = '' and (a.position, q.day) in (select position, day from accepted)
                  then 'empty' else q.said end as said
        from ${responses} a, ${SAID} where ${requested}
    ), effects as (${dayEffectsSql(requested)}),
    summed as (
      select ${KEY}, max(position) as last_position, ${newest(sql`said`)} as last_said, ${newest(sql`records`)} as last_records,
             ${newest(sql`diagnostic`)} as last_diagnostic, max(position)${isLoaded} as loaded_position,
             ${newest(sql`records`, isLoaded)} as loaded_records, max(position) filter (where is_suspicious) as suspicious_position
        from said where true${isWithin} group by ${KEY}
    ), stored as (
      select ${KEY}, ctid as row, ${list(COLUMNS.map((name) => sql.raw(`${name} as stored_${name}`)))} from ${coverage} where ${isOfPair(sql``)}${isWithin}
    ), compared as (
      select b.row, ${list(KEY_COLUMNS.map((name) => sql.raw(`b.${name}`)))},
             ${list(COLUMNS.map((name) => sql`${summed(name)} as ${sql.identifier(name)}`))},
             ${list(REGISTER_NAMES.map((name) => sql`${differs(name)} as ${sql.identifier(`${name}_differs`)}`))}
        from (select * from stored full join summed using (${KEY})) b
        left join effects m on m.operation = b.operation and m.exchange = b.exchange and m.day = b.day and m.variant = b.variant and b.instrument = ''
    )`;
}

/**
 * Writes the registers of entries as the sum of the facts, where responses that were read again say something else, or
 * something for the first time, or a person has accepted what one did.
 *
 * @throws PipelineError `database_locked` if other loads kept moving rows meanwhile.
 */
export async function sumCoverage(db: NodePgDatabase, requested: Compared): Promise<void> {
  const flag = (name: keyof typeof REGISTERS) => sql.raw(`s."${name}_differs"`);
  const changes = REGISTER_NAMES.flatMap((name) =>
    REGISTERS[name].map(
      (column) =>
        sql`${sql.identifier(column)} = case when ${flag(name)} then ${sql.raw(`s.${column}`)} else ${sql.raw(`c.${column}`)} end`,
    ),
  );
  // Locked in key order, so that two writers cannot deadlock. A row that another load has moved meanwhile is compared again.
  const write = sql`
    with ${comparingCoverage(requested)}, differing as materialized (
      select s.* from compared s where ${sql.join(REGISTER_NAMES.map(flag), sql` or `)}
    ), locked as materialized (
      select c.ctid as row from ${coverage} c join differing s on s.row = c.ctid
       order by c.operation, c.exchange, c.day, c.instrument, c.variant for update of c
    ), removed as (
      delete from ${coverage} c using differing s join locked using (row) where c.ctid = s.row and s.last_differs and s.last_position is null
    ), inserted as (
      insert into ${coverage} (${KEY}, ${list(COLUMNS.map((column) => sql.raw(column)))}, run_id, window_id, checked_at)
      select ${list([...KEY_COLUMNS, ...COLUMNS].map((column) => sql.raw(`s.${column}`)))}, a.run_id, a.window_id, a.fetched_at
        from differing s join ${responses} a on a.position = s.last_position where s.row is null
       order by s.operation, s.exchange, s.day, s.instrument, s.variant
      on conflict on constraint coverage_pkey do nothing returning 1
    ), changed as (
      update ${coverage} c set ${list(changes)} from differing s join locked using (row)
       where c.ctid = s.row and not (s.last_differs and s.last_position is null)
    )
    select (select count(*) from differing)::int - (select count(*) from locked)::int - (select count(*) from inserted)::int as left`;
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const { rows } = await db.execute<{ left: number }>(write);
    if ((rows[0]?.left ?? 0) === 0) return;
  }
  const { operations, exchange } = requested;
  throw new PipelineError(
    `other loads kept changing the coverage of ${operations.join(', ')} ${exchange} while it was compared with its facts`,
    { kind: 'database_locked' },
  );
}

/** So often rows may be moved by others while they are compared. */
const MOST_TRIES = 10;

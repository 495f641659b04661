import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { PipelineError } from '../../../core/errors.ts';
import type { Position } from '../../../core/position.ts';
import type { Database } from '../../database/database.ts';
import { isCanceled } from '../../database/database-errors.ts';
import { transaction } from '../../database/transaction.ts';
import { SAID } from '../responses/response-facts.ts';
import { positionText } from '../schema/columns.ts';
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
type Register = keyof typeof REGISTERS;
const NAMES = Object.keys(REGISTERS) as Register[];
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
function differs(name: Register, since: Position | null): SQL {
  const columns = REGISTERS[name];
  const [position] = columns;
  const isOlder =
    since === null
      ? sql``
      : sql`when ${summed(position)} is null and coalesce(${stored(position)} <= ${since}::timestamptz, true) then false`;
  return sql`case ${isOlder} when (${list(columns.map(stored))}) is not distinct from (${list(columns.map(summed))}) then false
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
  /** If given, only what was said since this position is compared, which takes less time. */
  readonly since?: Position;
}

/**
 * `compared`: the registers of entries as the sum of what the responses said and did, and whether those that are stored
 * differ.
 */
function comparing({ operations, exchange, days, since }: Compared): SQL {
  const isOf = (row: SQL) =>
    sql`${row}operation = any(${sql.param(operations)}::text[]) and ${row}exchange = ${exchange}::text`;
  const isWithin = days === null ? sql`` : sql` and day between ${days.from}::date and ${days.to}::date`;
  // Some responses are about the day of their call.
  const mayBeWithin =
    days === null
      ? sql``
      : sql` and (a.from_date <= ${days.to}::date and a.to_date >= ${days.from}::date or a.called_on between ${days.from}::date and ${days.to}::date)`;
  const isSince = since === undefined ? sql`` : sql` and a.position > ${since}::timestamptz`;
  const requested = sql`${isOf(sql`a.`)}${mayBeWithin}${isSince}`;
  const newest = (column: SQL) => sql`(array_agg(${column} order by position desc)`;
  const isLoaded = sql` filter (where said = 'loaded')`;
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
      select ${KEY}, max(position) as last_position, ${newest(sql`said`)})[1] as last_said, ${newest(sql`records`)})[1] as last_records,
             ${newest(sql`diagnostic`)})[1] as last_diagnostic, max(position)${isLoaded} as loaded_position,
             ${newest(sql`records`)}${isLoaded})[1] as loaded_records, max(position) filter (where is_suspicious) as suspicious_position
        from said where true${isWithin} group by ${KEY}
    ), stored as (
      select ${KEY}, ctid as row, ${list(COLUMNS.map((name) => sql.raw(`${name} as stored_${name}`)))} from ${coverage} where ${isOf(sql``)}${isWithin}
    ), compared as (
      select b.row, ${list(KEY_COLUMNS.map((name) => sql.raw(`b.${name}`)))},
             ${list(COLUMNS.map((name) => sql`${summed(name)} as ${sql.identifier(name)}`))},
             ${list(NAMES.map((name) => sql`${differs(name, since ?? null)} as ${sql.identifier(`${name}_differs`)}`))}
        from (select * from stored ${sql.raw(since === undefined ? 'full' : 'right')} join summed using (${KEY})) b
        left join effects m on m.operation = b.operation and m.exchange = b.exchange and m.day = b.day and m.variant = b.variant and b.instrument = ''
    )`;
}

/** Entries of which what is stored is not the sum of what the responses said of them, and did. */
interface Differing {
  readonly day: string;
  readonly instrument: string;
  readonly variant: string;
  readonly operation: string;
  /** Which of the registers. */
  readonly registers: readonly Register[];
  /** How many entries there are in all. */
  readonly entries: number;
}

/** The first entries of some operations and an exchange of which `etl.coverage` is not the sum of the facts. */
export async function differingEntries(
  db: NodePgDatabase,
  requested: Omit<Compared, 'days'>,
  limit: number,
): Promise<Differing[]> {
  const flag = (name: Register) => sql.identifier(`${name}_differs`);
  const found = await db.execute<Differing & Record<string, unknown>>(sql`
    with ${comparing({ ...requested, days: null })}
    select operation, day::text, instrument, variant, count(*) over ()::int as entries,
           array_remove(array[${list(NAMES.map((name) => sql`case when ${flag(name)} then ${sql.raw(`'${name}'`)} end`))}], null) as registers
      from compared where ${sql.join(NAMES.map(flag), sql` or `)}
     order by operation, day, instrument, variant limit ${limit}`);
  return found.rows;
}

/** How the coverage of some operations and exchanges compares with its facts. */
interface Sums {
  /** Operations and exchanges with entries that differ: how many, and the first one. */
  readonly differing: readonly (Differing & { readonly exchange: string })[];
  /** Operations and exchanges with so many requests that at most those of the last day could be compared. */
  readonly left: readonly string[];
}

/**
 * Compares all coverage with its facts, one operation and exchange after the other. Where that takes too long, only what
 * was said in the last day is compared.
 */
export async function compareSums(database: Database, withinMs: number): Promise<Sums> {
  const db = database.drizzle;
  const next = (after: SQL) => sql`
    select operation, exchange from ${responses} where ${after} order by operation, exchange limit 1`;
  // Found with the index: there may be millions of responses.
  const { rows: pairs } = await db.execute<{ operation: string; exchange: string; since: Position }>(sql`
    with recursive pair as (
      (${next(sql`true`)}) union all select n.* from pair p, lateral (${next(sql`(operation, exchange) > (p.operation, p.exchange)`)}) n
    ) select pair.*, ${positionText(sql`(select max(position) - interval '1 day' from ${responses})`)} as since from pair`);
  const until = performance.now() + withinMs;
  const differing: Sums['differing'][number][] = [];
  const left: string[] = [];
  for (const [at, { operation, exchange, since }] of pairs.entries()) {
    const requested = { operations: [operation], exchange };
    // Each has its share of the time, and what others have left of theirs: half of it for each of the two ways.
    const share = Math.max(100, Math.ceil((until - performance.now()) / (pairs.length - at) / 2));
    const compare = async (limited: { readonly since?: Position }) => {
      const [first] = await transaction(database, async (tx) => {
        await tx.execute(sql.raw(`set local statement_timeout = ${share}`));
        return differingEntries(tx, { ...requested, ...limited }, 1);
      });
      if (first !== undefined) differing.push({ ...first, exchange });
    };
    const note = (error: unknown) => {
      if (!isCanceled(error)) throw error;
    };
    try {
      await compare({});
    } catch (error) {
      note(error);
      left.push(`${operation} ${exchange}`);
      await compare({ since }).catch(note);
    }
  }
  return { differing, left };
}

/**
 * Writes the registers of entries as the sum of the facts, where responses that were read again say something else, or
 * something for the first time, or a person has accepted what one did.
 *
 * @throws PipelineError `database_locked` if other loads kept moving rows meanwhile.
 */
export async function sumCoverage(db: NodePgDatabase, requested: Compared): Promise<void> {
  const flag = (name: Register) => sql.raw(`s."${name}_differs"`);
  const changes = NAMES.flatMap((name) =>
    REGISTERS[name].map(
      (column) =>
        sql`${sql.identifier(column)} = case when ${flag(name)} then ${sql.raw(`s.${column}`)} else ${sql.raw(`c.${column}`)} end`,
    ),
  );
  // Locked in key order, so that two writers cannot deadlock. A row that another load has moved meanwhile is compared again.
  const write = sql`
    with ${comparing(requested)}, differing as materialized (
      select s.* from compared s where ${sql.join(NAMES.map(flag), sql` or `)}
    ), locked as materialized (
      select c.ctid as row from ${coverage} c join differing s on s.row = c.ctid
       order by c.operation, c.exchange, c.day, c.instrument, c.variant for update of c
    ), notRequested as (
      delete from ${coverage} c using differing s join locked using (row) where c.ctid = s.row and s.last_differs and s.last_position is null
    ), requested_first as (
      insert into ${coverage} (${KEY}, ${list(COLUMNS.map((column) => sql.raw(column)))}, run_id, window_id, checked_at)
      select ${list([...KEY_COLUMNS, ...COLUMNS].map((column) => sql.raw(`s.${column}`)))}, a.run_id, a.window_id, a.fetched_at
        from differing s join ${responses} a on a.position = s.last_position where s.row is null
       order by s.operation, s.exchange, s.day, s.instrument, s.variant
      on conflict on constraint coverage_pkey do nothing returning 1
    ), changed as (
      update ${coverage} c set ${list(changes)} from differing s join locked using (row)
       where c.ctid = s.row and not (s.last_differs and s.last_position is null)
    )
    select (select count(*) from differing)::int - (select count(*) from locked)::int - (select count(*) from requested_first)::int as left`;
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

import { isDeepStrictEqual } from 'node:util';
import { and, between, desc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { dataSetsAlsoFilling } from '../../operations/operation.ts';
import { dataSets } from '../../operations/registry.ts';
import type { AnswerFilter } from './responses/to-replay.ts';
import { dayRows, withdrawals } from './schema/work.ts';

// Rows that whole answers did not list any more: what was withdrawn, and what was not because it was too much
// to be believed. A person may accept the latter.

/** The key of a row, as text. */
export type RowKey = Readonly<Record<string, string | null>>;

/** What a load did about the rows of one day that its answer did not list. */
export interface DayWithdrawal {
  /** Name of the table in `market`. */
  readonly table: string;
  /** Null where the table has no days. */
  readonly day: string | null;
  /** Rows that were not listed. */
  readonly gone: number;
  /** The most rows the day had, since a person last accepted that it has fewer. */
  readonly most: number;
  /** Rows it has left, or would have. */
  readonly left: number;
  /** Why they were not withdrawn; null where they were. */
  readonly refused: string | null;
  /** Keys of the rows that were not withdrawn; empty where they were. */
  readonly rows: readonly RowKey[];
  /** When the answer was fetched that did not list them, where it is not the one that is being loaded. */
  readonly fetchedAt?: string;
}

/** The most rows each day of a table ever had, for the SQL of withdrawals, which is text. */
export const DAY_ROWS = 'etl.day_rows';

/**
 * SQL that notes the rows of days where they are more than ever before.
 *
 * @param select table, exchange, day, rows.
 * @param notes.into the table that is written.
 * @param notes.accepted SQL of days from now on compared with these rows, even if they are fewer.
 */
export const raiseDayRows = (
  select: string,
  { into, accepted }: { readonly into: string; readonly accepted: string },
) => `insert into ${into} as d (table_name, exchange, day, most) ${select}
      on conflict (table_name, exchange, day) do update set most = excluded.most
       where excluded.most > d.most or d.day = any(${accepted})`;

/** SQL that makes the rows of days those of another table. $1: exchange, $2: days. */
export const replaceDayRows = (table: string, from: string) => `
    with outdated as (
      delete from ${DAY_ROWS} d where d.table_name = '${table}' and d.exchange = $1 and d.day = any($2::date[])
         and not exists (select from ${from} f where f.day = d.day)
    )
    insert into ${DAY_ROWS} as d select * from ${from} f where f.day = any($2::date[]) order by f.day
    on conflict (table_name, exchange, day) do update set most = excluded.most where excluded.most <> d.most`;

/** In it, the day of a table that has none. */
export const NO_DAY = '0001-01-01';

/** Refused withdrawals of tables that nobody has decided yet. */
const isUndecided = (exchange: string, tables: readonly string[]) =>
  and(
    eq(withdrawals.state, 'refused'),
    inArray(withdrawals.table_name, [...tables]),
    eq(withdrawals.exchange, exchange),
  );

/**
 * Notes what a load did about rows that were not listed. A refusal is valid until another whole answer of its
 * day, or a person, has decided.
 */
export async function writeWithdrawals(
  tx: NodePgDatabase,
  load: {
    readonly loadId: number;
    readonly windowId: number;
    readonly runId: number;
    readonly operation: string;
    readonly exchange: string;
    readonly fetchedAt: Date;
  },
  decided: readonly {
    readonly table: string;
    readonly days: { readonly from: string; readonly to: string } | null;
  }[],
  found: readonly DayWithdrawal[],
): Promise<void> {
  const unknown = found.filter(({ refused }) => refused === null);
  const refusals = found.flatMap((one) =>
    one.refused === null ? [] : [{ ...one, fetchedAt: one.fetchedAt ?? load.fetchedAt.toISOString() }],
  );
  for (const { table, days } of decided) {
    const ofDays = days === null ? isNull(withdrawals.day) : between(withdrawals.day, days.from, days.to);
    const ofTable = refusals.filter((one) => one.table === table);
    unknown.push(...(await replaceRefusals(tx, { table, exchange: load.exchange, ofDays }, ofTable)));
  }
  unknown.push(...refusals.filter(({ table }) => !decided.some((one) => one.table === table)));
  if (unknown.length === 0) return;
  await tx.insert(withdrawals).values(
    unknown.map(({ table, day, gone, most, left, refused, rows, fetchedAt }) => ({
      load_id: load.loadId,
      window_id: load.windowId,
      run_id: load.runId,
      operation: load.operation,
      exchange: load.exchange,
      fetched_at: fetchedAt ?? load.fetchedAt.toISOString(),
      table_name: table,
      day,
      state: refused === null ? ('withdrawn' as const) : ('refused' as const),
      reason: refused,
      gone,
      most,
      rows_left: left,
      rows,
    })),
  );
}

/** Days of which a person has accepted that an answer lacks rows, and when that answer was fetched. */
export async function acceptedDays(
  tx: NodePgDatabase,
  { table, exchange }: { readonly table: string; readonly exchange: string },
): Promise<{ day: string; fetchedAt: string }[]> {
  const { table_name, state, day } = withdrawals;
  return tx
    .select({
      day: sql<string>`coalesce(${day}, ${NO_DAY})::text`,
      fetchedAt: sql<string>`to_json(${withdrawals.fetched_at})#>>'{}'`,
    })
    .from(withdrawals)
    .where(and(eq(table_name, table), eq(withdrawals.exchange, exchange), eq(state, 'accepted')));
}

/**
 * Copies what persons have accepted in another database, of the answers that were copied too: where those are
 * replayed, it counts. What is here already stays as it is.
 */
export async function copyAccepted(
  source: NodePgDatabase,
  target: NodePgDatabase,
  { operations, exchanges, from, to }: AnswerFilter,
): Promise<void> {
  const { operation, exchange, day } = withdrawals;
  const found = await source
    .select()
    .from(withdrawals)
    .where(
      and(
        eq(withdrawals.state, 'accepted'),
        operations === undefined
          ? undefined
          : inArray(operation, [...operations, ...dataSetsAlsoFilling(dataSets, operations)]),
        exchanges === undefined ? undefined : inArray(exchange, [...exchanges]),
        from === undefined ? undefined : sql`coalesce(${day} >= ${from}, true)`,
        to === undefined ? undefined : sql`coalesce(${day} <= ${to}, true)`,
      ),
    )
    .orderBy(withdrawals.id);
  const known = await target.select().from(withdrawals).where(eq(withdrawals.state, 'accepted'));
  const nameOf = (one: (typeof found)[number]) =>
    [one.table_name, one.exchange, one.day, Date.parse(one.fetched_at)].join();
  const names = new Set(known.map(nameOf));
  const missing = found.filter((one) => !names.has(nameOf(one)));
  if (missing.length === 0) return;
  // They belong to no load here.
  const values = missing.map(({ id: _, ...one }) => ({ ...one, load_id: 0, run_id: 0, window_id: 0 }));
  await target.insert(withdrawals).values(values);
}

/** The undecided refusals of these days; NO_DAY where the table has none. */
export const onDays = (days: readonly string[]) =>
  sql`coalesce(${withdrawals.day}, ${NO_DAY}) = any(${sql.param(days)}::date[])`;

/**
 * After days were compared with their answers: a refusal that was noted and came out again stays, brought up to
 * date, any other of these days is outdated.
 *
 * @returns the refusals that were not noted yet.
 */
export async function replaceRefusals(
  tx: NodePgDatabase,
  { table, exchange, ofDays }: { readonly table: string; readonly exchange: string; readonly ofDays: SQL },
  refused: readonly (DayWithdrawal & { readonly fetchedAt: string })[],
): Promise<DayWithdrawal[]> {
  const { id, day, fetched_at, gone, most, rows_left, reason, rows } = withdrawals;
  const noted = await tx
    .select({ id, day, fetched_at, facts: { gone, most, rows_left, reason, rows } })
    .from(withdrawals)
    .where(and(isUndecided(exchange, [table]), ofDays));
  const isSame = (one: (typeof refused)[number], other: (typeof noted)[number]) =>
    one.day === other.day && Date.parse(one.fetchedAt) === Date.parse(other.fetched_at);
  for (const other of noted) {
    const one = refused.find((each) => isSame(each, other));
    const facts = one && {
      gone: one.gone,
      most: one.most,
      rows_left: one.left,
      reason: one.refused,
      rows: one.rows,
    };
    if (isDeepStrictEqual(facts, other.facts)) continue;
    await tx
      .update(withdrawals)
      .set(facts ?? { state: 'outdated' })
      .where(eq(id, other.id));
  }
  return refused.filter((one) => !noted.some((other) => isSame(one, other)));
}

/** Forgets what is known of the rows of tables that were emptied. */
export async function forgetWithdrawals(
  tx: NodePgDatabase,
  tables: readonly string[],
  exchange: string,
): Promise<void> {
  await tx
    .delete(dayRows)
    .where(and(inArray(dayRows.table_name, [...tables]), eq(dayRows.exchange, exchange)));
  await tx.update(withdrawals).set({ state: 'outdated' }).where(isUndecided(exchange, tables));
}

const asWithdrawal = {
  id: withdrawals.id,
  runId: withdrawals.run_id,
  windowId: withdrawals.window_id,
  operation: withdrawals.operation,
  exchange: withdrawals.exchange,
  table: withdrawals.table_name,
  day: withdrawals.day,
  state: withdrawals.state,
  gone: withdrawals.gone,
  most: withdrawals.most,
  left: withdrawals.rows_left,
  reason: withdrawals.reason,
  notedAt: sql<string>`to_json(${withdrawals.noted_at})#>>'{}'`,
};

/** Refused withdrawals that nobody has decided yet, the newest first, each with some of its rows. */
export function refusedWithdrawals(db: NodePgDatabase, limit: number, samples: number) {
  return db
    .select({
      ...asWithdrawal,
      rows: sql<RowKey[]>`(select coalesce(jsonb_agg(r.value order by r.ordinality), '[]')
        from jsonb_array_elements(${withdrawals.rows}) with ordinality r where r.ordinality <= ${samples})`,
    })
    .from(withdrawals)
    .where(eq(withdrawals.state, 'refused'))
    .orderBy(desc(withdrawals.id))
    .limit(limit);
}

/** What these runs withdrew, or did not: by day, in the order of the loads. */
export function withdrawalsOfRuns(db: NodePgDatabase, runIds: readonly number[]) {
  return db
    .select(asWithdrawal)
    .from(withdrawals)
    .where(inArray(withdrawals.run_id, [...runIds]))
    .orderBy(withdrawals.id);
}

/** A refused withdrawal; null where none of this number is undecided. */
export async function readRefusedWithdrawal(tx: NodePgDatabase, id: number) {
  const [found] = await tx
    .select({ ...asWithdrawal, rows: withdrawals.rows, fetchedAt: withdrawals.fetched_at })
    .from(withdrawals)
    .where(and(eq(withdrawals.id, id), eq(withdrawals.state, 'refused')));
  return found ?? null;
}

/** Does the window have a refused withdrawal that nobody has decided yet? */
export async function hasRefusals(tx: NodePgDatabase, windowId: number): Promise<boolean> {
  const refused = and(eq(withdrawals.window_id, windowId), eq(withdrawals.state, 'refused'));
  return (await tx.$count(withdrawals, refused)) > 0;
}

/** Notes that a person has accepted a withdrawal. From now on the day is compared with the rows it has now. */
export async function noteAccepted(
  tx: NodePgDatabase,
  accepted: {
    readonly id: number;
    readonly table: string;
    readonly exchange: string;
    readonly day: string | null;
    readonly rowsLeft: number;
    readonly by: string;
  },
): Promise<void> {
  const { id, table, exchange, day, rowsLeft, by } = accepted;
  await tx
    .update(withdrawals)
    .set({ state: 'accepted', accepted_by: by, accepted_at: sql`clock_timestamp()` })
    .where(eq(withdrawals.id, id));
  const values = { table_name: table, exchange, day: day ?? NO_DAY, most: rowsLeft };
  await tx
    .insert(dayRows)
    .values(values)
    .onConflictDoUpdate({
      target: [dayRows.table_name, dayRows.exchange, dayRows.day],
      set: { most: rowsLeft },
    });
}

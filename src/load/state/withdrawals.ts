import { isDeepStrictEqual } from 'node:util';
import { and, between, desc, eq, gte, inArray, isNull, lt, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { DayRange } from '../../core/days.ts';
import type { Place } from '../../core/place.ts';
import { placeText } from './schema/columns.ts';
import { dayRows, withdrawals } from './schema/load-results.ts';
import { answers } from './schema/source-tables.ts';

// Rows that full answers no longer listed: those that were withdrawn, and those that were not, because they were too
// many. A person may accept the latter.

/** The key of a row, as text. */
export type RowKey = Readonly<Record<string, string | null>>;

/** What a load did about the rows of one day that its answer did not list. */
export interface DayWithdrawal {
  /** Name of the table in `market`. */
  readonly table: string;
  /** Null where the table has no days. */
  readonly day: string | null;
  /** How many rows were not listed. */
  readonly gone: number;
  /** The most rows that the day ever had, since a person last accepted that it has fewer. */
  readonly most: number;
  /** How many rows the day has left, or would have. */
  readonly left: number;
  /** Why they were not withdrawn; null if they were. */
  readonly heldBack: string | null;
  /** Keys of the rows, if they were not withdrawn; else empty. */
  readonly rows: readonly RowKey[];
  /** The place of the answer that did not list them, if it is not the one that is being loaded. */
  readonly place?: Place;
}

/** The table of the most rows that each day of a table ever had, for SQL that is built as text. */
export const DAY_ROWS = 'etl.day_rows';

/** SQL that stores the most rows of days, in `into`: of table, exchange, day, place and number, which a query selects. */
export const storeDayRows = (select: string, into: string) =>
  `insert into ${into} (table_name, exchange, day, place, most) ${select}
      on conflict (table_name, exchange, day, place) do update set most = excluded.most`;

/** SQL that replaces the entries of days by those of another table. $1: exchange, $2: days. */
export const replaceDayRows = (table: string, from: string) => `
    with outdated as (
      delete from ${DAY_ROWS} d where d.table_name = '${table}' and d.exchange = $1 and d.day = any($2::date[])
         and not exists (select from ${from} f where f.day = d.day and f.place = d.place)
    )
    insert into ${DAY_ROWS} as d select * from ${from} f where f.day = any($2::date[]) order by f.day, f.place
    on conflict (table_name, exchange, day, place) do update set most = excluded.most where excluded.most <> d.most`;

/** The day of the entry of a table without days. */
export const NO_DAY = '0001-01-01';

/**
 * The condition that an answer later than the one that a row of `etl.coverage` is about took the last row of its day.
 * For the SQL of checks, which is built as text.
 */
export const hasEmptiedSql = (tables: readonly string[], row: string) =>
  `exists (select from etl.withdrawals w where w.table_name in (${tables.map((name) => `'${name}'`).join(', ')})
      and w.exchange = ${row}.exchange and w.day = ${row}.day and w.state in ('withdrawn', 'accepted') and w.rows_left = 0
      and w.place >= ${row}.loaded_place)`;

/** The condition for held-back withdrawals of these tables that nobody has decided yet. */
const isUndecided = (exchange: string, tables: readonly string[]) =>
  and(
    eq(withdrawals.state, 'refused'),
    inArray(withdrawals.table_name, [...tables]),
    eq(withdrawals.exchange, exchange),
  );

/**
 * Stores what a load did about rows that were not listed. A withdrawal that was held back stays open until another full answer
 * about its day, or a person, decides.
 */
export async function writeWithdrawals(
  tx: NodePgDatabase,
  load: {
    readonly loadId: number;
    readonly windowId: number;
    readonly runId: number;
    readonly operation: string;
    readonly exchange: string;
    readonly place: Place;
  },
  decided: readonly {
    readonly table: string;
    readonly days: DayRange | null;
  }[],
  found: readonly DayWithdrawal[],
): Promise<void> {
  const inserted = found.filter(({ heldBack }) => heldBack === null);
  const heldBack = found.flatMap((one) =>
    one.heldBack === null ? [] : [{ ...one, place: one.place ?? load.place }],
  );
  for (const { table, days } of decided) {
    const ofDays = days === null ? isNull(withdrawals.day) : between(withdrawals.day, days.from, days.to);
    const ofTable = heldBack.filter((one) => one.table === table);
    const replaced = { table, exchange: load.exchange, ofDays };
    for (const one of await replaceHeldBack(tx, replaced, ofTable)) inserted.push(one);
  }
  for (const one of heldBack) {
    if (!decided.some(({ table }) => table === one.table)) inserted.push(one);
  }
  if (inserted.length === 0) return;
  await tx.insert(withdrawals).values(
    inserted.map(({ table, day, gone, most, left, heldBack, rows, place }) => ({
      load_id: load.loadId,
      window_id: load.windowId,
      run_id: load.runId,
      operation: load.operation,
      exchange: load.exchange,
      place: place ?? load.place,
      table_name: table,
      day,
      state: heldBack === null ? ('withdrawn' as const) : ('refused' as const),
      reason: heldBack,
      gone,
      most,
      rows_left: left,
      rows,
    })),
  );
}

/** Days for which a person has accepted that an answer lacks rows, and its place. */
export async function acceptedDays(
  tx: NodePgDatabase,
  { table, exchange }: { readonly table: string; readonly exchange: string },
): Promise<{ day: string; place: Place }[]> {
  const { table_name, state, day } = withdrawals;
  return tx
    .select({
      day: sql<string>`coalesce(${day}, ${NO_DAY})::text`,
      place: placeText(withdrawals.place),
    })
    .from(withdrawals)
    .where(and(eq(table_name, table), eq(withdrawals.exchange, exchange), eq(state, 'accepted')))
    .orderBy(withdrawals.place);
}

/** The condition that a withdrawal is of one of these days; NO_DAY stands for a table without days. */
export const onDays = (days: readonly string[]) =>
  sql`coalesce(${withdrawals.day}, ${NO_DAY}) = any(${sql.param(days)}::date[])`;

/**
 * Updates what was held back on days whose answers were compared again: a withdrawal that is held back once more is
 * updated, the others become outdated.
 *
 * @returns those that are not stored yet.
 */
export async function replaceHeldBack(
  tx: NodePgDatabase,
  { table, exchange, ofDays }: { readonly table: string; readonly exchange: string; readonly ofDays: SQL },
  heldBack: readonly (DayWithdrawal & { readonly place: Place })[],
): Promise<DayWithdrawal[]> {
  const { id, day, gone, most, rows_left, reason, rows } = withdrawals;
  const stored = await tx
    .select({ id, day, place: placeText(withdrawals.place), facts: { gone, most, rows_left, reason, rows } })
    .from(withdrawals)
    .where(and(isUndecided(exchange, [table]), ofDays));
  const isSame = (one: (typeof heldBack)[number], other: (typeof stored)[number]) =>
    one.day === other.day && one.place === other.place;
  for (const other of stored) {
    const one = heldBack.find((each) => isSame(each, other));
    const facts = one && {
      gone: one.gone,
      most: one.most,
      rows_left: one.left,
      reason: one.heldBack,
      rows: one.rows,
    };
    if (isDeepStrictEqual(facts, other.facts)) continue;
    await tx
      .update(withdrawals)
      .set(facts ?? { state: 'outdated' })
      .where(eq(id, other.id));
  }
  return heldBack.filter((one) => !stored.some((other) => isSame(one, other)));
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

/** Withdrawals that are held back, which nobody has decided yet, the newest first, each with some of its rows. */
export function withdrawalsHeldBack(db: NodePgDatabase, limit: number, samples: number) {
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

/** What these runs withdrew or held back: by day, in the order of the loads. */
export function withdrawalsOfRuns(db: NodePgDatabase, runIds: readonly number[]) {
  return db
    .select(asWithdrawal)
    .from(withdrawals)
    .where(inArray(withdrawals.run_id, [...runIds]))
    .orderBy(withdrawals.id);
}

/** A withdrawal that was held back; null if there is none with this id that is still undecided. */
export async function readHeldBack(tx: NodePgDatabase, id: number) {
  const [found] = await tx
    .select({
      ...asWithdrawal,
      rows: withdrawals.rows,
      place: placeText(withdrawals.place),
      fetchedAt: sql<string>`coalesce((select a.fetched_at from ${answers} a where a.place = etl.withdrawals.place), ${withdrawals.place})`,
    })
    .from(withdrawals)
    .where(and(eq(withdrawals.id, id), eq(withdrawals.state, 'refused')));
  return found ?? null;
}

/** Stores that a person has accepted a withdrawal. */
export async function markAccepted(tx: NodePgDatabase, id: number, by: string): Promise<void> {
  await tx
    .update(withdrawals)
    .set({ state: 'accepted', accepted_by: by, accepted_at: sql`clock_timestamp()` })
    .where(eq(withdrawals.id, id));
}

/** From now on, a day is compared with these rows that the answer at a place left. */
export async function restartDayRows(
  tx: NodePgDatabase,
  left: {
    readonly table: string;
    readonly exchange: string;
    readonly day: string | null;
    readonly place: Place;
    readonly rows: number;
  },
): Promise<void> {
  const { table, exchange, place, rows } = left;
  const ofDay = { table_name: table, exchange, day: left.day ?? NO_DAY };
  await tx
    .delete(dayRows)
    .where(
      and(
        eq(dayRows.table_name, table),
        eq(dayRows.exchange, exchange),
        eq(dayRows.day, ofDay.day),
        gte(dayRows.place, place),
      ),
    );
  await tx.insert(dayRows).values({ ...ofDay, place, most: rows });
}

/**
 * Deletes withdrawals that were held back before this moment, and that later answers made meaningless. The others say what
 * became of rows, and the folds of answers follow from them.
 *
 * @param dryRun deletes nothing.
 * @returns how many.
 */
export async function pruneWithdrawals(db: NodePgDatabase, before: Date, dryRun: boolean): Promise<number> {
  const isOld = and(eq(withdrawals.state, 'outdated'), lt(withdrawals.noted_at, before.toISOString()));
  if (dryRun) return db.$count(withdrawals, isOld);
  return (await db.delete(withdrawals).where(isOld)).rowCount ?? 0;
}

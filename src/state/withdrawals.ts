import { isDeepStrictEqual } from 'node:util';
import { and, desc, eq, inArray, isNull, lt, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Position } from '../core/position.ts';
import type { TableDefinition } from '../declaration/table.ts';
import { daysAgo, isAnyOf, positionText } from './schema/columns.ts';
import { coverage, withdrawals } from './schema/load-results.ts';
import { responses } from './schema/source-tables.ts';

// Rows that full responses no longer listed: those that were withdrawn, and those that were not, because they were too
// many. A person may accept the latter.

/** The key of a row, as text. */
export type RowKey = Readonly<Record<string, string | null>>;

/** What a response did about the rows of one day that it did not list. */
export interface DayWithdrawal {
  /** Name of the table in `market`. */
  readonly table: string;
  /** Null where the table has no days. */
  readonly day: string | null;
  /** The position of the response. */
  readonly position: Position;
  /** How many rows were not listed. */
  readonly unlistedRows: number;
  /** The most rows that the day ever had, since a person last accepted that it has fewer. */
  readonly maxRows: number;
  /** How many rows the day has left, or would have. */
  readonly remainingRows: number;
  /** `outdated`: withheld, and a later response about the day has decided it. */
  readonly state: 'withdrawn' | 'withheld' | 'outdated';
  /** Why they were not withdrawn; null if they were. */
  readonly withheld: string | null;
  /** Keys of the rows, if they were not withdrawn; else empty. */
  readonly rows: readonly RowKey[];
}

/** What became of rows that responses did not list, by days of a table. */
export interface DecidedDays {
  readonly table: TableDefinition;
  /** Those that a response lists in full, or of which the responses were folded; null where the table has no days. */
  readonly days: readonly string[] | null;
  /** Whether they were folded: then it was decided anew what each response did about them. */
  readonly isFolded: boolean;
  /** The days with rows that were not listed. */
  readonly withdrawals: readonly DayWithdrawal[];
}

/** The day of the entry of a table without days. */
export const NO_DAY = '0001-01-01';

/**
 * SQL of the most rows that a day had since a person last accepted that it has fewer, as far as its withdrawals say:
 * each response that withdrew rows noted it. For SQL that is built as text.
 *
 * @param day an expression; null where the table has no days.
 */
export const mostRowsSql = (table: string, exchange: string, day: string | null) =>
  `(select case w.state when 'accepted' then w.remaining_rows else w.max_rows end from etl.withdrawals w
     where w.table_name = '${table}' and w.exchange = ${exchange} and w.day ${day === null ? 'is null' : `= ${day}`}
       and w.state in ('withdrawn', 'accepted') and w.unlisted_rows > 0 order by w.position desc limit 1)`;

/** The day of a withdrawal, or NO_DAY. */
const dayOrNone = sql<string>`coalesce(${withdrawals.day}, ${NO_DAY}::date)::text`;

const buildFacts = ({ state, withheld, unlistedRows, maxRows, remainingRows, rows }: DayWithdrawal) => ({
  state,
  reason: withheld,
  unlisted_rows: unlistedRows,
  max_rows: maxRows,
  remaining_rows: remainingRows,
  rows,
});

type WithdrawalFacts = Pick<
  typeof withdrawals.$inferSelect,
  'state' | 'reason' | 'unlisted_rows' | 'max_rows' | 'remaining_rows' | 'rows'
>;

/**
 * The facts of a stored withdrawal after a load; null if there is none any more. That a person has accepted it stays.
 *
 * @param withdrawal what the load or the fold found of it now.
 * @param isFolded whether the responses of the day were folded.
 */
function factsAfter(
  facts: WithdrawalFacts,
  withdrawal: DayWithdrawal | undefined,
  isFolded: boolean,
): WithdrawalFacts | null {
  const isAccepted = facts.state === 'accepted';
  if (withdrawal !== undefined) {
    const { unlisted_rows, max_rows, remaining_rows } = buildFacts(withdrawal);
    return isAccepted ? { ...facts, unlisted_rows, max_rows, remaining_rows } : buildFacts(withdrawal);
  }
  // The load lists all rows of the day, so what was withheld is outdated.
  if (!isFolded) return { ...facts, state: 'outdated' };
  return isAccepted ? { ...facts, unlisted_rows: 0 } : null;
}

/**
 * Stores what responses did about rows of some days that they did not list. A withheld withdrawal stays open
 * until another full response about its day, or a person, decides. After a fold, what is found replaces what the folded
 * responses did before; that a person has accepted a withdrawal stays.
 *
 * @returns those that are withheld now, and were not before.
 */
export async function writeWithdrawals(
  tx: NodePgDatabase,
  load: {
    readonly loadId: number;
    readonly windowId: number;
    readonly runId: number;
    readonly operation: string;
    readonly exchange: string;
  },
  { table, days, isFolded, withdrawals: dayWithdrawals }: DecidedDays,
): Promise<readonly DayWithdrawal[]> {
  const { id, state, reason, unlisted_rows, max_rows, remaining_rows, rows } = withdrawals;
  const stored = await tx
    .select({
      id,
      day: dayOrNone,
      position: positionText(withdrawals.position),
      facts: { state, reason, unlisted_rows, max_rows, remaining_rows, rows },
    })
    .from(withdrawals)
    .where(
      and(
        eq(withdrawals.table_name, table.name),
        eq(withdrawals.exchange, load.exchange),
        days === null ? isNull(withdrawals.day) : isAnyOf(withdrawals.day, days),
        isFolded ? undefined : eq(state, 'withheld'),
      ),
    );
  const added = new Map(
    dayWithdrawals.map((withdrawal) => [`${withdrawal.day ?? NO_DAY} ${withdrawal.position}`, withdrawal]),
  );
  const before = new Set<DayWithdrawal>();
  for (const { id: known, day, position, facts } of stored) {
    const withdrawal = added.get(`${day} ${position}`);
    added.delete(`${day} ${position}`);
    if (withdrawal !== undefined && facts.state === 'withheld') before.add(withdrawal);
    const now = factsAfter(facts, withdrawal, isFolded);
    if (now === null) await tx.delete(withdrawals).where(eq(id, known));
    else if (!isDeepStrictEqual(now, facts)) await tx.update(withdrawals).set(now).where(eq(id, known));
  }
  const withheld = dayWithdrawals.filter(
    (withdrawal) => buildFacts(withdrawal).state === 'withheld' && !before.has(withdrawal),
  );
  if (added.size === 0) return withheld;
  await tx.insert(withdrawals).values(
    [...added.values()].map((withdrawal) => ({
      load_id: load.loadId,
      window_id: load.windowId,
      run_id: load.runId,
      operation: load.operation,
      exchange: load.exchange,
      position: withdrawal.position,
      table_name: withdrawal.table,
      day: withdrawal.day,
      ...buildFacts(withdrawal),
    })),
  );
  return withheld;
}

/** Days for which a person has accepted that a response lacks rows, and its position. */
export async function readAcceptedDays(
  tx: NodePgDatabase,
  { table, exchange }: { readonly table: string; readonly exchange: string },
): Promise<{ day: string; position: Position }[]> {
  const { table_name, state } = withdrawals;
  return tx
    .select({
      day: dayOrNone,
      position: positionText(withdrawals.position),
    })
    .from(withdrawals)
    .where(and(eq(table_name, table), eq(withdrawals.exchange, exchange), eq(state, 'accepted')))
    .orderBy(withdrawals.position);
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
  unlistedRows: withdrawals.unlisted_rows,
  maxRows: withdrawals.max_rows,
  remainingRows: withdrawals.remaining_rows,
  reason: withdrawals.reason,
  notedAt: sql<string>`to_json(${withdrawals.noted_at})#>>'{}'`,
};

/** Withheld withdrawals, the newest first, each with some of its rows. */
export function listWithheldWithdrawals(db: NodePgDatabase, limit: number, samples: number) {
  return db
    .select({
      ...asWithdrawal,
      rows: sql<RowKey[]>`(select coalesce(jsonb_agg(r.value order by r.ordinality), '[]')
        from jsonb_array_elements(${withdrawals.rows}) with ordinality r where r.ordinality <= ${samples})`,
    })
    .from(withdrawals)
    .where(eq(withdrawals.state, 'withheld'))
    .orderBy(desc(withdrawals.id))
    .limit(limit);
}

/** What these runs withdrew or withheld: by day, in the order of the loads. */
export function listRunWithdrawals(db: NodePgDatabase, runIds: readonly number[]) {
  return db
    .select(asWithdrawal)
    .from(withdrawals)
    .where(inArray(withdrawals.run_id, [...runIds]))
    .orderBy(withdrawals.id);
}

/** A withheld withdrawal; null if there is none with this id. */
export async function readWithheld(tx: NodePgDatabase, id: number) {
  const [withdrawal] = await tx
    .select({
      ...asWithdrawal,
      rows: withdrawals.rows,
      position: positionText(withdrawals.position),
      fetchedAt: sql<string>`coalesce(${responses.fetched_at}, ${withdrawals.position})`,
    })
    .from(withdrawals)
    .leftJoin(responses, eq(responses.position, withdrawals.position))
    .where(and(eq(withdrawals.id, id), eq(withdrawals.state, 'withheld')));
  return withdrawal ?? null;
}

/** Stores that a person has accepted a withdrawal. */
export async function markAccepted(tx: NodePgDatabase, id: number, by: string): Promise<void> {
  await tx
    .update(withdrawals)
    .set({ state: 'accepted', accepted_by: by, accepted_at: sql`clock_timestamp()` })
    .where(eq(withdrawals.id, id));
}

/**
 * Deletes withdrawals that were withheld more than so many days ago, and that later responses made meaningless, also for the
 * state of their days. The others say what became of rows, and the folds of responses follow from them.
 *
 * @param dryRun deletes nothing.
 * @returns how many.
 */
export async function pruneWithdrawals(db: NodePgDatabase, days: number, dryRun: boolean): Promise<number> {
  const isOld = and(
    eq(withdrawals.state, 'outdated'),
    lt(withdrawals.noted_at, daysAgo(days)),
    sql`not exists (
      select from ${responses} r join ${coverage} c
          on c.operation = r.operation
         and c.exchange = r.exchange
         and c.day = coalesce(${withdrawals.day}, r.called_on)
         and c.instrument = ''
         and c.withheld_position = r.position
       where r.position = ${withdrawals.position})`,
  );
  if (dryRun) return db.$count(withdrawals, isOld);
  return (await db.delete(withdrawals).where(isOld)).rowCount ?? 0;
}

import { and, eq, gt, isNotNull, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { addDays, type DayRange, isDay } from '../core/days.ts';
import type { Pair } from '../core/exchanges.ts';
import { packageVersion } from '../core/version.ts';
import type { TableDefinition } from '../declaration/table.ts';
import { namesFilling, tableGroupOf } from '../operations/registry.ts';
import { derived } from './schema/instrument-tables.ts';
import { loads } from './schema/load-results.ts';

// What is derived from the rows of market: names of instruments, corporate events, price factors, price bands hit. A
// single row says which loads they include.

/** The loads and decisions that everything derived includes. */
export interface DerivedProgress {
  /** The state number of the last load; 0 before the first one. */
  readonly state: number;
  /** Digest of the decisions that the events were computed with; null if they are to be computed again. */
  readonly eventsDigest: string | null;
}

/** Up to where everything is derived; null if this version never did so: then it computes everything from nothing. */
export async function readDerivedProgress(db: NodePgDatabase): Promise<DerivedProgress | null> {
  const [row] = await db
    .select({ state: derived.state, eventsDigest: derived.events_digest })
    .from(derived)
    .where(eq(derived.version, packageVersion()));
  return row ?? null;
}

/** For the process that holds the lock of what is derived. */
export async function writeDerivedProgress(
  db: NodePgDatabase,
  { state, eventsDigest }: DerivedProgress,
): Promise<void> {
  const row = { state, events_digest: eventsDigest, version: packageVersion() };
  const { rowCount } = await db.update(derived).set(row);
  if (rowCount === 0) await db.insert(derived).values(row);
}

/** Has the events computed again, in the transaction that changes whom their symbols name. */
export async function forgetEventsDigest(tx: NodePgDatabase): Promise<void> {
  await tx.update(derived).set({ events_digest: null });
}

/** How many loads changed rows that nothing was derived from yet. */
export async function countUnderived(db: NodePgDatabase): Promise<number> {
  const known = sql`coalesce((select ${derived.state} from ${derived}), 0)`;
  return db.$count(loads, and(gt(loads.state, known), isNotNull(loads.changed_from)));
}

/** The days of a table's rows that loads have changed: ranges in the order of their days, apart from each other. */
export type ChangedDays = (table: TableDefinition, exchange?: string) => readonly DayRange[];

/** All days, also those that are not known. */
export const ALL_DAYS: DayRange = { from: '-infinity', to: 'infinity' };

/** Ranges that are at most so many days apart are one: a statement for each would cost more than it saves. */
const NEARBY_DAYS = 366;

/** What the loads after one state number, up to another, have changed; after null: everything. */
export async function readChangedDays(
  db: NodePgDatabase,
  after: number | null,
  upTo: number,
): Promise<ChangedDays> {
  if (after === null) return () => [ALL_DAYS];
  const { state, operation, exchange, changed_from: from, changed_to: to } = loads;
  const changed = await db
    .selectDistinct({ operation, exchange, from: sql<string>`${from}`, to: sql<string>`${to}` })
    .from(loads)
    .where(sql`${state} > ${after} and ${state} <= ${upTo} and ${from} is not null`);
  return (table, exchange) => {
    // A replay writes rows of a group of tables under the name of one of the data sets that fill them.
    const filling = namesFilling([table]).flatMap((name) => tableGroupOf(name).members);
    const isFilling = (load: Pair) =>
      filling.includes(load.operation) && (exchange === undefined || load.exchange === exchange);
    return joinNearby(changed.filter(isFilling));
  };
}

/** Joins ranges that overlap or are close to each other. As texts, -infinity is before every day, and infinity after it. */
function joinNearby(ranges: readonly DayRange[]): readonly DayRange[] {
  const joined: { from: string; to: string }[] = [];
  for (const { from, to } of ranges.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
    const last = joined.at(-1);
    if (last === undefined || widenDays(last, NEARBY_DAYS).to < from) joined.push({ from, to });
    else if (last.to < to) last.to = to;
  }
  return joined;
}

/** The range with so many more days before and after it (pure). */
export function widenDays({ from, to }: DayRange, days: number): DayRange {
  return { from: isDay(from) ? addDays(from, -days) : from, to: isDay(to) ? addDays(to, days) : to };
}

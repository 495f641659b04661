import { and, desc, eq, inArray, isNotNull, lt, lte, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { BEFORE_ALL, type Place } from '../../../core/place.ts';
import { isInUse, tableGroupOf } from '../../../operations/registry.ts';
import type { LoadGroup } from '../loads/locks.ts';
import { placeText } from '../schema/columns.ts';
import { loads, withdrawals } from '../schema/load-results.ts';
import { answers, pruned } from '../schema/source-tables.ts';

// Answers are pruned in the order of their places: of the data sets that fill the same tables, all up to one place. What
// they left is in the tables and their history, as of a version, so later folds begin with the rows of that version.

/** The answers up to a place are pruned; their rows are those of a version. */
export interface Pruned {
  readonly place: Place;
  readonly version: number;
}

/** Under the name of any member: an operation that is enabled later may be the first of the group then. */
export const ofGroup = ({ operations, exchange }: LoadGroup) =>
  and(
    inArray(pruned.operation, [...tableGroupOf(operations[0] ?? '').members]),
    eq(pruned.exchange, exchange),
  );

/** How far the answers of a group are pruned; null if none is. */
export async function prunedUpTo(db: NodePgDatabase, group: LoadGroup): Promise<Pruned | null> {
  const [found] = await db
    .select({ place: placeText(pruned.place), version: pruned.state })
    .from(pruned)
    .where(ofGroup(group))
    .orderBy(desc(pruned.place))
    .limit(1);
  return found ?? null;
}

/** Groups with kept answers that were fetched before a moment. */
export async function groupsToPrune(db: NodePgDatabase, before: Date): Promise<LoadGroup[]> {
  const { operation, exchange } = answers;
  const found = await db
    .selectDistinct({ operation, exchange })
    .from(answers)
    .where(and(isNotNull(answers.hash), lt(answers.fetched_at, before.toISOString())));
  const groups = new Map<string, LoadGroup>();
  for (const one of found) {
    if (!isInUse(one.operation)) continue;
    const { name, members } = tableGroupOf(one.operation);
    groups.set(`${name}|${one.exchange}`, { operations: members, exchange: one.exchange });
  }
  return [...groups.values()];
}

/**
 * The last place up to which the answers of a group can be pruned: all of them were fetched before a moment, and they,
 * but no later one, are loaded in some version. Answers since a withdrawal that was held back stay: they are folded if a
 * person accepts it. It is never before the place up to which they are pruned already, although an earlier answer may
 * have been loaded since: of the later ones nothing but their rows is left.
 *
 * @returns null if there is none.
 */
export async function placeToPrune(
  db: NodePgDatabase,
  group: LoadGroup,
  before: Date,
): Promise<Pruned | null> {
  const { operations, exchange } = group;
  const known = await prunedUpTo(db, group);
  const ofThese = and(inArray(loads.operation, [...operations]), eq(loads.exchange, exchange));
  const found = await db.execute<{ place: Place; version: number }>(sql`
    with loaded as (
      select place, max(state) as last, min(state) as first, max(fetched_at) as fetched_at
        from ${loads} where ${ofThese} group by place
    ), cuts as (
      select place, max(last) over earlier as version, max(fetched_at) over earlier as fetched_at,
             min(first) over (order by place rows between 1 following and unbounded following) as next
        from loaded window earlier as (order by place)
    )
    select ${placeText(sql`place`)} as place, version::float8 as version from cuts
     where fetched_at < ${before.toISOString()}::timestamptz and (next is null or version < next)
       and place >= ${known?.place ?? BEFORE_ALL}::timestamptz
       and place < coalesce((select min(w.place) from ${withdrawals} w where w.state = 'refused' and w.exchange = ${exchange}
         and w.operation = any(${sql.param(operations)}::text[])), 'infinity')
     order by cuts.place desc limit 1`);
  return found.rows[0] ?? null;
}

/** Notes how far the answers of a group are pruned: never less far. Call it with the tables of the group locked. */
export async function notePruned(
  db: NodePgDatabase,
  group: LoadGroup,
  { place, version }: Pruned,
): Promise<void> {
  await db
    .insert(pruned)
    .values({
      operation: tableGroupOf(group.operations[0] ?? '').name,
      exchange: group.exchange,
      place,
      state: version,
    })
    .onConflictDoUpdate({
      target: [pruned.operation, pruned.exchange],
      set: { place, state: version },
      setWhere: lte(pruned.place, place),
    });
}

/** The condition that an answer is of a group, not later than a place, and was not loaded after a version. */
export const isUpTo = ({ operations, exchange }: LoadGroup, { place, version }: Pruned) =>
  and(
    inArray(answers.operation, [...operations]),
    eq(answers.exchange, exchange),
    lte(answers.place, place),
    sql`not exists (select from ${loads} where ${loads.place} = ${answers.place} and ${loads.state} > ${version})`,
  );

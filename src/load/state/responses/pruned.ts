import { and, desc, eq, inArray, isNotNull, lt, lte, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { BEFORE_ALL, type Position } from '../../../core/position.ts';
import { isDataSet, tableGroupOf } from '../../../operations/registry.ts';
import type { LoadGroup } from '../loads/locks.ts';
import { positionText } from '../schema/columns.ts';
import { loads, withdrawals } from '../schema/load-results.ts';
import { pruned, responses } from '../schema/source-tables.ts';

// Responses are pruned in the order of their positions: of the data sets that fill the same tables, all up to one
// position. What they left is in the tables and their history, as of a version, so later folds begin with the rows of
// that version.

/** The responses up to a position are pruned; their rows are those of a version. */
export interface Pruned {
  readonly position: Position;
  readonly version: number;
}

/** Under the name of any member: in a later version another operation may be the first of the group. */
export const ofGroup = ({ operations, exchange }: LoadGroup) =>
  and(
    inArray(pruned.operation, [...tableGroupOf(operations[0] ?? '').members]),
    eq(pruned.exchange, exchange),
  );

/** How far the responses of a group are pruned; null if none is. */
export async function prunedUpTo(db: NodePgDatabase, group: LoadGroup): Promise<Pruned | null> {
  const [found] = await db
    .select({ position: positionText(pruned.position), version: pruned.state })
    .from(pruned)
    .where(ofGroup(group))
    .orderBy(desc(pruned.position))
    .limit(1);
  return found ?? null;
}

/** Groups with kept responses that were fetched before a moment. */
export async function groupsToPrune(db: NodePgDatabase, before: Date): Promise<LoadGroup[]> {
  const { operation, exchange } = responses;
  const found = await db
    .selectDistinct({ operation, exchange })
    .from(responses)
    .where(and(isNotNull(responses.hash), lt(responses.fetched_at, before.toISOString())));
  const groups = new Map<string, LoadGroup>();
  for (const one of found) {
    if (!isDataSet(one.operation)) continue;
    const { name, members } = tableGroupOf(one.operation);
    groups.set(`${name}|${one.exchange}`, { operations: members, exchange: one.exchange });
  }
  return [...groups.values()];
}

/**
 * The last position up to which the responses of a group can be pruned: all of them were fetched before a moment, and
 * they, but no later one, are loaded in some version. Responses since a withdrawal that was withheld stay: they are
 * folded if a person accepts it. It is never before the position up to which they are pruned already, although an
 * earlier response may have been loaded since: of the later ones nothing but their rows is left.
 *
 * @returns null if there is none.
 */
export async function positionToPrune(
  db: NodePgDatabase,
  group: LoadGroup,
  before: Date,
): Promise<Pruned | null> {
  const { operations, exchange } = group;
  const known = await prunedUpTo(db, group);
  const ofThese = and(inArray(loads.operation, [...operations]), eq(loads.exchange, exchange));
  const found = await db.execute<{ position: Position; version: number }>(sql`
    with loaded as (
      select position, max(state) as last, min(state) as first, max(fetched_at) as fetched_at
        from ${loads} where ${ofThese} group by position
    ), cuts as (
      select position, max(last) over earlier as version, max(fetched_at) over earlier as fetched_at,
             min(first) over (order by position rows between 1 following and unbounded following) as next
        from loaded window earlier as (order by position)
    )
    select ${positionText(sql`position`)} as position, version::float8 as version from cuts
     where fetched_at < ${before.toISOString()}::timestamptz and (next is null or version < next)
       and position >= ${known?.position ?? BEFORE_ALL}::timestamptz
       and position < coalesce((select min(w.position) from ${withdrawals} w where w.state = 'withheld' and w.exchange = ${exchange}
         and w.operation = any(${sql.param(operations)}::text[])), 'infinity')
     order by cuts.position desc limit 1`);
  return found.rows[0] ?? null;
}

/** Notes how far the responses of a group are pruned: never less far. Call it with the tables of the group locked. */
export async function notePruned(
  db: NodePgDatabase,
  group: LoadGroup,
  { position, version }: Pruned,
): Promise<void> {
  await db
    .insert(pruned)
    .values({
      operation: tableGroupOf(group.operations[0] ?? '').name,
      exchange: group.exchange,
      position,
      state: version,
    })
    .onConflictDoUpdate({
      target: [pruned.operation, pruned.exchange],
      set: { position, state: version },
      setWhere: lte(pruned.position, position),
    });
}

/** The condition that a response is of a group, not later than a position, and was not loaded after a version. */
export const isUpTo = ({ operations, exchange }: LoadGroup, { position, version }: Pruned) =>
  and(
    inArray(responses.operation, [...operations]),
    eq(responses.exchange, exchange),
    lte(responses.position, position),
    sql`not exists (select from ${loads} where ${loads.position} = ${responses.position} and ${loads.state} > ${version})`,
  );

import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { firstItem } from '../core/iterables.ts';
import type { Position } from '../core/position.ts';
import { positionText } from './schema/columns.ts';
import { clock } from './schema/source-tables.ts';

/**
 * A statement that takes the next position and returns it as `position`. The time is read when the row is locked, so
 * that it is later than every position that was taken before; after a leap of the server's clock backwards, positions
 * go on in microseconds until it has caught up.
 *
 * @param from `from …`: takes none where that has no row.
 * @param positions how many positions to take; the last one is returned.
 */
export const takePositionSql = (from: SQL = sql``, positions = 1): SQL => sql`
  update ${clock} set last = greatest(clock_timestamp(), last + interval '1 microsecond') + interval '1 microsecond' * ${positions - 1}::int ${from}
  returning ${positionText(sql`last`)} as position`;

/**
 * Takes the next positions in the order of responses. Call it outside of transactions, because every other process
 * that takes one waits until it is committed.
 *
 * @param room how many microseconds before each of them stay free, in addition.
 */
export async function takePositions(db: NodePgDatabase, positions: number, room = 0): Promise<Position[]> {
  const result = await db.execute<{ position: Position }>(sql`
    with taken as (${takePositionSql(sql``, positions * (room + 1))})
    select ${positionText(sql`taken.position::timestamptz - interval '1 microsecond' * (${room + 1}::int * n)`)} as position
      from taken, generate_series(${positions - 1}::int, 0, -1) n`);
  if (result.rows.length < positions) throw new Error('etl.clock has no row: no response can get a position');
  return result.rows.map(({ position }) => position);
}

/** Takes the next position, see `takePositions`. */
export async function takePosition(db: NodePgDatabase): Promise<Position> {
  return firstItem(await takePositions(db, 1));
}

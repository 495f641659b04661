import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { firstItem } from '../core/iterables.ts';
import type { Position } from '../core/position.ts';
import { positionText } from './schema/columns.ts';
import { clock } from './schema/source-tables.ts';

/**
 * Takes the next positions in the order of responses, as a claim does (windows/claim-statement.ts). The time is read when
 * the row is locked, so that it is later than every position that was taken before; after a leap of the server's clock
 * backwards, positions go on in microseconds until it has caught up. Call it outside of transactions, because every other
 * process that takes one waits until it is committed.
 *
 * @param room how many microseconds before each of them stay free, in addition.
 */
export async function takePositions(db: NodePgDatabase, positions: number, room = 0): Promise<Position[]> {
  const apart = room + 1;
  const result = await db.execute<{ position: Position }>(sql`
    with taken as (
      update ${clock}
         set last = greatest(clock_timestamp(), last + interval '1 microsecond')
               + interval '1 microsecond' * ${positions * apart - 1}::int
      returning last
    )
    select ${positionText(sql`last - interval '1 microsecond' * (${apart}::int * n)`)} as position
      from taken, generate_series(${positions - 1}::int, 0, -1) n`);
  if (result.rows.length < positions) throw new Error('etl.clock has no row: no response can get a position');
  return result.rows.map(({ position }) => position);
}

/** Takes the next position, see `takePositions`. */
export async function takePosition(db: NodePgDatabase): Promise<Position> {
  return firstItem(await takePositions(db, 1));
}

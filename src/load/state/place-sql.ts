import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Place } from '../../core/place.ts';
import { placeText } from './schema/columns.ts';
import { clock } from './schema/source-tables.ts';

/**
 * A statement that takes the next place and returns it as `place`. The time is read when the row is locked, so that it is
 * later than every place that was taken before; after a leap of the server's clock backwards, places go on in
 * microseconds until it has caught up.
 *
 * @param from `from …`: takes none where that has no row.
 * @param places how many places to take; the last one is returned.
 */
export const takingPlace = (from: SQL = sql``, places = 1): SQL => sql`
  update ${clock} set last = greatest(clock_timestamp(), last + interval '1 microsecond') + interval '1 microsecond' * ${places - 1}::int ${from}
  returning ${placeText(sql`last`)} as place`;

const noClock = () => new Error('etl.clock has no row: no answer can get a place');

/**
 * Takes the next places in the order of answers. Call it outside of transactions, because everybody else who takes one
 * waits until it is committed.
 *
 * @param room how many microseconds before each of them stay free, in addition.
 */
export async function takePlaces(db: NodePgDatabase, places: number, room = 0): Promise<Place[]> {
  const found = await db.execute<{ place: Place }>(sql`
    with taken as (${takingPlace(sql``, places * (room + 1))})
    select ${placeText(sql`taken.place::timestamptz - interval '1 microsecond' * (${room + 1}::int * n)`)} as place
      from taken, generate_series(${places - 1}::int, 0, -1) n`);
  if (found.rows.length < places) throw noClock();
  return found.rows.map(({ place }) => place);
}

/** Takes the next place, see `takePlaces`. */
export async function takePlace(db: NodePgDatabase): Promise<Place> {
  const [place] = await takePlaces(db, 1);
  return place as Place;
}

/** How far the last place is ahead of the server's clock, in milliseconds: it was set back. */
export async function clockLead(db: NodePgDatabase): Promise<number> {
  const [row] = await db
    .select({ lead: sql`extract(epoch from ${clock.last} - clock_timestamp()) * 1000`.mapWith(Number) })
    .from(clock);
  if (row === undefined) throw noClock();
  return row.lead;
}

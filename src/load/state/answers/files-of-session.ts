import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { comesBefore, type FileOrder, fileOrder, type Place } from '../../../core/place.ts';
import { tableGroupOf } from '../../../operations/registry.ts';
import { placeText } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { answers, pruned, responseBodies } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import { ofGroup } from './pruned.ts';

// Files of a session count in their own order, whenever they are imported: one that comes before others gets a place
// before theirs.

/** How many microseconds before the place of a file stay free, for files that come before it and are imported later. */
export const ROOM_BEFORE_FILE = 4_095;

/** An imported file of a session. */
export interface StoredFile {
  readonly answerId: number;
  readonly place: Place;
  readonly order: FileOrder;
  /** Its name; in an archive, the one that it has there. */
  readonly name: string;
  readonly path: string;
  /** Length of the CSV. */
  readonly bytes: number;
}

interface Session {
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
}

/** The kept files that fill the same tables for a session, the last one first. */
export async function filesOfSession(
  db: NodePgDatabase,
  { operation, exchange, from }: Session,
): Promise<StoredFile[]> {
  const operations = tableGroupOf(operation).members;
  const found = await db.execute<
    { [Name in keyof Omit<StoredFile, 'order'>]: StoredFile[Name] } & { rank: number }
  >(sql`
    select a.id::int as "answerId", ${placeText(sql`a.place`)} as place, (a.params->>'rank')::int as rank, a.params->>'file' as name,
           coalesce(w.source_file, a.params->>'file') as path, b.bytes
      from ${answers} a join ${responseBodies} b on b.hash = a.hash left join ${windows} w on w.id = a.window_id
     where a.operation = any(${sql.param(operations)}::text[]) and a.exchange = ${exchange} and a.from_date = ${from} and a.params ? 'rank'
       and exists (select from ${loads} l where l.place = a.place)
       -- What is pruned cannot be applied again after another file.
       and a.place > coalesce((select max(place) from ${pruned} where ${ofGroup({ operations, exchange })}), '-infinity')
     order by a.place desc`);
  return found.rows.map(({ rank, ...file }) => ({ ...file, order: fileOrder(rank, file.name, file.path) }));
}

/**
 * The place of a file: before those that come after it, else its own. Call it with the locks of its session held.
 */
export async function placeOfFile(
  tx: NodePgDatabase,
  file: Session & { readonly place: Place; readonly fileOrder: FileOrder },
): Promise<Place> {
  const next = (await filesOfSession(tx, file)).findLast(({ order }) => comesBefore(file.fileOrder, order));
  if (next === undefined) return file.place;
  const end = sql`${next.place}::timestamptz`;
  const found = await tx.execute<{ place: Place }>(sql`
    select ${placeText(sql`place`)} as place
      from (select greatest(max(place), ${end} - interval '1 microsecond' * ${ROOM_BEFORE_FILE}::int) as begins from ${answers} where place < ${end}) a,
        lateral (select begins + (${end} - begins) / 2 as place) middle
     where place > begins and place < ${end}`);
  if (found.rows[0] === undefined) throw new Error(`no place is left before that of ${next.path}`);
  return found.rows[0].place;
}

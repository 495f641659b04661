import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { comesBefore, type FileOrder, fileOrder, type Position } from '../../../core/position.ts';
import { tableGroupOf } from '../../../operations/registry.ts';
import { positionText } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { pruned, responseBodies, responses } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import { ofGroup } from './pruned.ts';

// Files of a session have an order of their own, whenever they are imported: one that comes before others gets a
// position before theirs.

/**
 * How many microseconds before the position of a file stay free, for files that come before it and are imported later.
 */
export const ROOM_BEFORE_FILE = 4_095;

/** An imported file of a session. */
export interface StoredFile {
  readonly responseId: number;
  readonly position: Position;
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
    select a.id::int as "responseId", ${positionText(sql`a.position`)} as position, (a.params->>'rank')::int as rank, a.params->>'file' as name,
           coalesce(w.source_file, a.params->>'file') as path, b.bytes
      from ${responses} a join ${responseBodies} b on b.hash = a.hash left join ${windows} w on w.id = a.window_id
     where a.operation = any(${sql.param(operations)}::text[]) and a.exchange = ${exchange} and a.from_date = ${from} and a.params ? 'rank'
       and exists (select from ${loads} l where l.position = a.position)
       -- What is pruned cannot be applied again after another file.
       and a.position > coalesce((select max(position) from ${pruned} where ${ofGroup({ operations, exchange })}), '-infinity')
     order by a.position desc`);
  return found.rows.map(({ rank, ...file }) => ({ ...file, order: fileOrder(rank, file.name, file.path) }));
}

/**
 * The position of a file: before those that come after it, else its own. Call it with the locks of its session held.
 */
export async function positionOfFile(
  tx: NodePgDatabase,
  file: Session & { readonly position: Position; readonly fileOrder: FileOrder },
): Promise<Position> {
  const next = (await filesOfSession(tx, file)).findLast(({ order }) => comesBefore(file.fileOrder, order));
  if (next === undefined) return file.position;
  const end = sql`${next.position}::timestamptz`;
  const found = await tx.execute<{ position: Position }>(sql`
    select ${positionText(sql`position`)} as position
      from (select greatest(max(position), ${end} - interval '1 microsecond' * ${ROOM_BEFORE_FILE}::int) as begins from ${responses} where position < ${end}) a,
        lateral (select begins + (${end} - begins) / 2 as position) middle
     where position > begins and position < ${end}`);
  if (found.rows[0] === undefined) throw new Error(`no position is left before that of ${next.path}`);
  return found.rows[0].position;
}

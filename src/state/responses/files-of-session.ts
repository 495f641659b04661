import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { comesBefore, type FileOrder, fileOrder } from '../../core/file-order.ts';
import type { Position } from '../../core/position.ts';
import { tableGroupOf } from '../../operations/registry.ts';
import { positionText } from '../schema/columns.ts';
import { loads } from '../schema/load-results.ts';
import { responseBodies, responses } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';

// Files of a trading day have an order of their own, whenever they are imported: one that comes before others gets a
// position before theirs. So do lists, which have rows in common whatever their days.

/**
 * How many microseconds before the position of a file stay free, for files that come before it and are imported later.
 */
export const ROOM_BEFORE_FILE = 4_095;

/** An imported file of a trading day. */
interface StoredFile {
  readonly position: Position;
  readonly order: FileOrder;
  /** Its name; in an archive, the one that it has there. */
  readonly name: string;
  readonly path: string;
}

interface TradingDay {
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
}

/** The kept files that fill the same tables for a trading day, or the lists that do, the last one first. */
async function filesOfDay(
  db: NodePgDatabase,
  { operation, exchange, from }: TradingDay,
  { rank }: Pick<FileOrder, 'rank'>,
): Promise<StoredFile[]> {
  const operations = tableGroupOf(operation).members;
  const isRanked = rank !== null;
  const result = await db.execute<
    { [Name in keyof Omit<StoredFile, 'order'>]: StoredFile[Name] } & Pick<FileOrder, 'rank'>
  >(sql`
    select ${positionText(sql`r.position`)} as position, (r.params->>'rank')::int as rank, r.params->>'file' as name,
           coalesce(w.source_file, r.params->>'file') as path
      from ${responses} r
      join ${responseBodies} body on body.hash = r.hash
      left join ${windows} w on w.id = r.window_id
     where r.operation = any(${sql.param(operations)}::text[])
       and r.exchange = ${exchange}
       and r.params ? 'file'
       and (r.params ? 'rank') = ${isRanked}::boolean
       and (not ${isRanked}::boolean or r.from_date = ${from}::date)
       and exists (select from ${loads} l where l.position = r.position)
     order by r.position desc`);
  return result.rows.map(({ rank, ...file }) => ({ ...file, order: fileOrder(rank, file.name, file.path) }));
}

/**
 * How far before a list an earlier one may get its position, in microseconds: a day. Unlike files of a trading day, any
 * number of them may be imported after it. `APART` of them stay free for others between.
 */
const REACH_OF_LISTS = 86_400_000_000;
const APART = 1_000_000;

/**
 * The position of a file: before those that come after it, else its own. Call it with the locks of its session held.
 */
export async function positionOfFile(
  tx: NodePgDatabase,
  file: TradingDay & { readonly position: Position; readonly fileOrder: FileOrder },
): Promise<Position> {
  const { fileOrder } = file;
  const files = await filesOfDay(tx, file, fileOrder);
  const at = files.findLastIndex(({ order }) => comesBefore(fileOrder, order));
  const next = files[at];
  if (next === undefined) return file.position;
  const reach = fileOrder.rank === null ? REACH_OF_LISTS : ROOM_BEFORE_FILE;
  const result = await tx.execute<{ position: Position }>(sql`
    with before as (
      select greatest(${files[at + 1]?.position ?? null}::timestamptz, next - interval '1 microsecond' * ${reach}::float8) as first, next
        from (select ${next.position}::timestamptz as next) file
    ), taken as (
      select first as position from before
      union select next from before
      union select r.position from ${responses} r, before where r.position > before.first and r.position < before.next
    ), free as (
      select lag(position) over (order by position) as begins,
             position - lag(position) over (order by position) as width
        from taken
    )
    select ${positionText(sql`begins + least(width / 2, interval '1 microsecond' * ${APART}::int)`)} as position
      from free where width > interval '1 microsecond'
     order by least(width, interval '1 microsecond' * ${2 * APART}::int) desc, begins limit 1`);
  if (result.rows[0] === undefined) throw new Error(`no position is left before that of ${next.path}`);
  return result.rows[0].position;
}

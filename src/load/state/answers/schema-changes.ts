import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoText } from '../schema/columns.ts';
import { answerLayouts, answers } from '../schema/source-tables.ts';
import { declaredColumns } from './layouts.ts';

/** Something that the source has changed about the fields of its answers. */
export interface SchemaChange {
  readonly operation: string;
  readonly exchange: string;
  readonly field: string;
  readonly change: 'new' | 'vanished';
  readonly example: string | null;
  /** The answer that shows it, in ISO 8601, and the run that fetched it. */
  readonly at: string;
  readonly runId: number;
}

/** Changes are shown, and counted by the metric, for so many days. */
export const SHOWN_DAYS = 30;

/** A change in words, e.g. "GetBhavCopyCM NSE: LastPrice is no longer sent". */
export function changeText({ operation, exchange, ...one }: SchemaChange): string {
  return `${operation} ${exchange}: ${one.field} ${predicateOf(one)}`;
}

/** What has become of the field. */
export function predicateOf({ change, example }: Pick<SchemaChange, 'change' | 'example'>): string {
  if (change === 'vanished') return 'is no longer sent';
  return `is new, and no column reads it${example === null ? '' : ` (${JSON.stringify(example)})`}`;
}

/** So many answers have to lack a field, after as many that had it. */
const ENOUGH_ANSWERS = 3;

/**
 * What the source has changed, the newest first. The fields of the run that asked an operation and exchange first are
 * what later ones are compared with. Derived from all answers, whatever the order in which they were loaded.
 *
 * - `new`: a field that no declaration reads is in an answer of a later run.
 * - `vanished`: a field that was in at least three answers, and in all between its first and its last, is in none of
 *   three later ones of other runs. A field that whole answers lacked before is optional, and never vanishes.
 *
 * Answers without records say nothing.
 *
 * @param days only changes of so many days; not given: all.
 */
export async function readSchemaChanges(
  db: NodePgDatabase,
  filter: { readonly days?: number; readonly runId?: number } = {},
): Promise<SchemaChange[]> {
  const { days, runId } = filter;
  const since = days === undefined ? '' : new Date(Date.now() - days * 86_400_000).toISOString();
  return [...(await readNew(db)), ...(await readVanished(db))]
    .filter((one) => one.at >= since && (runId === undefined || one.runId === runId))
    .sort((a, b) => (a.at > b.at ? -1 : Number(a.at < b.at)) || (a.field < b.field ? -1 : 1));
}

/** The fields that no declaration reads, and that the run which asked an operation and exchange first did not get. */
async function readNew(db: NodePgDatabase): Promise<SchemaChange[]> {
  const declared = declaredColumns();
  const found = await db.execute<{ [Name in keyof SchemaChange]: SchemaChange[Name] }>(sql`
    with sent as (
      select l.*, f.field ->> 'name' as name, f.field ->> 'plain' as plain, f.field ->> 'example' as example
        from ${answerLayouts} l, jsonb_array_elements(l.fields) as f(field)
    ), fields as (
      select operation, exchange, plain, (array_agg(name order by last_place desc, name))[1] as name,
             (array_agg(example order by first_place, example) filter (where example is not null))[1] as example,
             min(first_place) as place, (array_agg(first_run_id order by first_place))[1] as run_id
        from sent group by operation, exchange, plain
    ), bases as (
      select distinct on (operation, exchange) operation, exchange, first_run_id from ${answerLayouts} order by operation, exchange, first_place
    )
    select f.operation, f.exchange, f.name as field, 'new' as change, f.example, ${isoText(sql`f.place`)} as at, f.run_id::float8 as "runId"
      from fields f join bases b using (operation, exchange)
     where f.run_id <> b.first_run_id
       and not exists (
         select from unnest(${sql.param(declared.map(({ operation }) => operation))}::text[], ${sql.param(declared.map(({ field }) => field))}::text[]) d(operation, field)
          where d.operation = f.operation and d.field = f.plain)`);
  return found.rows;
}

/** The fields that have vanished. Which answers lack them is nearly always known from the layouts alone. */
async function readVanished(db: NodePgDatabase): Promise<SchemaChange[]> {
  const found = await db.execute<{ [Name in keyof SchemaChange]: SchemaChange[Name] }>(sql`
    with fields as materialized (
      select l.operation, l.exchange, f.field ->> 'plain' as plain, min(l.first_place) as first_place, max(l.last_place) as last_place,
             (array_agg(l.last_run_id order by l.last_place desc))[1] as last_run_id, array_agg(distinct l.layout) as layouts,
             (array_agg(f.field ->> 'name' order by l.last_place desc))[1] as name,
             (array_agg(f.field ->> 'example' order by l.last_place desc) filter (where f.field ->> 'example' is not null))[1] as example,
             sum(l.answers) as answers
        from ${answerLayouts} l, jsonb_array_elements(l.fields) as f(field) group by 1, 2, 3
    ), newest as (
      select operation, exchange, max(last_place) as place from ${answerLayouts} group by 1, 2
    )
    select f.operation, f.exchange, f.name as field, 'vanished' as change, f.example,
           ${isoText(sql`third.place`)} as at, third.run_id::float8 as "runId"
      from fields f join newest n using (operation, exchange)
      cross join lateral (
        select a.place, a.run_id from ${answers} a
         where a.operation = f.operation and a.exchange = f.exchange and a.layout is not null
           and a.place > f.last_place and a.run_id <> f.last_run_id
         order by a.place offset ${ENOUGH_ANSWERS - 1} limit 1) as third
     where f.last_place < n.place and f.answers >= ${ENOUGH_ANSWERS}
       and not exists (
         select from ${answerLayouts} l
          where l.operation = f.operation and l.exchange = f.exchange and l.layout <> all(f.layouts)
            and l.first_place < f.last_place and l.last_place > f.first_place
            and (l.first_place > f.first_place or l.last_place < f.last_place or exists (
              select from ${answers} a where a.operation = l.operation and a.exchange = l.exchange and a.layout = l.layout
                 and a.place > f.first_place and a.place < f.last_place)))`);
  return found.rows;
}

/** How many kept answers show what a field is like. */
const SHOWING = 3;

/**
 * The fields of an operation's answers that no column reads, as names are compared, and the newest kept answers that have
 * them.
 */
export async function readUnreadFields(db: NodePgDatabase, operation: string) {
  const read = declaredColumns().flatMap((one) => (one.operation === operation ? [one.field] : []));
  const found = await db.execute<{ field: string; answerIds: readonly number[] }>(sql`
    with fields as materialized (
      select f.field ->> 'plain' as plain, array_agg(l.layout) as layouts from ${answerLayouts} l, jsonb_array_elements(l.fields) as f(field)
       where l.operation = ${operation} and f.field ->> 'plain' <> all(${sql.param(read)}::text[]) group by 1
    )
    select f.plain as field, array(
        select a.id::float8 from ${answers} a where a.operation = ${operation} and a.layout = any(f.layouts) and a.hash is not null
         order by a.place desc limit ${SHOWING}) as "answerIds"
      from fields f order by 1`);
  return {
    fields: found.rows.map(({ field }) => field),
    answerIds: [...new Set(found.rows.flatMap(({ answerIds }) => answerIds))].sort((a, b) => a - b),
  };
}

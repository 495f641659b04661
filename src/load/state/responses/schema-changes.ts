import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { isoText } from '../schema/columns.ts';
import { responseLayouts, responses } from '../schema/source-tables.ts';
import { declaredColumns } from './layouts.ts';

/** Something that the source has changed about the fields of its responses. */
export interface SchemaChange {
  readonly operation: string;
  readonly exchange: string;
  readonly field: string;
  readonly change: 'new' | 'vanished';
  readonly example: string | null;
  /** The response that shows it, in ISO 8601, and the run that fetched it. */
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

/** So many responses have to lack a field, after as many that had it. */
const ENOUGH_RESPONSES = 3;

/**
 * What the source has changed, the newest first. The fields of the run that requested an operation and exchange first
 * are what later ones are compared with. Derived from all responses, whatever the order in which they were loaded.
 *
 * - `new`: a field that no declaration reads is in a response of a later run.
 * - `vanished`: a field that was in at least three responses, and in all between its first and its last, is in none of
 *   three later ones of other runs. A field that whole responses lacked before is optional, and never vanishes.
 *
 * Responses without records say nothing.
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

/**
 * The fields that no declaration reads, and that the run which requested an operation and exchange first did not get.
 */
async function readNew(db: NodePgDatabase): Promise<SchemaChange[]> {
  const declared = declaredColumns();
  const found = await db.execute<{ [Name in keyof SchemaChange]: SchemaChange[Name] }>(sql`
    with sent as (
      select l.*, f.field ->> 'name' as name, f.field ->> 'plain' as plain, f.field ->> 'example' as example
        from ${responseLayouts} l, jsonb_array_elements(l.fields) as f(field)
    ), fields as (
      select operation, exchange, plain, (array_agg(name order by last_position desc, name))[1] as name,
             (array_agg(example order by first_position, example) filter (where example is not null))[1] as example,
             min(first_position) as position, (array_agg(first_run_id order by first_position))[1] as run_id
        from sent group by operation, exchange, plain
    ), bases as (
      select distinct on (operation, exchange) operation, exchange, first_run_id from ${responseLayouts} order by operation, exchange, first_position
    )
    select f.operation, f.exchange, f.name as field, 'new' as change, f.example, ${isoText(sql`f.position`)} as at, f.run_id::float8 as "runId"
      from fields f join bases b using (operation, exchange)
     where f.run_id <> b.first_run_id
       and not exists (
         select from unnest(${sql.param(declared.map(({ operation }) => operation))}::text[], ${sql.param(declared.map(({ field }) => field))}::text[]) d(operation, field)
          where d.operation = f.operation and d.field = f.plain)`);
  return found.rows;
}

/** The fields that have vanished. Which responses lack them is nearly always known from the layouts alone. */
async function readVanished(db: NodePgDatabase): Promise<SchemaChange[]> {
  const found = await db.execute<{ [Name in keyof SchemaChange]: SchemaChange[Name] }>(sql`
    with fields as materialized (
      select l.operation, l.exchange, f.field ->> 'plain' as plain, min(l.first_position) as first_position, max(l.last_position) as last_position,
             (array_agg(l.last_run_id order by l.last_position desc))[1] as last_run_id, array_agg(distinct l.layout) as layouts,
             (array_agg(f.field ->> 'name' order by l.last_position desc))[1] as name,
             (array_agg(f.field ->> 'example' order by l.last_position desc) filter (where f.field ->> 'example' is not null))[1] as example,
             sum(l.responses) as responses
        from ${responseLayouts} l, jsonb_array_elements(l.fields) as f(field) group by 1, 2, 3
    ), newest as (
      select operation, exchange, max(last_position) as position from ${responseLayouts} group by 1, 2
    )
    select f.operation, f.exchange, f.name as field, 'vanished' as change, f.example,
           ${isoText(sql`third.position`)} as at, third.run_id::float8 as "runId"
      from fields f join newest n using (operation, exchange)
      cross join lateral (
        select a.position, a.run_id from ${responses} a
         where a.operation = f.operation and a.exchange = f.exchange and a.layout is not null
           and a.position > f.last_position and a.run_id <> f.last_run_id
         order by a.position offset ${ENOUGH_RESPONSES - 1} limit 1) as third
     where f.last_position < n.position and f.responses >= ${ENOUGH_RESPONSES}
       and not exists (
         select from ${responseLayouts} l
          where l.operation = f.operation and l.exchange = f.exchange and l.layout <> all(f.layouts)
            and l.first_position < f.last_position and l.last_position > f.first_position
            and (l.first_position > f.first_position or l.last_position < f.last_position or exists (
              select from ${responses} a where a.operation = l.operation and a.exchange = l.exchange and a.layout = l.layout
                 and a.position > f.first_position and a.position < f.last_position)))`);
  return found.rows;
}

/** How many kept responses show what a field is like. */
const SHOWING = 3;

/**
 * The fields of an operation's responses that no column reads, as names are compared, and the newest kept responses
 * that have them.
 */
export async function readUnreadFields(db: NodePgDatabase, operation: string) {
  const read = declaredColumns().flatMap((one) => (one.operation === operation ? [one.field] : []));
  const found = await db.execute<{ field: string; responseIds: readonly number[] }>(sql`
    with fields as materialized (
      select f.field ->> 'plain' as plain, array_agg(l.layout) as layouts from ${responseLayouts} l, jsonb_array_elements(l.fields) as f(field)
       where l.operation = ${operation} and f.field ->> 'plain' <> all(${sql.param(read)}::text[]) group by 1
    )
    select f.plain as field, array(
        select a.id::float8 from ${responses} a where a.operation = ${operation} and a.layout = any(f.layouts) and a.hash is not null
         order by a.position desc limit ${SHOWING}) as "responseIds"
      from fields f order by 1`);
  return {
    fields: found.rows.map(({ field }) => field),
    responseIds: [...new Set(found.rows.flatMap(({ responseIds }) => responseIds))].sort((a, b) => a - b),
  };
}

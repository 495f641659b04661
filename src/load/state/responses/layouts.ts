import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Position } from '../../../core/position.ts';
import { plainName } from '../../../operations/fields.ts';
import { dataSets } from '../../../operations/registry.ts';
import { type Preparing, prepareOnce } from '../../database/prepared.ts';
import { declaredFields, type LayoutField, responseLayouts, responses } from '../schema/source-tables.ts';

// Which fields the responses of the source have. A response is noted with its layout and its counts;
// `etl.response_layouts` has their sums, to which each response is added in the statement that notes it, and never
// again.

/** The fields of a response's records, by name, and how many records have a value in each. */
export interface SentFields {
  readonly records: number;
  readonly fields: readonly (LayoutField & { readonly values: number })[];
}

/** What the statements that note a response are given of its fields. */
interface LayoutValues extends Record<string, unknown> {
  readonly layout: string | null;
  readonly layoutFields: string | null;
  readonly fieldCounts: readonly number[] | null;
}

/** @param sent undefined if they were not observed. */
export function layoutValues(sent: SentFields | undefined): LayoutValues {
  if (sent === undefined) return { layout: null, layoutFields: null, fieldCounts: null };
  const { records, fields } = sent;
  const named = JSON.stringify(fields.map(({ name, type }) => [name, type]));
  return {
    layout: createHash('sha256').update(named).digest().readBigInt64BE().toString(),
    layoutFields: JSON.stringify(
      fields.map(({ name, plain, type, example }) => ({ name, plain, type, example })),
    ),
    fieldCounts: [records, ...fields.map(({ values }) => values)],
  };
}

/**
 * A statement that adds responses to the sums of their layouts. @param noted a table of the responses `i`, with their
 * layouts.
 */
export const addToLayouts = (noted: SQL) => sql`
    insert into ${responseLayouts} as l (operation, exchange, layout, fields, first_position, first_run_id, last_position, last_run_id, responses, counts)
    select i.operation, i.exchange, i.layout, coalesce(${sql.placeholder('layoutFields')}::jsonb, '[]'), i.position, i.run_id, i.position, i.run_id, 1, i.field_counts
      from ${noted} i where i.layout is not null
    on conflict (operation, exchange, layout) do update set
      fields = case when excluded.first_position < l.first_position and excluded.fields <> '[]' then excluded.fields else l.fields end,
      first_run_id = case when excluded.first_position < l.first_position then excluded.first_run_id else l.first_run_id end,
      first_position = least(l.first_position, excluded.first_position),
      last_run_id = case when excluded.last_position > l.last_position then excluded.last_run_id else l.last_run_id end,
      last_position = greatest(l.last_position, excluded.last_position),
      responses = l.responses + 1,
      counts = array(select a + b from unnest(l.counts, excluded.counts) with ordinality as u(a, b, at) order by at)`;

/** Notes the fields of a response that was noted without them, such as a copy. */
export async function noteLayout(tx: Preparing, position: Position, sent: SentFields): Promise<void> {
  await updateLayout(tx, { position, ...layoutValues(sent) });
}

const updateLayout = prepareOnce(
  () => sql`
    with noted as (
      update ${responses} set layout = ${sql.placeholder('layout')}::bigint, field_counts = ${sql.placeholder('fieldCounts')}::integer[]
       where position = ${sql.placeholder('position')}::timestamptz and layout is null
      returning operation, exchange, position, run_id, layout, field_counts
    ) ${addToLayouts(sql`noted`)}`,
);

/** The fields of each data set in use that columns are read from, and these columns with their tables. */
export function declaredColumns() {
  return dataSets.flatMap(({ name, shapes, ...others }) => {
    const also =
      'also' in others && others.also !== undefined
        ? [{ ...others.also.table, fields: others.also.fields }]
        : [];
    return [...shapes.map(({ table }) => table), ...also].flatMap((table) =>
      table.fields.flatMap((field) =>
        field.from === 'response'
          ? [field.source, ...(field.orElse ?? [])].map((source) => ({
              operation: name,
              field: plainName(source),
              mapped_column: `${table.name}.${field.column}`,
              kind: field.kind,
            }))
          : [],
      ),
    );
  });
}

/** Writes which columns are read from which fields. For after a migration. */
export async function writeDeclaredFields(db: NodePgDatabase): Promise<void> {
  await db.execute(sql`
    with wanted as materialized (
      select distinct operation, field, mapped_column
        from jsonb_to_recordset(${JSON.stringify(declaredColumns())}::jsonb) as w(operation text, field text, mapped_column text)
    ), gone as (
      delete from ${declaredFields} d where (d.operation, d.field, d.mapped_column) not in (select * from wanted)
    )
    insert into ${declaredFields} (operation, field, mapped_column) select * from wanted on conflict do nothing`);
}

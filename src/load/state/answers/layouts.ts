import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Place } from '../../../core/place.ts';
import { plainName } from '../../../operations/fields.ts';
import { dataSets } from '../../../operations/registry.ts';
import { type Preparing, prepareOnce } from '../../database/prepared.ts';
import { answerLayouts, answers, declaredFields, type LayoutField } from '../schema/source-tables.ts';

// Which fields the answers of the source have. An answer is noted with its layout and its counts; `etl.answer_layouts` has
// their sums, to which each answer is added in the statement that notes it, and never again.

/** The fields of an answer's records, by name, and how many records have a value in each. */
export interface SentFields {
  readonly records: number;
  readonly fields: readonly (LayoutField & { readonly values: number })[];
}

/** What the statements that note an answer are given of its fields. */
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

/** A statement that adds answers to the sums of their layouts. @param noted a table of the answers `i`, with their layouts. */
export const addToLayouts = (noted: SQL) => sql`
    insert into ${answerLayouts} as l (operation, exchange, layout, fields, first_place, first_run_id, last_place, last_run_id, answers, counts)
    select i.operation, i.exchange, i.layout, coalesce(${sql.placeholder('layoutFields')}::jsonb, '[]'), i.place, i.run_id, i.place, i.run_id, 1, i.field_counts
      from ${noted} i where i.layout is not null
    on conflict (operation, exchange, layout) do update set
      fields = case when excluded.first_place < l.first_place and excluded.fields <> '[]' then excluded.fields else l.fields end,
      first_run_id = case when excluded.first_place < l.first_place then excluded.first_run_id else l.first_run_id end,
      first_place = least(l.first_place, excluded.first_place),
      last_run_id = case when excluded.last_place > l.last_place then excluded.last_run_id else l.last_run_id end,
      last_place = greatest(l.last_place, excluded.last_place),
      answers = l.answers + 1,
      counts = array(select a + b from unnest(l.counts, excluded.counts) with ordinality as u(a, b, at) order by at)`;

/** Notes the fields of an answer that was noted without them, such as a copy. */
export async function noteLayout(tx: Preparing, place: Place, sent: SentFields): Promise<void> {
  await updateLayout(tx, { place, ...layoutValues(sent) });
}

const updateLayout = prepareOnce(
  () => sql`
    with noted as (
      update ${answers} set layout = ${sql.placeholder('layout')}::bigint, field_counts = ${sql.placeholder('fieldCounts')}::integer[]
       where place = ${sql.placeholder('place')}::timestamptz and layout is null
      returning operation, exchange, place, run_id, layout, field_counts
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
        field.from === 'answer'
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

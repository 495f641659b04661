import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  jsonb,
  numeric,
  primaryKey,
  text,
  unique,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { FieldType } from '../../../operations/fields.ts';
import { COVERAGE_STATES } from '../coverage/registers.ts';
import { asked, bytea, day, etl, id, moment, ofWindow, place, placeOf, reference } from './columns.ts';

/** Calls made with a key in a clock hour: one budget for all workers on all machines. */
export const callBudget = etl.table(
  'call_budget',
  {
    key_hash: text('key_hash').notNull(),
    hour: moment('hour').notNull(),
    calls: integer('calls').notNull(),
    refused_at: moment('refused_at'),
    diagnostic: text('diagnostic'),
  },
  (table) => [primaryKey({ name: 'call_budget_pkey', columns: [table.key_hash, table.hour] })],
);

/** What is known of each access key, by its hash, so that a refused key is not tried again and again. */
export const accessKeys = etl.table(
  'access_keys',
  {
    key_hash: text('key_hash').primaryKey(),
    state: text('state').notNull(),
    diagnostic: text('diagnostic'),
    last_good_at: moment('last_good_at'),
    probing_until: moment('probing_until'),
    refused_at: moment('refused_at'),
  },
  (table) => [check('access_keys_state', sql`${table.state} in ('unknown', 'good', 'refused')`)],
);

/** The longest range that the source has been seen to allow an operation and key. */
export const rangeLimits = etl.table(
  'range_limits',
  {
    key_hash: text('key_hash').notNull(),
    operation: text('operation').notNull(),
    days: integer('days').notNull(),
    learned_at: moment('learned_at').notNull().defaultNow(),
  },
  (table) => [primaryKey({ name: 'range_limits_pkey', columns: [table.key_hash, table.operation] })],
);

/** Operations that the source does not offer to a key any more, and whose questions another one answers. */
export const withdrawnOperations = etl.table(
  'withdrawn_operations',
  {
    key_hash: text('key_hash').notNull(),
    operation: text('operation').notNull(),
    /** What the source said. */
    diagnostic: text('diagnostic').notNull(),
    noted_at: moment('noted_at').notNull().defaultNow(),
  },
  (table) => [primaryKey({ name: 'withdrawn_operations_pkey', columns: [table.key_hash, table.operation] })],
);

/** How far back the source answers an operation and key, by exchange and variant, once it has refused days. */
export const historyLimits = etl.table(
  'history_limits',
  {
    key_hash: text('key_hash').notNull(),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    variant: text('variant').notNull(),
    /** The newest day that was refused by itself. */
    refused_day: day('refused_day'),
    /** The newest first day of a range that was answered since a range was refused. */
    answered_day: day('answered_day'),
    diagnostic: text('diagnostic').notNull(),
    /** When a day or a range was last refused that was not too long by the source's own words. */
    refused_at: moment('refused_at').notNull().defaultNow(),
  },
  (table) => [
    primaryKey({
      name: 'history_limits_pkey',
      columns: [table.key_hash, table.operation, table.exchange, table.variant],
    }),
  ],
);

/** Bodies of answers, each stored once however often it was received. */
export const responseBodies = etl.table('response_bodies', {
  /** SHA-256 of the body as it was read, in hex. */
  hash: text('hash').primaryKey(),
  encoding: text('encoding').notNull(),
  body: bytea('body').notNull(),
  /** Length before compression. */
  bytes: integer('bytes').notNull(),
});

/** A single row: the last place that was given to an answer. */
export const clock = etl.table('clock', { last: moment('last').notNull() }, () => [
  uniqueIndex('clock_one_idx').on(sql`(true)`),
]);

/** The condition that an answer took the last row of a day, or that rows which it lacked were kept. */
export const HAS_DAY_EFFECT = sql`(emptied_days is not null or held_back_days is not null)`;

/**
 * How far the answers of a group of data sets and an exchange are pruned: up to a place, all of them. The rows that they
 * left are those of a version, in which no answer with a greater place had been loaded yet.
 */
export const pruned = etl.table(
  'pruned',
  {
    /** The first of the data sets that fill the same tables. */
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    place: place().notNull(),
    state: reference('state').notNull(),
  },
  (table) => [primaryKey({ name: 'pruned_pkey', columns: [table.operation, table.exchange] })],
);

/** Every answer that was received, with the request that fetched it (never the access key): what `replay` reads. */
export const answers = etl.table(
  'answers',
  {
    id: id(),
    /** Where it stands in the one order of answers: given once, in the statement that counts its call. */
    place: place().notNull(),
    ...ofWindow(),
    ...asked(),
    /** As in `windows`. With `file`, the body is not an answer but an imported file of that name. */
    params: jsonb('params').$type<Readonly<Record<string, string>>>().notNull(),
    /** Day of the call in the source's zone, which is the day of some answers' rows. */
    called_on: day('called_on').notNull(),
    /** Names its body; null if that is not kept. */
    hash: text('hash').references(() => responseBodies.hash),
    content_type: text('content_type'),
    /** The time of the call. */
    fetched_at: moment('fetched_at').notNull(),
    /** The symbols that the rows of a file without tickers were given, by scrip code; other codes are their own symbol. */
    symbols: jsonb('symbols').$type<Readonly<Record<string, string>>>(),
    /** What it said of its questions, see answers/facts.ts; null where that differs, as all of them are where it is not known. */
    said: text('said', { enum: COVERAGE_STATES }),
    records: integer('records'),
    diagnostic: text('diagnostic'),
    /** Its questions, with what it said of each; null if they are its last day, for each of its instruments. */
    questions: jsonb('questions'),
    /** Had it records that nobody asked for, or fewer than it states? Null if not. */
    is_doubted: boolean('is_doubted'),
    /** What it did with rows: the days whose last row it took, and those whose rows it lacked but which were kept. */
    emptied_days: date('emptied_days', { mode: 'string' }).array(),
    held_back_days: date('held_back_days', { mode: 'string' }).array(),
    /** Can it tell that a record is no longer sent? By itself, whatever other answers say: it had records, not too many of which were rejected, or has none on days that have nothing. */
    is_believed: boolean('is_believed').notNull().default(false),
    /** Which of `answer_layouts` its records have; null if it had none, or that was not observed. */
    layout: bigint('layout', { mode: 'bigint' }),
    /** How many records it had, and how many of them had a value in each field of its layout. */
    field_counts: integer('field_counts').array(),
  },
  (table) => [
    unique('answers_place_key').on(table.place),
    index('answers_asked_idx').on(table.operation, table.exchange, table.from_date),
    index('answers_hash_idx').on(table.hash),
    index('answers_window_idx').on(table.window_id),
    // Those that may resolve a reject of some days.
    index('answers_believed_idx')
      .using('gist', sql`daterange(${table.from_date}, ${table.to_date}, '[]')`)
      .where(sql`${table.is_believed} and not ${table.is_filtered}`),
  ],
);

/** A field of a layout, as it is stored: its name as it was sent and as names are compared, its type, and a value. */
export interface LayoutField {
  readonly name: string;
  readonly plain: string;
  readonly type: FieldType | null;
  readonly example: string | null;
}

/**
 * The sets of fields, with their types, that answers of an operation and exchange had: of each the first and the last
 * answer, and sums over all of them. Every answer counts once, when it is noted in `answers`, so that neither the order
 * of loads nor a replay changes anything.
 */
export const answerLayouts = etl.table(
  'answer_layouts',
  {
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    /** Made from the names and types of its fields. */
    layout: bigint('layout', { mode: 'bigint' }).notNull(),
    /** By name; the examples are of the first answer. */
    fields: jsonb('fields').$type<readonly LayoutField[]>().notNull(),
    first_place: placeOf('first_place').notNull(),
    first_run_id: reference('first_run_id').notNull(),
    last_place: placeOf('last_place').notNull(),
    last_run_id: reference('last_run_id').notNull(),
    answers: reference('answers').notNull(),
    /** The sum of `field_counts`. */
    counts: bigint('counts', { mode: 'number' }).array().notNull(),
  },
  (table) => [
    primaryKey({ name: 'answer_layouts_pkey', columns: [table.operation, table.exchange, table.layout] }),
  ],
);

/** Which columns the operations of this database read from which fields, as of the last migration. */
export const declaredFields = etl.table(
  'declared_fields',
  {
    operation: text('operation').notNull(),
    /** The name as names are compared. */
    field: text('field').notNull(),
    /** With its table. */
    mapped_column: text('mapped_column').notNull(),
  },
  (table) => [
    primaryKey({
      name: 'declared_fields_pkey',
      columns: [table.operation, table.field, table.mapped_column],
    }),
  ],
);

/** The fields of all answers that were observed: where two names are the same field, under the one that was sent last. */
export const sourceFields = etl
  .view('source_fields', {
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    field: text('field').notNull(),
    type: text('type').$type<FieldType>(),
    first_seen_at: moment('first_seen_at').notNull(),
    last_seen_at: moment('last_seen_at').notNull(),
    share_null: numeric('share_null', { mode: 'number' }).notNull(),
    example: text('example'),
    mapped_column: text('mapped_column'),
  })
  .as(
    sql.raw(`with sent as (
    select l.operation, l.exchange, l.first_place, l.last_place, l.counts[1] as records, l.counts[1 + f.at] as filled,
           f.field ->> 'name' as name, f.field ->> 'plain' as plain, f.field ->> 'type' as type, f.field ->> 'example' as example
      from etl.answer_layouts l, jsonb_array_elements(l.fields) with ordinality as f(field, at)
  )
  select s.operation, s.exchange, (array_agg(s.name order by s.last_place desc, s.name))[1] as field,
         (array_agg(s.type order by s.last_place desc, s.type) filter (where s.type is not null))[1] as type,
         min(s.first_place)::timestamptz as first_seen_at, max(s.last_place)::timestamptz as last_seen_at,
         round(1 - sum(s.filled) / sum(s.records), 4) as share_null,
         (array_agg(s.example order by s.last_place desc, s.example) filter (where s.example is not null))[1] as example,
         (select string_agg(d.mapped_column, ', ' order by d.mapped_column) from etl.declared_fields d
           where d.operation = s.operation and d.field = s.plain) as mapped_column
    from sent s group by s.operation, s.exchange, s.plain`),
  );

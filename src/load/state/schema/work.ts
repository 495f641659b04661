import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  index,
  integer,
  jsonb,
  primaryKey,
  text,
  unique,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { forEachCount } from '../../../core/record-counts.ts';
import { COVERAGE_STATES, HELD_BACK } from '../coverage/registers.ts';
import {
  RUN_KINDS,
  RUN_STATES,
  type RunKind,
  type RunState,
  type Target,
  WINDOW_STATES,
  type WindowState,
} from '../runs/request.ts';
import {
  asked,
  count,
  day,
  etl,
  id,
  isOneOf,
  moment,
  ofWindow,
  place,
  placeOf,
  reference,
} from './columns.ts';

export const runs = etl.table(
  'runs',
  {
    id: id(),
    kind: text('kind').$type<RunKind>().notNull(),
    state: text('state').$type<RunState>().notNull().default('running'),
    requested_by: text('requested_by').notNull(),
    /** What was asked for: a `RunRequest`, or what a replay or an import needs. */
    request: jsonb('request').notNull(),
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    /** Makes a scheduled run unique: two schedulers asking for the same tick get one run. */
    tick: text('tick'),
    /** Operations whose windows are planned once the bhav copies of the run are in. */
    deferred: jsonb('deferred').$type<readonly Target[]>().notNull().default([]),
    error: text('error'),
    /** Totals of its windows, written when the run ends. */
    requests: count('requests'),
    bytes: count('bytes'),
    ...forEachCount(count),
    started_at: moment('started_at').notNull().defaultNow(),
    /** When it was last resumed, which restarts the time that it waits for a source that is down. */
    resumed_at: moment('resumed_at'),
    finished_at: moment('finished_at'),
    /** The checks and alerts after its end: `none` before that, and for runs that have none. */
    follow_up: text('follow_up', { enum: ['none', 'due', 'done', 'failed'] })
      .notNull()
      .default('none'),
    follow_up_attempts: integer('follow_up_attempts').notNull().default(0),
  },
  (table) => [
    unique('runs_tick_key').on(table.tick),
    index('runs_follow_up_idx').on(table.id).where(sql`${table.follow_up} = 'due'`),
    check('runs_follow_up', sql`${table.follow_up} in ('none', 'due', 'done', 'failed')`),
    index('runs_open_idx').on(table.id).where(sql`${table.state} in ('running', 'paused')`),
    check('runs_kind', isOneOf(table.kind, RUN_KINDS)),
    check('runs_state', isOneOf(table.state, RUN_STATES)),
  ],
);

export const windows = etl.table(
  'windows',
  {
    id: id(),
    run_id: reference('run_id')
      .notNull()
      .references(() => runs.id),
    /** The window this one was split from. */
    parent_id: reference('parent_id'),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    instruments: text('instruments').array().notNull().default([]),
    /** Request options and the variant asked for; never the access key. Of an import: `file`, the name of the CSV. */
    params: jsonb('params').$type<Readonly<Record<string, string>>>().notNull().default({}),
    /** Names the question, where an operation asks several about a day; see `coverage`. */
    variant: text('variant').notNull().default(''),
    /** Request options narrow it to a part of the day's data, so it does not count as coverage. */
    is_filtered: boolean('is_filtered').notNull().default(false),
    state: text('state').$type<WindowState>().notNull().default('pending'),
    attempts: integer('attempts').notNull().default(0),
    /** Attempts that failed and count: the failure policy bounds them. */
    failed_attempts: integer('failed_attempts').notNull().default(0),
    /** How often it was claimed while an earlier claim had not ended. */
    lost_workers: integer('lost_workers').notNull().default(0),
    requests: integer('requests').notNull().default(0),
    /** How long it was postponed because its answer was not ready; no other wait counts. */
    not_ready_ms: integer('not_ready_ms').notNull().default(0),
    bytes: count('bytes'),
    ...forEachCount(count),
    /** The diagnostic line that the source answered with. */
    diagnostic: text('diagnostic'),
    /** Why it failed, was blocked or skipped. */
    error: text('error'),
    /** SHA-256 of the last answer that could not be read, or states more records than it has; its body is kept. */
    refused_hash: text('refused_hash'),
    /** Why somebody should look at it, such as an answer that lacked too many rows to be withdrawn. */
    suspicious: text('suspicious'),
    /** Those of these reasons for which neither a reject nor a withdrawal stands: a later good answer settles them. */
    unsettled: text('unsettled'),
    /** The file an import read, and the SHA-256 of its bytes. */
    source_file: text('source_file'),
    source_hash: text('source_hash'),
    /** What a preview would have changed: sample rows with the columns that differ. */
    preview: jsonb('preview'),
    warnings: text('warnings').array().notNull().default([]),
    started_at: moment('started_at'),
    finished_at: moment('finished_at'),
  },
  (table) => [
    index('windows_run_idx').on(table.run_id, table.state),
    // Of two windows that ask the same question, one waits. Files and kept answers are read without a request.
    uniqueIndex('windows_asked_key')
      .on(
        table.operation,
        table.exchange,
        table.variant,
        table.from_date,
        table.to_date,
        sql`hash_array_extended(${table.instruments}, 0)`,
        sql`jsonb_hash_extended(${table.params}, 0)`,
      )
      .where(sql`${table.state} = 'running' and ${table.requests} > 0`),
    index('windows_refused_idx').on(table.refused_hash).where(sql`${table.refused_hash} is not null`),
    index('windows_unsettled_idx')
      .on(table.operation, table.exchange, table.from_date)
      .where(sql`${table.unsettled} is not null`),
    index('windows_open_idx').on(table.run_id, table.id).where(sql`${table.state} in ('pending', 'running')`),
    check('windows_state', isOneOf(table.state, WINDOW_STATES)),
    check(
      'windows_counts',
      sql`${table.fetched} = ${table.inserted} + ${table.updated} + ${table.unchanged} + ${table.stale} + ${table.duplicate} + ${table.rejected}`,
    ),
  ],
);

/** What is wrong with a rejected record, field by field. */
type Problems = readonly { readonly path: string; readonly message: string }[];

/** Loads that were committed: which question each answered, and its number in the order of the commits. */
export const loads = etl.table(
  'loads',
  {
    id: id(),
    ...ofWindow(),
    ...asked(),
    /** The place of its answer. */
    place: place().notNull(),
    fetched_at: moment('fetched_at').notNull(),
    committed_at: moment('committed_at').notNull(),
    /** Taken as the last thing before the commit, under one lock, so that versions are in the order of the commits. */
    state: reference('state').notNull(),
    /** First and last day of the rows that it changed; null if it changed none, infinite if they have no day. */
    changed_from: day('changed_from'),
    changed_to: day('changed_to'),
    /** Can a row that it wrote name an instrument in a way, or on a day, in which no row did before? If not, `etl.observed_aliases` stays as it is. */
    has_new_names: boolean('has_new_names').notNull().default(true),
    /** SHA-256 of an answer and of the code that read it: the same one again changes nothing. */
    digest: text('digest'),
    /** SHA-256 of the rows that it wrote and withdrew; null until it is worked out. */
    rows_digest: text('rows_digest'),
    /** SHA-256 of that and of the chain of the version before. */
    chain_digest: text('chain_digest'),
    ...forEachCount(count),
  },
  (table) => [
    unique('loads_state_key').on(table.state),
    index('loads_run_idx').on(table.run_id),
    index('loads_committed_idx').on(table.committed_at),
    index('loads_asked_idx').on(table.operation, table.exchange, table.to_date),
    // Every load looks for loads of later answers, and nearly always finds none.
    index('loads_place_idx').on(table.place),
  ],
);

/**
 * The most rows that a day of a table ever had at once, since a person last accepted that it has fewer: after each answer
 * that withdrew rows and had another number before, so that it is also known what the answers up to a place left.
 */
export const dayRows = etl.table(
  'day_rows',
  {
    table_name: text('table_name').notNull(),
    exchange: text('exchange').notNull(),
    /** 0001-01-01 where the table has no days. */
    day: day('day').notNull(),
    most: integer('most').notNull(),
    place: place().notNull(),
  },
  (table) => [
    primaryKey({
      name: 'day_rows_pkey',
      columns: [table.table_name, table.exchange, table.day, table.place],
    }),
  ],
);

const WITHDRAWAL_STATES = ['withdrawn', 'refused', 'accepted', 'outdated'] as const;

/** By load and day, the rows that a full answer no longer listed: withdrawn, or too many to be withdrawn at once. */
export const withdrawals = etl.table(
  'withdrawals',
  {
    id: id(),
    load_id: reference('load_id').notNull(),
    ...ofWindow(),
    table_name: text('table_name').notNull(),
    day: day('day'),
    state: text('state', { enum: WITHDRAWAL_STATES }).notNull(),
    reason: text('reason'),
    gone: integer('gone').notNull(),
    most: integer('most').notNull(),
    rows_left: integer('rows_left').notNull(),
    /** The place of the answer that did not list them. */
    place: place().notNull(),
    /** Keys of the rows, where they were not withdrawn. */
    rows: jsonb('rows').$type<readonly Readonly<Record<string, string | null>>[]>().notNull(),
    noted_at: moment('noted_at').notNull().defaultNow(),
    accepted_at: moment('accepted_at'),
    accepted_by: text('accepted_by'),
  },
  (table) => [
    index('withdrawals_run_idx').on(table.run_id),
    index('withdrawals_refused_idx')
      .on(table.table_name, table.exchange, table.day)
      .where(sql`${table.state} = 'refused'`),
    check('withdrawals_state', isOneOf(table.state, WITHDRAWAL_STATES)),
  ],
);

/** The state of a question as SQL: what `stateOf` says of its registers (coverage/registers.ts). */
const STATE_OF = (() => {
  const isLoaded = `(loaded_place is not null and (doubted_place is null or loaded_place > doubted_place)
    and (emptied_place is null or loaded_place >= emptied_place))`;
  const isHeldBack = `(held_back_place is not distinct from last_place and last_said in ('empty', 'not_published'))`;
  return {
    state: `case when ${isLoaded} then 'loaded' when ${isHeldBack} then 'failed' else last_said end`,
    records: `case when ${isLoaded} then loaded_records else last_records end`,
    diagnostic: `case when ${isHeldBack} then '${HELD_BACK}' else last_diagnostic end`,
  };
})();

/** From which version on the past of a table can be shown, after a rebuild that has replaced its history of an exchange. */
export const pastBegins = etl.table(
  'past_begins',
  {
    table_name: text('table_name').notNull(),
    exchange: text('exchange').notNull(),
    state: reference('state').notNull(),
    run_id: reference('run_id').notNull(),
  },
  (table) => [primaryKey({ name: 'past_begins_pkey', columns: [table.table_name, table.exchange] })],
);

export const coverage = etl.table(
  'coverage',
  {
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    day: day('day').notNull(),
    /** Empty where the whole exchange was asked. */
    instrument: text('instrument').notNull().default(''),
    variant: text('variant').notNull().default(''),
    /** What was said last: by an answer, a failed call or the calendar, and where that stands in the order of answers. */
    last_place: placeOf('last_place').notNull(),
    last_said: text('last_said', { enum: COVERAGE_STATES }).notNull(),
    last_records: count('last_records'),
    last_diagnostic: text('last_diagnostic'),
    /** The last answer that had records of it. */
    loaded_place: placeOf('loaded_place'),
    loaded_records: reference('loaded_records'),
    /** The last answer with records that nobody asked for, or with fewer than it states. */
    doubted_place: placeOf('doubted_place'),
    /** The last answers that took the last row of the day, and whose withdrawal of its rows was held back. */
    emptied_place: placeOf('emptied_place'),
    held_back_place: placeOf('held_back_place'),
    state: text('state', { enum: COVERAGE_STATES }).notNull().generatedAlwaysAs(sql.raw(STATE_OF.state)),
    /** Records of that day in the answer, if records carry their day. */
    records: reference('records').notNull().generatedAlwaysAs(sql.raw(STATE_OF.records)),
    diagnostic: text('diagnostic').generatedAlwaysAs(sql.raw(STATE_OF.diagnostic)),
    run_id: reference('run_id'),
    window_id: reference('window_id'),
    checked_at: moment('checked_at').notNull().defaultNow(),
  },
  (table) => [
    primaryKey({
      name: 'coverage_pkey',
      columns: [table.operation, table.exchange, table.day, table.instrument, table.variant],
    }),
    check('coverage_said', isOneOf(table.last_said, COVERAGE_STATES)),
  ],
);

/** Records that failed validation: where each was seen first and last. Whether it is resolved is asked, see `rejects`. */
export const rejectedRecords = etl.table(
  'rejected_records',
  {
    id: id(),
    ...ofWindow(),
    /** Position in the answer, from 0. */
    position: integer('position').notNull(),
    /** The day that it names; if none can be read, the days that were asked for. */
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    /** SHA-256 of the record and of what was asked for, in hex: a record that comes again is the same reject. */
    fingerprint: text('fingerprint').notNull(),
    record: jsonb('record'),
    problems: jsonb('problems').$type<Problems>().notNull(),
    /** Is it of a day, quarter or exchange that was not asked for? */
    is_stray: boolean('is_stray').notNull().default(false),
    /** The places of the first and the last answer that contained it; all other columns but the record are of the last. */
    first_seen_at: moment('first_seen_at').notNull(),
    last_seen_at: moment('last_seen_at').notNull(),
    /** What that answer was asked for, and whether the days matter: some data sets have none. */
    instruments: text('instruments').array().notNull().default([]),
    variant: text('variant').notNull().default(''),
    is_dated: boolean('is_dated').notNull().default(true),
    /**
     * When its last answer was read again and it passed, or the place of a later answer that was found to resolve it,
     * so that nobody has to look for one again. Null if neither is known.
     */
    settled_at: moment('settled_at'),
  },
  (table) => [
    index('rejected_records_window_idx').on(table.window_id),
    index('rejected_records_fingerprint_idx').on(table.fingerprint),
    index('rejected_records_last_idx').on(table.last_seen_at),
    index('rejected_records_unsettled_idx')
      .on(table.operation, table.exchange)
      .where(sql`${table.settled_at} is null`),
  ],
);

/**
 * SQL that selects the answers `a` which show that the rejected record `r` is no longer sent or can be read now: believed
 * ones, later than the last one that had the record, which would have it if it were still sent. The days are looked for
 * first, by themselves, because an operation may have answers of thousands of days.
 */
export const resolving = (r: string) =>
  `from (select * from etl.answers where is_believed and not is_filtered and daterange(from_date, to_date, '[]')
      @> case when ${r}.is_dated then daterange(${r}.from_date, ${r}.to_date, '[]') else 'empty' end offset 0) a
    where a.operation = ${r}.operation and a.exchange = ${r}.exchange and a.variant = ${r}.variant and a.place > ${r}.last_seen_at
      and (a.instruments = '{}' or ${r}.instruments <> '{}' and ${r}.instruments <@ a.instruments)`;

/** Columns of a rejected record that users see. */
const SHOWN =
  'id, run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, record, problems, is_stray, first_seen_at, last_seen_at';

/** The rejected records, each with the time of the first answer that resolves it. In two parts, so that a query for open ones reads only what is not settled. */
export const rejects = etl
  .view('rejects', {
    id: reference('id').notNull(),
    ...ofWindow(),
    position: integer('position').notNull(),
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    fingerprint: text('fingerprint').notNull(),
    record: jsonb('record'),
    problems: jsonb('problems').$type<Problems>().notNull(),
    is_stray: boolean('is_stray').notNull(),
    first_seen_at: moment('first_seen_at').notNull(),
    last_seen_at: moment('last_seen_at').notNull(),
    resolved_at: moment('resolved_at'),
  })
  .as(
    sql.raw(`select ${SHOWN}, settled_at as resolved_at from etl.rejected_records where settled_at is not null
  union all
  select ${SHOWN}, (select min(a.place)::timestamptz ${resolving('r')})
    from etl.rejected_records r where settled_at is null`),
  );

/** Worker processes, and when each was last known to be alive. */
export const workers = etl.table('workers', {
  /** Host and process id. */
  worker: text('worker').primaryKey(),
  seen_at: moment('seen_at').notNull().defaultNow(),
  /** Why the answers that it holds cannot be stored, and since when; null if they can. */
  cannot_store: text('cannot_store'),
  cannot_store_since: moment('cannot_store_since'),
});

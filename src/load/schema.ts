import { sql } from 'drizzle-orm';
import {
  bigint,
  bigserial,
  boolean,
  check,
  customType,
  date,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  text,
  timestamp,
  unique,
} from 'drizzle-orm/pg-core';

/** What the pipeline knows about its own work. The queue is disposable; this is the truth. */
export const etl = pgSchema('etl');

const id = () => bigserial('id', { mode: 'number' }).primaryKey();
const moment = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' });
const count = (name: string) => bigint(name, { mode: 'number' }).notNull().default(0);
const reference = (name: string) => bigint(name, { mode: 'number' });

const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

/** What became of the records of an answer; `fetched` is the sum of all but `withdrawn`. */
const recordCounts = () => ({
  fetched: count('fetched'),
  inserted: count('inserted'),
  updated: count('updated'),
  unchanged: count('unchanged'),
  stale: count('stale'),
  duplicate: count('duplicate'),
  rejected: count('rejected'),
  withdrawn: count('withdrawn'),
});

export const runs = etl.table(
  'runs',
  {
    id: id(),
    kind: text('kind').notNull(),
    state: text('state').notNull().default('running'),
    requested_by: text('requested_by').notNull(),
    /** What was asked, as `RunRequest` (jobs/runs.ts). */
    request: jsonb('request').notNull(),
    from_date: date('from_date', { mode: 'string' }).notNull(),
    to_date: date('to_date', { mode: 'string' }).notNull(),
    /** Makes a scheduled run unique: two schedulers asking for the same tick get one run. */
    tick: text('tick'),
    /** Operations whose windows are planned once the bhav copies of the run are in. */
    deferred: jsonb('deferred').notNull().default([]),
    error: text('error'),
    /** Totals of its windows, written when the run ends. */
    requests: count('requests'),
    bytes: count('bytes'),
    ...recordCounts(),
    started_at: moment('started_at').notNull().defaultNow(),
    finished_at: moment('finished_at'),
  },
  (table) => [
    unique('runs_tick_key').on(table.tick),
    index('runs_open_idx').on(table.id).where(sql`${table.state} in ('running', 'paused')`),
    check(
      'runs_kind',
      sql`${table.kind} in ('backfill', 'nightly', 'import', 'replay', 'gap_fill', 'preview')`,
    ),
    check('runs_state', sql`${table.state} in ('running', 'paused', 'completed', 'failed', 'cancelled')`),
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
    from_date: date('from_date', { mode: 'string' }).notNull(),
    to_date: date('to_date', { mode: 'string' }).notNull(),
    instruments: text('instruments').array().notNull().default([]),
    /**
     * Request options and the variant asked for; never the access key. Of an import: `file`, the name of
     * the csv, and `tickers`, the moment as of which its rows got theirs, where it has none itself.
     */
    params: jsonb('params').notNull().default({}),
    /** Which question of a day this is, where an operation asks several; see coverage. */
    part: text('part').notNull().default(''),
    /** Set by hand to a part of the day's data: does not count as coverage. */
    narrowed: boolean('narrowed').notNull().default(false),
    state: text('state').notNull().default('pending'),
    attempts: integer('attempts').notNull().default(0),
    requests: integer('requests').notNull().default(0),
    bytes: count('bytes'),
    ...recordCounts(),
    /** The source's own line, where it answered with one. */
    diagnostic: text('diagnostic'),
    /** Why it failed, was blocked or skipped. */
    error: text('error'),
    /** The answer lacked more rows than may be withdrawn: nothing was, and somebody should look. */
    suspicious: text('suspicious'),
    /** The file an import read, and the SHA-256 of its bytes. */
    source_file: text('source_file'),
    source_hash: text('source_hash'),
    /** The kept answer a replay reads, in etl.responses. */
    response_id: reference('response_id'),
    /** What a preview would have changed: sample rows with the columns that differ. */
    preview: jsonb('preview'),
    warnings: text('warnings').array().notNull().default([]),
    started_at: moment('started_at'),
    finished_at: moment('finished_at'),
  },
  (table) => [
    index('windows_run_idx').on(table.run_id, table.state),
    index('windows_response_idx').on(table.response_id).where(sql`${table.response_id} is not null`),
    index('windows_open_idx').on(table.run_id).where(sql`${table.state} in ('pending', 'running')`),
    check(
      'windows_state',
      sql`${table.state} in ('pending', 'running', 'loaded', 'empty', 'skipped', 'blocked', 'failed', 'cancelled', 'split')`,
    ),
    check(
      'windows_counts',
      sql`${table.fetched} = ${table.inserted} + ${table.updated} + ${table.unchanged} + ${table.stale} + ${table.duplicate} + ${table.rejected}`,
    ),
  ],
);

export const coverage = etl.table(
  'coverage',
  {
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    day: date('day', { mode: 'string' }).notNull(),
    /** Empty where the whole exchange was asked. */
    instrument: text('instrument').notNull().default(''),
    part: text('part').notNull().default(''),
    state: text('state').notNull(),
    /** Records of that day in the answer, where they carry their day. */
    records: count('records'),
    diagnostic: text('diagnostic'),
    run_id: reference('run_id'),
    window_id: reference('window_id'),
    checked_at: moment('checked_at').notNull().defaultNow(),
  },
  (table) => [
    primaryKey({
      name: 'coverage_pkey',
      columns: [table.operation, table.exchange, table.day, table.instrument, table.part],
    }),
    check(
      'coverage_state',
      sql`${table.state} in ('loaded', 'empty', 'holiday', 'not_published', 'blocked', 'failed')`,
    ),
  ],
);

export const rejects = etl.table(
  'rejects',
  {
    id: id(),
    run_id: reference('run_id').notNull(),
    window_id: reference('window_id').notNull(),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    /** Place in the answer, from 0. */
    position: integer('position').notNull(),
    record: jsonb('record'),
    problems: jsonb('problems').notNull(),
    rejected_at: moment('rejected_at').notNull().defaultNow(),
    resolved_at: moment('resolved_at'),
  },
  (table) => [
    index('rejects_window_idx').on(table.window_id),
    index('rejects_open_idx').on(table.operation, table.exchange).where(sql`${table.resolved_at} is null`),
  ],
);

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

/** What is known of each access key, by hash: a refused one is never used in a loop. */
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

/** The longest range the source allowed an operation and key, learned from its refusals. */
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

/** Bodies of answers, each kept once however often it came. */
export const responseBodies = etl.table('response_bodies', {
  /** SHA-256 of the body as it was read, in hex. */
  hash: text('hash').primaryKey(),
  encoding: text('encoding').notNull(),
  body: bytea('body').notNull(),
  bytes: integer('bytes').notNull(),
});

/** Every answer with the request that fetched it (never the access key): what `replay` reads. */
export const responses = etl.table(
  'responses',
  {
    id: id(),
    run_id: reference('run_id').notNull(),
    window_id: reference('window_id').notNull(),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    from_date: date('from_date', { mode: 'string' }).notNull(),
    to_date: date('to_date', { mode: 'string' }).notNull(),
    instruments: text('instruments').array().notNull(),
    /** As in windows. With `file` the body is not an answer but an imported file of that name. */
    params: jsonb('params').notNull(),
    part: text('part').notNull(),
    narrowed: boolean('narrowed').notNull(),
    /** Day of the call in the source's zone: some answers belong to it. */
    called_on: date('called_on', { mode: 'string' }).notNull(),
    hash: text('hash')
      .notNull()
      .references(() => responseBodies.hash),
    content_type: text('content_type'),
    fetched_at: moment('fetched_at').notNull().defaultNow(),
    /** When its rows were stored, told while the locks of its days are held: a replay keeps this order. */
    loaded_at: moment('loaded_at').notNull().default(sql`clock_timestamp()`),
  },
  (table) => [
    index('responses_asked_idx').on(table.operation, table.exchange, table.from_date),
    index('responses_hash_idx').on(table.hash),
    index('responses_window_idx').on(table.window_id),
  ],
);

/** What the data sets say against one another; a finding never blocks or alters data. */
export const findings = etl.table(
  'findings',
  {
    id: id(),
    check: text('check').notNull(),
    severity: text('severity').notNull(),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    date: date('date', { mode: 'string' }).notNull(),
    instrument: text('instrument').notNull().default(''),
    expected: text('expected'),
    found: text('found'),
    run_id: reference('run_id'),
    found_at: moment('found_at').notNull().defaultNow(),
    resolved_at: moment('resolved_at'),
  },
  (table) => [
    unique('findings_key').on(table.check, table.operation, table.exchange, table.date, table.instrument),
    check('findings_severity', sql`${table.severity} in ('info', 'warning', 'error')`),
  ],
);

/** Alerts raised, each kept once while it lasts: what the webhook was told, and whether it heard. */
export const alerts = etl.table(
  'alerts',
  {
    id: id(),
    kind: text('kind').notNull(),
    /** Same kind and subject: the same alert, not a new one. */
    subject: text('subject').notNull(),
    message: text('message').notNull(),
    facts: jsonb('facts').notNull().default({}),
    raised_at: moment('raised_at').notNull().defaultNow(),
    repeated: integer('repeated').notNull().default(0),
    delivered_at: moment('delivered_at'),
    attempts: integer('attempts').notNull().default(0),
    /** Not sent again before: while one worker sends it, the others leave it alone. */
    next_attempt_at: moment('next_attempt_at').notNull().defaultNow(),
    error: text('error'),
  },
  (table) => [index('alerts_subject_idx').on(table.kind, table.subject)],
);

/** Sessions of the exchanges as the calendar knows them, for views that ask what should be there. */
export const sessions = etl.table(
  'sessions',
  {
    exchange: text('exchange').notNull(),
    day: date('day', { mode: 'string' }).notNull(),
    /** session, special, or observed: data came for a day the calendar calls closed. */
    kind: text('kind').notNull(),
  },
  (table) => [primaryKey({ name: 'sessions_pkey', columns: [table.exchange, table.day] })],
);

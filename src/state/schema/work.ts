import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, text, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import { forEachCount } from '../../core/record-counts.ts';
import {
  RUN_KINDS,
  RUN_STATES,
  type RunKind,
  type RunState,
  type Target,
  WINDOW_STATES,
  type WindowState,
} from '../request.ts';
import { COUNT_COMMENTS, count, day, etl, id, isOneOf, moment, reference } from './columns.ts';
import { describe } from './describe.ts';

export const runs = etl.table(
  'runs',
  {
    id: id(),
    kind: text('kind').$type<RunKind>().notNull(),
    state: text('state').$type<RunState>().notNull().default('running'),
    requested_by: text('requested_by').notNull(),
    request: jsonb('request').notNull(),
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    tick: text('tick'),
    deferred: jsonb('deferred').$type<readonly Target[]>().notNull().default([]),
    is_key_accepted: boolean('is_key_accepted').notNull().default(false),
    error: text('error'),
    requests: count('requests'),
    bytes: count('bytes'),
    ...forEachCount(count),
    started_at: moment('started_at').notNull().defaultNow(),
    resumed_at: moment('resumed_at'),
    finished_at: moment('finished_at'),
    follow_up: text('follow_up', { enum: ['none', 'due', 'night', 'done', 'failed'] })
      .notNull()
      .default('none'),
    follow_up_attempts: integer('follow_up_attempts').notNull().default(0),
  },
  (table) => [
    unique('runs_tick_key').on(table.tick),
    index('runs_follow_up_idx').on(table.id).where(sql`${table.follow_up} in ('due', 'night')`),
    check('runs_follow_up', sql`${table.follow_up} in ('none', 'due', 'night', 'done', 'failed')`),
    index('runs_open_idx').on(table.id).where(sql`${table.state} in ('running', 'paused')`),
    check('runs_kind', isOneOf(table.kind, RUN_KINDS)),
    check('runs_state', isOneOf(table.state, RUN_STATES)),
  ],
);
describe(runs, 'One row per run: what was requested, by whom, its state and totals.', {
  id: 'Number of the run, as `eod runs`, `eod runs resume` and `eod runs cancel` take it.',
  kind: 'backfill, nightly, import, replay, gap_fill or events (corporate events computed again).',
  state:
    'running; paused (stopped by hand, or because the source refused the key; `eod runs resume` continues it); completed (every window loaded, empty or skipped for a reason); failed (a window failed or was blocked); cancelled.',
  requested_by: 'Who requested it: user and host, or the scheduler.',
  request: 'What was requested, as JSON; never the access key.',
  tick: 'Schedule and time that started it; unique, so that two schedulers start one run. Null when a person started it.',
  deferred: 'Operations whose windows wait for others of the run, which list what to request.',
  is_key_accepted:
    'Whether the source has accepted the key since the run was started or resumed; until then one window of it is requested.',
  error: 'Why the run as a whole stopped, or was paused.',
  requests: 'Calls made to the source.',
  bytes: 'Bytes received. Unit: bytes.',
  ...COUNT_COMMENTS,
  started_at: 'When the run was requested.',
  resumed_at: 'When it was last resumed.',
  finished_at: 'When it ended; null while it is open.',
  follow_up:
    'Checks of the data and alerts after its end: none (not ended, or there are none), due, night (those of the run are done, those of its night wait for its other runs), done, or failed (given up after five attempts).',
  follow_up_attempts: 'How often they were started.',
});

export const windows = etl.table(
  'windows',
  {
    id: id(),
    run_id: reference('run_id')
      .notNull()
      .references(() => runs.id),
    parent_id: reference('parent_id'),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    instruments: text('instruments').array().notNull().default([]),
    params: jsonb('params').$type<Readonly<Record<string, string>>>().notNull().default({}),
    variant: text('variant').notNull().default(''),
    is_filtered: boolean('is_filtered').notNull().default(false),
    state: text('state').$type<WindowState>().notNull().default('pending'),
    attempts: integer('attempts').notNull().default(0),
    failed_attempts: integer('failed_attempts').notNull().default(0),
    lost_workers: integer('lost_workers').notNull().default(0),
    requests: integer('requests').notNull().default(0),
    not_ready_ms: integer('not_ready_ms').notNull().default(0),
    bytes: count('bytes'),
    ...forEachCount(count),
    diagnostic: text('diagnostic'),
    error: text('error'),
    refused_hash: text('refused_hash'),
    suspicious: text('suspicious'),
    unsettled: text('unsettled'),
    source_file: text('source_file'),
    source_hash: text('source_hash'),
    warnings: text('warnings').array().notNull().default([]),
    retry_at: moment('retry_at'),
    started_at: moment('started_at'),
    finished_at: moment('finished_at'),
  },
  (table) => [
    index('windows_run_idx').on(table.run_id, table.state),
    // Of two windows that make the same request, one waits. Files and kept responses are read without a request.
    uniqueIndex('windows_requested_key')
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
describe(
  windows,
  "One row per window of a run: one request's worth of work, committed as a whole or not at all.",
  {
    id: 'Number of the window.',
    run_id: 'The run it belongs to.',
    params:
      'Further request options; never the access key. Of an import: "file", the name of the CSV file, and "rank", the rank of its format among those of the trading day.',
    variant: 'Which request about a day this is, if the operation has several, e.g. eod/Standalone.',
    is_filtered: 'Whether request options narrowed it to a part of the data: its days are then not covered.',
    state:
      'pending, running, loaded, empty, skipped, blocked, failed or cancelled; split: replaced by the windows that name it as parent, and counted there.',
    attempts: 'How often it was started.',
    failed_attempts: 'Attempts that failed and count towards EOD_ATTEMPTS.',
    lost_workers:
      'How often it was claimed while an earlier claim had not ended, because that worker had died or lost its connection. After five times the window fails.',
    requests: 'Calls made to the source.',
    not_ready_ms:
      'Milliseconds in all that it was postponed because its response was not ready; other waits are not included.',
    bytes: 'Bytes received. Unit: bytes.',
    ...COUNT_COMMENTS,
    diagnostic: 'The line that the source sent instead of data, if any.',
    error: 'Why it failed, was blocked or skipped.',
    refused_hash:
      'SHA-256 of the last response that could not be read, or states more records than it has. Its body is in etl.response_bodies. One that states too many is taken if the same comes again.',
    warnings: 'Problems that were not fatal, e.g. a wrong count.',
    retry_at: 'When it is tried again at the earliest, if a try failed.',
    started_at: 'When it was first started.',
    finished_at: 'When it ended.',
    parent_id:
      'The window this one was split from, because the source refused its range or the response was too large.',
    suspicious:
      'Why it was suspicious when it was loaded, e.g. because its response lacked more rows than may be withdrawn at once, so that none was.',
    unsettled:
      'Those of these reasons without a reject or withdrawal of their own: only a later complete response resolves them.',
    source_file: 'The file that an import read.',
    source_hash: 'SHA-256 of that file, in hex.',
  },
);

export const workers = etl.table('workers', {
  worker: text('worker').primaryKey(),
  seen_at: moment('seen_at').notNull().defaultNow(),
  cannot_store: text('cannot_store'),
  cannot_store_since: moment('cannot_store_since'),
});
describe(workers, 'Worker processes; eod status says if none was seen for a minute.', {
  worker: 'Host and process id.',
  seen_at: 'When it last reported, which it does every half minute.',
  cannot_store:
    'Why Postgres refuses to store the responses that it holds; until they are stored it makes no call. NULL if they can be stored.',
  cannot_store_since: 'Since when.',
});

import { sql } from 'drizzle-orm';
import { check, index, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import {
  RUN_KINDS,
  RUN_STATES,
  type RunKind,
  type RunState,
  type Target,
  WINDOW_STATES,
  type WindowState,
} from '../request.ts';
import { isOneOf } from './columns.ts';
import {
  boolean,
  count,
  day,
  declareTable,
  exchange,
  id,
  integer,
  json,
  moment,
  number,
  oneOf,
  operation,
  recordCounts,
  text,
  texts,
} from './declare-table.ts';

export const runs = declareTable(
  'runs',
  'One row per run: what was requested, by whom, its state and totals.',
  {
    id: id('Number of the run, as `eod runs`, `eod runs resume` and `eod runs cancel` take it.'),
    kind: text('backfill, nightly, import, replay, gap_fill or events (corporate events computed again).')
      .$type<RunKind>()
      .notNull(),
    state: text(
      'running; paused (stopped by hand, or because the source refused the key; `eod runs resume` continues it); completed (every window loaded, empty or skipped for a reason); failed (a window failed or was blocked); cancelled.',
    )
      .$type<RunState>()
      .notNull()
      .default('running'),
    requested_by: text('Who requested it: user and host, or the scheduler.').notNull(),
    request: json('What was requested, as JSON; never the access key.').notNull(),
    from_date: day('First day requested.').notNull(),
    to_date: day('Last day requested.').notNull(),
    tick: text(
      'Schedule and time that started it; unique, so that two schedulers start one run. Null when a person started it.',
    ),
    deferred: json('Operations whose windows wait for others of the run, which list what to request.')
      .$type<readonly Target[]>()
      .notNull()
      .default([]),
    is_key_accepted: boolean(
      'Whether the source has accepted the key since the run was started or resumed; until then one window of it is requested.',
    )
      .notNull()
      .default(false),
    error: text('Why the run as a whole stopped, or was paused.'),
    requests: count('Calls made to the source.'),
    bytes: count('Bytes received. Unit: bytes.'),
    ...recordCounts(),
    started_at: moment('When the run was requested.').notNull().defaultNow(),
    resumed_at: moment('When it was last resumed.'),
    finished_at: moment('When it ended; null while it is open.'),
    follow_up: oneOf(
      ['none', 'due', 'night', 'done', 'failed'],
      'Checks of the data and alerts after its end: none (not ended, or there are none), due, night (those of the run are done, those of its night wait for its other runs), done, or failed (given up after five attempts).',
    )
      .notNull()
      .default('none'),
    follow_up_attempts: integer('How often they were started.').notNull().default(0),
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

export const windows = declareTable(
  'windows',
  "One row per window of a run: one request's worth of work, committed as a whole or not at all.",
  {
    id: id('Number of the window.'),
    run_id: number('The run it belongs to.')
      .notNull()
      .references(() => runs.id),
    parent_id: number(
      'The window this one was split from, because the source refused its range or the response was too large.',
    ),
    operation: operation(),
    exchange: exchange(),
    from_date: day('First day requested.').notNull(),
    to_date: day('Last day requested.').notNull(),
    instruments: texts('Instruments requested; empty means the whole exchange.').notNull().default([]),
    params: json(
      'Further request options; never the access key. Of an import: "file", the name of the CSV file, and "rank", the rank of its format among those of the trading day.',
    )
      .$type<Readonly<Record<string, string>>>()
      .notNull()
      .default({}),
    variant: text('Which request about a day this is, if the operation has several, e.g. eod/Standalone.')
      .notNull()
      .default(''),
    is_filtered: boolean(
      'Whether request options narrowed it to a part of the data: its days are then not covered.',
    )
      .notNull()
      .default(false),
    state: text(
      'pending, running, loaded, empty, skipped, blocked, failed or cancelled; split: replaced by the windows that name it as parent, and counted there.',
    )
      .$type<WindowState>()
      .notNull()
      .default('pending'),
    attempts: integer('How often it was started.').notNull().default(0),
    failed_attempts: integer('Attempts that failed and count towards EOD_ATTEMPTS.').notNull().default(0),
    lost_workers: integer(
      'How often it was claimed while an earlier claim had not ended, because that worker had died or lost its connection. After five times the window fails.',
    )
      .notNull()
      .default(0),
    requests: integer('Calls made to the source.').notNull().default(0),
    not_ready_ms: integer(
      'Milliseconds in all that it was postponed because its response was not ready; other waits are not included.',
    )
      .notNull()
      .default(0),
    bytes: count('Bytes received. Unit: bytes.'),
    ...recordCounts(),
    diagnostic: text('The line that the source sent instead of data, if any.'),
    error: text('Why it failed, was blocked or skipped.'),
    refused_hash: text(
      'SHA-256 of the last response that could not be read, or states more records than it has. Its body is in etl.response_bodies. One that states too many is taken if the same comes again.',
    ),
    suspicious: text(
      'Why it was suspicious when it was loaded, e.g. because its response lacked more rows than may be withdrawn at once, so that none was.',
    ),
    unsettled: text(
      'Those of these reasons without a reject or withdrawal of their own: only a later complete response resolves them.',
    ),
    source_file: text('The file that an import read.'),
    source_hash: text('SHA-256 of that file, in hex.'),
    warnings: texts('Problems that were not fatal, e.g. a wrong count.').notNull().default([]),
    retry_at: moment('When it is tried again at the earliest, if a try failed.'),
    started_at: moment('When it was first started.'),
    finished_at: moment('When it ended.'),
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

export const workers = declareTable(
  'workers',
  'Worker processes; eod status says if none was seen for a minute.',
  {
    worker: text('Host and process id.').primaryKey(),
    seen_at: moment('When it last reported, which it does every half minute.').notNull().defaultNow(),
    cannot_store: text(
      'Why Postgres refuses to store the responses that it holds; until they are stored it makes no call. NULL if they can be stored.',
    ),
    cannot_store_since: moment('Since when.'),
  },
);

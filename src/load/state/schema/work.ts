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
  COUNT_COMMENTS,
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
    error: text('error'),
    requests: count('requests'),
    bytes: count('bytes'),
    ...forEachCount(count),
    started_at: moment('started_at').notNull().defaultNow(),
    resumed_at: moment('resumed_at'),
    finished_at: moment('finished_at'),
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
describe(runs, 'One row per run: what was asked for, by whom, its state and totals.', {
  id: 'Number of the run, as `eod runs`, `eod runs resume` and `eod runs cancel` take it.',
  kind: 'backfill, nightly, import, replay, gap_fill, preview (fetched, compared, rolled back) or events (corporate events worked out again).',
  state:
    'running; paused (stopped by hand; `eod runs resume` continues it); completed (every window loaded, empty or skipped for a reason); failed (a window failed or was blocked); cancelled.',
  requested_by: 'Who asked for it: user and host, or the scheduler.',
  request: 'What was asked for, as JSON; never the access key.',
  from_date: 'First day asked for.',
  to_date: 'Last day asked for.',
  tick: 'Schedule and time that started it; unique, so that two schedulers start one run. Null when a person started it.',
  deferred: 'Operations whose windows wait for others of the run, which list what to ask for.',
  error: 'Why the run as a whole stopped.',
  requests: 'Calls made to the source.',
  bytes: 'Bytes received. Unit: bytes.',
  ...COUNT_COMMENTS,
  started_at: 'When the run was asked for.',
  resumed_at: 'When it was last resumed.',
  finished_at: 'When it ended; null while it is open.',
  follow_up:
    'Checks of the data and alerts after its end: none (not ended, or there are none), due, done, or failed (given up after five attempts).',
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
    preview: jsonb('preview'),
    warnings: text('warnings').array().notNull().default([]),
    retry_at: moment('retry_at'),
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
describe(
  windows,
  "One row per window of a run: one request's worth of work, committed as a whole or not at all.",
  {
    id: 'Number of the window.',
    run_id: 'The run it belongs to.',
    operation: 'Operation of the source.',
    exchange: 'Exchange that was asked for.',
    from_date: 'First day asked for.',
    to_date: 'Last day asked for.',
    instruments: 'Instruments asked for; empty means the whole exchange.',
    params: 'Further request options; never the access key. Of an import: "file", the name of the CSV file.',
    variant: 'Which question about a day this is, if the operation asks several, e.g. eod/Standalone.',
    is_filtered:
      'Whether request options narrowed it to a part of the data: it does not count as coverage then.',
    state:
      'pending, running, loaded, empty, skipped, blocked, failed or cancelled; split: replaced by the windows that name it as parent, and counted there.',
    attempts: 'How often it was started.',
    failed_attempts: 'Attempts that failed and count towards EOD_ATTEMPTS.',
    lost_workers:
      'How often it was claimed while an earlier claim had not ended, because that worker had died or lost its connection. After five times the window fails.',
    requests: 'Calls made to the source.',
    not_ready_ms:
      'Milliseconds in all that it was postponed because its answer was not ready; other waits do not count.',
    bytes: 'Bytes received. Unit: bytes.',
    ...COUNT_COMMENTS,
    diagnostic: 'The line with which the source answered instead of data, if any.',
    error: 'Why it failed, was blocked or skipped.',
    refused_hash:
      'SHA-256 of the last answer that could not be read, or states more records than it has. Its body is in etl.response_bodies. One that states too many is taken if the same comes again.',
    warnings: 'Problems that were not fatal, e.g. a wrong count.',
    retry_at: 'When it is tried again at the earliest, if a try failed.',
    started_at: 'When it was first started.',
    finished_at: 'When it ended.',
    parent_id:
      'The window this one was split from, because the source refused its range or the answer was too large.',
    suspicious:
      'Why somebody should have looked at its answer when it was loaded, e.g. because it lacked more rows than may be withdrawn at once, so that none was.',
    unsettled:
      'Those of these reasons that no reject and no withdrawal stands for, so that only a later good answer settles them.',
    source_file: 'The file that an import read.',
    source_hash: 'SHA-256 of that file, in hex.',
    preview: 'What a preview would have changed: sample rows with the columns that differ.',
  },
);

/** What is wrong with a rejected record, field by field. */
type Problems = readonly { readonly path: string; readonly message: string }[];

export const loads = etl.table(
  'loads',
  {
    id: id(),
    ...ofWindow(),
    ...asked(),
    place: place().notNull(),
    fetched_at: moment('fetched_at').notNull(),
    committed_at: moment('committed_at').notNull(),
    state: reference('state').notNull(),
    changed_from: day('changed_from'),
    changed_to: day('changed_to'),
    has_new_names: boolean('has_new_names').notNull().default(true),
    digest: text('digest'),
    rows_digest: text('rows_digest'),
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
describe(
  loads,
  'One row per committed load. Rows of market and market_history refer to the load that wrote them.',
  {
    id: 'Number of the load.',
    window_id: 'The window whose answer it stored.',
    run_id: 'The run of the window.',
    operation: 'Operation of the source.',
    exchange: 'Exchange that was asked for.',
    from_date: 'First day asked for.',
    to_date: 'Last day asked for.',
    instruments: 'Instruments asked for; empty means the whole exchange.',
    variant: 'Which question about a day this is, as in etl.windows.',
    is_filtered: 'Whether it was narrowed to a part of the data, as in etl.windows.',
    place:
      'Place of its answer in the one order of answers: the later one replaces the earlier one, whichever was loaded first.',
    fetched_at: 'When the source was asked.',
    committed_at:
      'When the load was committed, just before the end of its transaction; never before that of a lower state.',
    state:
      'Number of the state it made: states are in the order of the commits. market.state() is the one that a query sees, market.<table>_at(state) shows it.',
    changed_from:
      'First day of the rows that it changed; null if it changed none, -infinity if they may be of any day or have none.',
    changed_to:
      'Last day of the rows that it changed; null if it changed none, infinity if they may be of any day or have none.',
    has_new_names:
      'Whether its rows may name an instrument in a way, or on a day, in which no row did before. If not, market.instruments does not change.',
    digest:
      'SHA-256 of the answer and of the code that read it, in hex: an answer is not read again if the last load of its days has the same. Null for imports and replays.',
    rows_digest:
      'SHA-256, in hex, of the rows that it wrote and withdrew, as `eod verify` works it out; null until then.',
    chain_digest:
      'SHA-256, in hex, of that digest and of this column of the state before: the digest of all states up to this one.',
    ...COUNT_COMMENTS,
  },
);

export const dayRows = etl.table(
  'day_rows',
  {
    table_name: text('table_name').notNull(),
    exchange: text('exchange').notNull(),
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
describe(
  dayRows,
  'The most rows that a day of a table ever had, since a person last accepted that it has fewer: the entry with the greatest place. Decides how many may be withdrawn.',
  {
    table_name: 'Table of market.',
    exchange: 'Exchange of the rows.',
    day: 'Day of the rows; 0001-01-01 where the table has no days.',
    most: 'The most rows.',
    place:
      'The place of the answer since which this counts: it withdrew rows, and the most had been another number before. -infinity where that is not known.',
  },
);

const WITHDRAWAL_STATES = ['withdrawn', 'refused', 'accepted', 'outdated'] as const;

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
    place: place().notNull(),
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
describe(
  withdrawals,
  'By load and day, the rows that a full answer no longer listed: withdrawn, or too many to be withdrawn at once.',
  {
    id: 'Number of the withdrawal, as `eod withdrawals accept` takes it.',
    load_id: 'The load (etl.loads.id) whose answer did not list the rows.',
    window_id: 'The window of that load.',
    run_id: 'The run of that load.',
    operation: 'Operation of the source.',
    exchange: 'Exchange that was asked for.',
    table_name: 'Table of market.',
    day: 'Day of the rows; null where the table has no days.',
    state:
      'withdrawn; refused (held back: too many at once, a person decides); accepted (withdrawn by a person); outdated (a later answer decided).',
    reason: 'Why they were not withdrawn.',
    gone: 'Rows that were not listed.',
    most: 'The most rows that the day ever had, as in etl.day_rows.',
    rows_left: 'Rows that the day has left, or would have.',
    rows: 'Keys of the rows, if they were not withdrawn.',
    place: 'Place of the answer that did not list them, as in etl.answers.',
    noted_at: 'When it was stored.',
    accepted_at: 'When a person accepted it.',
    accepted_by: 'Who accepted it: user and host.',
  },
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
describe(pastBegins, 'The tables of which a rebuild has replaced the history of an exchange.', {
  table_name: 'Name of the table in market.',
  exchange: 'Exchange whose history was replaced.',
  state: 'The first state that can be shown since: market.<table>_at(state).',
  run_id: 'The run that replaced it.',
});

export const coverage = etl.table(
  'coverage',
  {
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    day: day('day').notNull(),
    instrument: text('instrument').notNull().default(''),
    variant: text('variant').notNull().default(''),
    last_place: placeOf('last_place').notNull(),
    last_said: text('last_said', { enum: COVERAGE_STATES }).notNull(),
    last_records: count('last_records'),
    last_diagnostic: text('last_diagnostic'),
    loaded_place: placeOf('loaded_place'),
    loaded_records: reference('loaded_records'),
    doubted_place: placeOf('doubted_place'),
    emptied_place: placeOf('emptied_place'),
    held_back_place: placeOf('held_back_place'),
    state: text('state', { enum: COVERAGE_STATES }).notNull().generatedAlwaysAs(sql.raw(STATE_OF.state)),
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
    // States are counted from these alone. Equal keys are stored once, so they are a twentieth of the table.
    index('coverage_exchange_idx')
      .on(table.operation, table.exchange, table.day, table.variant, table.state)
      .where(sql`${table.instrument} = ''`),
    index('coverage_instruments_idx')
      .on(table.operation, table.exchange, table.day, table.variant, table.state)
      .where(sql`${table.instrument} <> ''`),
    check('coverage_said', isOneOf(table.last_said, COVERAGE_STATES)),
  ],
);
describe(
  coverage,
  'What is known about each operation, exchange and session day; no row means that it was never asked for.',
  {
    operation: 'Operation of the source.',
    exchange: 'Exchange that was asked for.',
    day: 'Session day; the day of the call for operations without dates.',
    instrument: 'Instrument, if the operation is asked per instrument; empty means the whole exchange.',
    variant: 'Which question about a day, if the operation asks several, e.g. eod/Standalone.',
    state:
      'loaded, empty (exchange open, nothing listed), holiday, not_published (asked before publication), blocked or failed.',
    records: 'Records of that day in the answer that loaded it; else in the last one. Unit: records.',
    diagnostic: 'The line with which the source answered instead of data, if any.',
    last_place:
      'Where the answer, failed call or holiday that said something last stands in the order of answers. The state, records and diagnostic follow from these columns.',
    last_said: 'What it said: one of the states.',
    last_records: 'Records of that day in it. Unit: records.',
    last_diagnostic: 'The line with which the source answered instead of data, or why the answer is doubted.',
    loaded_place: 'The place of the last answer that had records of the day.',
    loaded_records: 'Records of that day in it. Unit: records.',
    doubted_place:
      'The place of the last answer with records that nobody asked for, or with fewer than it states: the day is not loaded by it or by earlier ones.',
    emptied_place: 'The place of the last answer that took the last row of the day.',
    held_back_place: 'The place of the last answer whose withdrawal of rows of the day was held back.',
    run_id: 'The run that last asked for it.',
    window_id: 'The window that last asked for it; null if the calendar decided.',
    checked_at: 'When it was last asked for; a replay does not ask.',
  },
);

export const rejectedRecords = etl.table(
  'rejected_records',
  {
    id: id(),
    ...ofWindow(),
    position: integer('position').notNull(),
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    fingerprint: text('fingerprint').notNull(),
    record: jsonb('record'),
    problems: jsonb('problems').$type<Problems>().notNull(),
    is_stray: boolean('is_stray').notNull().default(false),
    first_seen_at: moment('first_seen_at').notNull(),
    last_seen_at: moment('last_seen_at').notNull(),
    instruments: text('instruments').array().notNull().default([]),
    variant: text('variant').notNull().default(''),
    is_dated: boolean('is_dated').notNull().default(true),
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

/** What the columns hold that the table and the view of rejected records have in common. */
const REJECT_COMMENTS = {
  id: 'Number of the reject.',
  run_id: 'The run that fetched it last.',
  window_id: 'The window that fetched it last.',
  operation: 'Operation of the source.',
  exchange: 'Exchange that was asked for.',
  position: 'Position in the answer, from 0.',
  from_date: 'The day that it names; if none can be read, the first day asked for.',
  to_date: 'The day that it names; if none can be read, the last day asked for.',
  fingerprint:
    'SHA-256 of the record and of what was asked for, in hex: however often it is sent, it is open only once.',
  record: 'The record as sent; NUL and invalid Unicode are written as escapes, oversized parts are cut.',
  problems: 'Each problem with the path of its field.',
  is_stray: 'Whether it is of a day, quarter, exchange or instrument that was not requested.',
  first_seen_at: 'When the first answer that contained it was fetched.',
  last_seen_at: 'When the last answer that contained it was fetched, which is that of the window.',
};

describe(rejectedRecords, 'What the view etl.rejects is computed from: query that.', {
  ...REJECT_COMMENTS,
  instruments: 'Instruments that the last answer with it was asked for; empty means the whole exchange.',
  variant: 'Which question about a day that answer was asked.',
  is_dated: 'Whether it is about days: only an answer about all of them resolves it.',
  settled_at: 'When it was resolved, as far as that is noted; null if it has to be asked of etl.answers.',
});

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
describe(rejects, 'Every record that failed validation, as sent, with each of its problems.', {
  ...REJECT_COMMENTS,
  resolved_at:
    'When it was read again and passed, or when a later answer was fetched in which it passed or was no longer sent; null until then.',
});

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
    'Why Postgres refuses to store the answers that it holds; until they are stored it makes no call. NULL if they can be stored.',
  cannot_store_since: 'Since when.',
});

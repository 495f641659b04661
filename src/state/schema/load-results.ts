import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, primaryKey, text, unique } from 'drizzle-orm/pg-core';
import { forEachCount } from '../../core/record-counts.ts';
import { COVERAGE_STATES, WITHHELD } from '../registers.ts';
import {
  COUNT_COMMENTS,
  count,
  day,
  etl,
  id,
  isOneOf,
  moment,
  ofWindow,
  position,
  positionColumn,
  reference,
  requested,
} from './columns.ts';
import { describe } from './describe.ts';

/** What is wrong with a rejected record, field by field. */
type Problems = readonly { readonly path: string; readonly message: string }[];

export const loads = etl.table(
  'loads',
  {
    id: id(),
    ...ofWindow(),
    ...requested(),
    position: position().notNull(),
    fetched_at: moment('fetched_at').notNull(),
    committed_at: moment('committed_at').notNull(),
    state: reference('state').notNull(),
    changed_from: day('changed_from'),
    changed_to: day('changed_to'),
    digest: text('digest'),
    ...forEachCount(count),
  },
  (table) => [
    unique('loads_state_key').on(table.state),
    index('loads_run_idx').on(table.run_id),
    index('loads_committed_idx').on(table.committed_at),
    index('loads_requested_idx').on(table.operation, table.exchange, table.to_date),
    // Every load looks for loads of later responses, and nearly always finds none.
    index('loads_position_idx').on(table.position),
  ],
);
describe(
  loads,
  'One row per committed load. Rows of market and market_history refer to the load that wrote them.',
  {
    id: 'Number of the load.',
    window_id: 'The window whose response it stored.',
    run_id: 'The run of the window.',
    variant: 'Which request about a day this is, as in etl.windows.',
    is_filtered: 'Whether it was narrowed to a part of the data, as in etl.windows.',
    position:
      'Position of its response in the one order of responses: the later one replaces the earlier one, whichever was loaded first.',
    fetched_at: 'When the source was called.',
    committed_at:
      'When the load was committed, just before the end of its transaction; never before that of a lower state.',
    state:
      'Number of the state it made: states are in the order of the commits. market.state() is the one that a query sees, market_history.<table>_at(state) shows it.',
    changed_from:
      'First day of the rows that it changed; null if it changed none, -infinity if they may be of any day or have none.',
    changed_to:
      'Last day of the rows that it changed; null if it changed none, infinity if they may be of any day or have none.',
    digest:
      'SHA-256 of the response, its request and the version that read it, in hex: a response is not read again if the last load of its days has the same. Null if it is to be read again, and for imports and replays.',
    ...COUNT_COMMENTS,
  },
);

/** Who has accepted something, and when. */
const acceptance = () => ({ accepted_at: moment('accepted_at'), accepted_by: text('accepted_by') });

const WITHDRAWAL_STATES = ['withdrawn', 'withheld', 'accepted', 'outdated'] as const;

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
    unlisted_rows: integer('unlisted_rows').notNull(),
    max_rows: integer('max_rows').notNull(),
    remaining_rows: integer('remaining_rows').notNull(),
    position: position().notNull(),
    rows: jsonb('rows').$type<readonly Readonly<Record<string, string | null>>[]>().notNull(),
    noted_at: moment('noted_at').notNull().defaultNow(),
    ...acceptance(),
  },
  (table) => [
    index('withdrawals_run_idx').on(table.run_id),
    index('withdrawals_day_idx').on(table.exchange, table.day),
    index('withdrawals_withheld_idx')
      .on(table.table_name, table.exchange, table.day)
      .where(sql`${table.state} = 'withheld'`),
    check('withdrawals_state', isOneOf(table.state, WITHDRAWAL_STATES)),
  ],
);
describe(
  withdrawals,
  'By response and day, the rows that a full response no longer listed: withdrawn, or withheld, because they are too many at once.',
  {
    id: 'Number of the withdrawal, as `eod withdrawals accept` takes it.',
    load_id: 'The load (etl.loads.id) that found it: of that response, or of an earlier one that came late.',
    window_id: 'The window of that load.',
    run_id: 'The run of that load.',
    table_name: 'Table of market.',
    day: 'Day of the rows; null where the table has no days.',
    state:
      'withdrawn; withheld (too many at once, a person decides); accepted (withdrawn by a person); outdated (a later response decided).',
    reason: 'Why they were not withdrawn.',
    unlisted_rows:
      'Rows that were not listed: the response is compared with those that the responses before it left.',
    max_rows:
      'The most rows that the day had since a person last accepted that it has fewer: it decides how many may be withdrawn.',
    remaining_rows: 'Rows that the day has left, or would have.',
    rows: 'Keys of the rows, if they were not withdrawn.',
    position: 'Position of the response that did not list them, as in etl.responses.',
    noted_at: 'When it was stored.',
    accepted_at: 'When a person accepted it.',
    accepted_by: 'Who accepted it: user and host.',
  },
);

/**
 * The state of an entry as SQL, by its registers (registers.ts). A response that fills one table and takes the
 * last row of another loads the day; one that is suspicious never does. Where the newest has no row of the
 * day and its withdrawal was withheld, it is not known that there is nothing: the day stays a gap until a better response comes or a person decides.
 */
const STATE_OF = (() => {
  const isLoaded = `(loaded_position is not null and (suspicious_position is null or loaded_position > suspicious_position)
    and (emptied_position is null or loaded_position >= emptied_position))`;
  const isWithheld = `(withheld_position is not distinct from last_position and last_said in ('empty', 'not_published'))`;
  return {
    state: `case when ${isLoaded} then 'loaded' when ${isWithheld} then 'failed' else last_said end`,
    records: `case when ${isLoaded} then loaded_records else last_records end`,
    diagnostic: `case when ${isWithheld} then '${WITHHELD}' else last_diagnostic end`,
  };
})();

export const coverage = etl.table(
  'coverage',
  {
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    day: day('day').notNull(),
    instrument: text('instrument').notNull().default(''),
    variant: text('variant').notNull().default(''),
    last_position: positionColumn('last_position').notNull(),
    last_said: text('last_said', { enum: COVERAGE_STATES }).notNull(),
    last_records: count('last_records'),
    last_diagnostic: text('last_diagnostic'),
    loaded_position: positionColumn('loaded_position'),
    loaded_records: reference('loaded_records'),
    suspicious_position: positionColumn('suspicious_position'),
    emptied_position: positionColumn('emptied_position'),
    withheld_position: positionColumn('withheld_position'),
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
  'What is known about each operation, exchange and trading day; no row means that it was not requested yet.',
  {
    day: 'Trading day; the day of the call for operations without dates.',
    instrument: 'Instrument, if the operation is requested per instrument; empty means the whole exchange.',
    variant: 'Which request about a day, if the operation has several, e.g. eod/Standalone.',
    state:
      'loaded, empty (exchange open, nothing listed), holiday, not_published (requested before publication), blocked or failed.',
    records: 'Records of that day in the response that loaded it; else in the last one. Unit: records.',
    diagnostic: 'The line that the source sent instead of data, if any.',
    last_position:
      'Where the response, failed call or holiday that said something last stands in the order of responses. The state, records and diagnostic follow from these columns.',
    last_said: 'What it said: one of the states.',
    last_records: 'Records of that day in it. Unit: records.',
    last_diagnostic: 'The line that the source sent instead of data, or why the response is suspicious.',
    loaded_position: 'The position of the last response that had records of the day.',
    loaded_records: 'Records of that day in it. Unit: records.',
    suspicious_position:
      'The position of the last response with records that nobody requested, or with fewer than it states: the day is not loaded by it or by earlier ones.',
    emptied_position: 'The position of the last response that took the last row of the day.',
    withheld_position: 'The position of the last response whose withdrawal of rows of the day was withheld.',
    run_id: 'The run that last requested it.',
    window_id: 'The window that last requested it; null if the calendar decided.',
    checked_at: 'When it was last requested, which no replay does.',
  },
);

/** The columns that the table and the view of rejected records have in common. */
const rejectColumns = () => ({
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
});

export const rejectedRecords = etl.table(
  'rejected_records',
  {
    id: id(),
    ...rejectColumns(),
    instruments: text('instruments').array().notNull().default([]),
    variant: text('variant').notNull().default(''),
    is_dated: boolean('is_dated').notNull().default(true),
    settled_at: moment('settled_at'),
    ...acceptance(),
  },
  (table) => [
    index('rejected_records_window_idx').on(table.window_id),
    unique('rejected_records_fingerprint_key').on(table.operation, table.exchange, table.fingerprint),
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
  position: 'Position in the response, from 0.',
  from_date: 'The day that it names; if none can be read, the first day requested.',
  to_date: 'The day that it names; if none can be read, the last day requested.',
  fingerprint:
    'SHA-256 of the record and of what was requested, in hex: however often it is sent, it is one reject.',
  record: 'The record as sent; NUL and invalid Unicode are written as escapes, oversized parts are cut.',
  problems: 'Each problem with the path of its field.',
  is_stray: 'Whether it is of a day, quarter or exchange that was not requested.',
  first_seen_at: 'When the first response that contained it was fetched.',
  last_seen_at: 'When the last response that contained it was fetched, which is that of the window.',
  accepted_at: 'When a person accepted that it is not stored; null until then.',
  accepted_by: 'Who accepted it: user and host.',
};

describe(rejectedRecords, 'What the view etl.rejects is computed from: query that.', {
  ...REJECT_COMMENTS,
  instruments:
    'Instruments that were requested with the last response that had it; empty means the whole exchange.',
  variant: 'Which request about a day the response was to.',
  is_dated: 'Whether it is about days: only a response about all of them resolves it.',
  settled_at:
    'When it was resolved, as far as that is noted; null if it has to be computed from etl.responses.',
});

// The views of migrations/repeatable/rejects.sql.

export const rejects = etl
  .view('rejects', {
    id: reference('id').notNull(),
    ...rejectColumns(),
    ...acceptance(),
    resolved_at: moment('resolved_at'),
  })
  .existing();
describe(rejects, 'Every record that failed validation, as sent, with each of its problems.', {
  ...REJECT_COMMENTS,
  resolved_at:
    'When it was read again and passed, or when a later response was fetched in which it passed or was no longer sent; null until then.',
});

export const openRejects = etl
  .view('open_rejects', {
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    rejects: reference('rejects').notNull(),
    reject_id: reference('reject_id').notNull(),
    first_seen_at: moment('first_seen_at').notNull(),
    is_refused: boolean('is_refused').notNull(),
    source_file: text('source_file'),
    error: text('error'),
  })
  .existing();
describe(
  openRejects,
  'How many rejects are neither resolved nor accepted, by operation, exchange and day, and whether the rest of their response was stored.',
  {
    from_date: 'The day that the records name; if none can be read, the first day requested.',
    to_date: 'The day that the records name; if none can be read, the last day requested.',
    rejects: 'Rejects that are open. Unit: records.',
    reject_id: 'Number of the first of them: etl.rejects.id.',
    first_seen_at: 'When the first response that contained one of them was fetched.',
    is_refused:
      'Whether nothing of their response was stored, because too many of its records were rejected.',
    source_file: 'The imported file that has them; null if it is a response.',
    error: 'Why nothing was stored.',
  },
);

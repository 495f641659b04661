import { sql } from 'drizzle-orm';
import { check, index, primaryKey, unique } from 'drizzle-orm/pg-core';
import { COVERAGE_STATES, WITHHELD } from '../registers.ts';
import { isOneOf } from './columns.ts';
import {
  boolean,
  count,
  day,
  declareTable,
  declareView,
  exchange,
  id,
  integer,
  json,
  moment,
  number,
  ofWindow,
  oneOf,
  operation,
  position,
  recordCounts,
  requested,
  text,
  texts,
} from './declare-table.ts';

/** What is wrong with a rejected record, field by field. */
type Problems = readonly { readonly path: string; readonly message: string }[];

export const loads = declareTable(
  'loads',
  'One row per committed load. Rows of market and market_history refer to the load that wrote them.',
  {
    id: id('Number of the load.'),
    ...ofWindow('The run of the window.', 'The window whose response it stored.'),
    ...requested('Which request about a day this is, as in etl.windows.'),
    position: position(
      'Position of its response in the one order of responses: the later one replaces the earlier one, whichever was loaded first.',
    ).notNull(),
    fetched_at: moment('When the source was called.').notNull(),
    committed_at: moment(
      'When the load was committed, just before the end of its transaction; never before that of a lower state.',
    ).notNull(),
    state: number(
      'Number of the state it made: states are in the order of the commits. market.state() is the one that a query sees, market_history.<table>_at(state) shows it.',
    ).notNull(),
    changed_from: day(
      'First day of the rows that it changed; null if it changed none, -infinity if they may be of any day or have none.',
    ),
    changed_to: day(
      'Last day of the rows that it changed; null if it changed none, infinity if they may be of any day or have none.',
    ),
    digest: text(
      'SHA-256 of the response, its request and the version that read it, in hex: a response is not read again if the last load of its days has the same. Null if it is to be read again, and for imports and replays.',
    ),
    ...recordCounts(),
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

/** Who has accepted something, and when. */
const acceptance = () => ({
  accepted_at: moment('When a person accepted it; null until then.'),
  accepted_by: text('Who accepted it: user and host.'),
});

const WITHDRAWAL_STATES = ['withdrawn', 'withheld', 'accepted', 'outdated'] as const;

export const withdrawals = declareTable(
  'withdrawals',
  'By response and day, the rows that a full response no longer listed: withdrawn, or withheld, because they are too many at once.',
  {
    id: id('Number of the withdrawal, as `eod withdrawals accept` takes it.'),
    load_id: number(
      'The load (etl.loads.id) that found it: of that response, or of an earlier one that came late.',
    ).notNull(),
    ...ofWindow('The run of that load.', 'The window of that load.'),
    table_name: text('Table of market.').notNull(),
    day: day('Day of the rows; null where the table has no days.'),
    state: oneOf(
      WITHDRAWAL_STATES,
      'withdrawn; withheld (too many at once, a person decides); accepted (withdrawn by a person); outdated (a later response decided).',
    ).notNull(),
    reason: text('Why they were not withdrawn.'),
    unlisted_rows: integer(
      'Rows that were not listed: the response is compared with those that the responses before it left.',
    ).notNull(),
    max_rows: integer(
      'The most rows that the day had since a person last accepted that it has fewer: it decides how many may be withdrawn.',
    ).notNull(),
    remaining_rows: integer('Rows that the day has left, or would have.').notNull(),
    position: position('Position of the response that did not list them, as in etl.responses.').notNull(),
    rows: json('Keys of the rows, if they were not withdrawn.')
      .$type<readonly Readonly<Record<string, string | null>>[]>()
      .notNull(),
    noted_at: moment('When it was stored.').notNull().defaultNow(),
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

export const coverage = declareTable(
  'coverage',
  'What is known about each operation, exchange and trading day; no row means that it was not requested yet.',
  {
    operation: operation(),
    exchange: exchange(),
    day: day('Trading day; the day of the call for operations without dates.').notNull(),
    instrument: text(
      'Instrument, if the operation is requested per instrument; empty means the whole exchange.',
    )
      .notNull()
      .default(''),
    variant: text('Which request about a day, if the operation has several, e.g. eod/Standalone.')
      .notNull()
      .default(''),
    last_position: position(
      'Where the response, failed call or holiday that said something last stands in the order of responses. The state, records and diagnostic follow from these columns.',
    ).notNull(),
    last_said: oneOf(COVERAGE_STATES, 'What it said: one of the states.').notNull(),
    last_records: count('Records of that day in it. Unit: records.'),
    last_diagnostic: text(
      'The line that the source sent instead of data, or why the response is suspicious.',
    ),
    loaded_position: position('The position of the last response that had records of the day.'),
    loaded_records: number('Records of that day in it. Unit: records.'),
    suspicious_position: position(
      'The position of the last response with records that nobody requested, or with fewer than it states: the day is not loaded by it or by earlier ones.',
    ),
    emptied_position: position('The position of the last response that took the last row of the day.'),
    withheld_position: position(
      'The position of the last response whose withdrawal of rows of the day was withheld.',
    ),
    state: oneOf(
      COVERAGE_STATES,
      'loaded, empty (exchange open, nothing listed), holiday, not_published (requested before publication), blocked or failed.',
    )
      .notNull()
      .generatedAlwaysAs(sql.raw(STATE_OF.state)),
    records: number(
      'Records of that day in the response that loaded it; else in the last one. Unit: records.',
    )
      .notNull()
      .generatedAlwaysAs(sql.raw(STATE_OF.records)),
    diagnostic: text('The line that the source sent instead of data, if any.').generatedAlwaysAs(
      sql.raw(STATE_OF.diagnostic),
    ),
    run_id: number('The run that last requested it.'),
    window_id: number('The window that last requested it; null if the calendar decided.'),
    checked_at: moment('When it was last requested, which no replay does.').notNull().defaultNow(),
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

/** The columns that the table and the view of rejected records have in common. */
const rejectColumns = () => ({
  ...ofWindow('The run that fetched it last.', 'The window that fetched it last.'),
  position: integer('Position in the response, from 0.').notNull(),
  from_date: day('The day that it names; if none can be read, the first day requested.').notNull(),
  to_date: day('The day that it names; if none can be read, the last day requested.').notNull(),
  fingerprint: text(
    'SHA-256 of the record and of what was requested, in hex: however often it is sent, it is one reject.',
  ).notNull(),
  record: json(
    'The record as sent; NUL and invalid Unicode are written as escapes, oversized parts are cut.',
  ),
  problems: json('Each problem with the path of its field.').$type<Problems>().notNull(),
  is_stray: boolean('Whether it is of a day, quarter or exchange that was not requested.')
    .notNull()
    .default(false),
  first_seen_at: moment('When the first response that contained it was fetched.').notNull(),
  last_seen_at: moment(
    'When the last response that contained it was fetched, which is that of the window.',
  ).notNull(),
});

export const rejectedRecords = declareTable(
  'rejected_records',
  'What the view etl.rejects is computed from: query that.',
  {
    id: id('Number of the reject.'),
    ...rejectColumns(),
    instruments: texts(
      'Instruments that were requested with the last response that had it; empty means the whole exchange.',
    )
      .notNull()
      .default([]),
    variant: text('Which request about a day the response was to.').notNull().default(''),
    is_dated: boolean('Whether it is about days: only a response about all of them resolves it.')
      .notNull()
      .default(true),
    settled_at: moment(
      'When it was resolved, as far as that is noted; null if it has to be computed from etl.responses.',
    ),
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

// The views of migrations/repeatable/rejects.sql.

export const rejectResolutions = declareView(
  'reject_resolutions',
  'The responses which show that a rejected record is no longer sent or can be read now: those that list all they should, later than the last one that had the record, about all that was requested with it.',
  {
    reject_id: number('Number of the reject.').notNull(),
    last_seen_at: moment('When the last response that contained it was fetched.').notNull(),
    resolved_at: moment('Position of the response.').notNull(),
  },
);

export const rejects = declareView(
  'rejects',
  'Every record that failed validation, as sent, with each of its problems.',
  {
    id: number('Number of the reject.').notNull(),
    ...rejectColumns(),
    ...acceptance(),
    resolved_at: moment(
      'When it was read again and passed, or when a later response was fetched in which it passed or was no longer sent; null until then.',
    ),
  },
);

export const openRejects = declareView(
  'open_rejects',
  'How many rejects are neither resolved nor accepted, by operation, exchange and day, and whether the rest of their response was stored.',
  {
    operation: operation(),
    exchange: exchange(),
    from_date: day('The day that the records name; if none can be read, the first day requested.').notNull(),
    to_date: day('The day that the records name; if none can be read, the last day requested.').notNull(),
    rejects: number('Rejects that are open. Unit: records.').notNull(),
    reject_id: number('Number of the first of them: etl.rejects.id.').notNull(),
    first_seen_at: moment('When the first response that contained one of them was fetched.').notNull(),
    is_refused: boolean(
      'Whether nothing of their response was stored, because too many of its records were rejected.',
    ).notNull(),
    source_file: text('The imported file that has them; null if it is a response.'),
    error: text('Why nothing was stored.'),
  },
);

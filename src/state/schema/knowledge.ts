import { sql } from 'drizzle-orm';
import { check, index, primaryKey, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import { isOneOf } from './columns.ts';
import {
  boolean,
  day,
  declareTable,
  id,
  integer,
  json,
  moment,
  number,
  oneOf,
  text,
  texts,
} from './declare-table.ts';

/** How severe a finding can be, the mildest first. */
export const SEVERITIES = ['info', 'warning', 'error'] as const;

export const findings = declareTable(
  'findings',
  'Where data sets contradict one another; a finding never blocks or changes data.',
  {
    id: id('Number of the finding.'),
    check: text('Name of the check.').notNull(),
    severity: oneOf(SEVERITIES, 'info, warning or error.').notNull(),
    operation: text('Operation whose data is concerned.').notNull(),
    exchange: text('Exchange.').notNull(),
    date: day('Trading day.').notNull(),
    instrument: text('Instrument, if the finding is about one.').notNull().default(''),
    expected: text('What the other data says.'),
    found: text('What the data says.'),
    run_id: number('The run after which it was found.'),
    found_at: moment('When it was first found, or found again after it was resolved.').notNull().defaultNow(),
    resolved_at: moment('When it was no longer found; null until then.'),
    accepted_at: moment(
      'When a person accepted that the data is so; null until then, and again once either value changes.',
    ),
    accepted_by: text('Who accepted it: user and host.'),
  },
  (table) => [
    unique('findings_key').on(table.check, table.operation, table.exchange, table.date, table.instrument),
    check('findings_severity', isOneOf(table.severity, SEVERITIES)),
  ],
);

export const checkedDays = declareTable(
  'checked_days',
  'Days with prices on which the data sets were compared; the other days were not checked.',
  {
    day: day('The day.').primaryKey(),
    checked_at: moment(
      'When the last comparison began. Where etl.coverage says that the day was loaded later, it is not checked.',
    ).notNull(),
  },
);

export const alerts = declareTable(
  'alerts',
  'Alerts that were raised; repeats within some hours are counted in one row.',
  {
    id: id('Number of the alert.'),
    kind: text('What it is about, e.g. credential.').notNull(),
    subject: text(
      'What exactly it is about; alerts of the same kind and subject are the same alert.',
    ).notNull(),
    message: text('The alert as one sentence.').notNull(),
    facts: json('Facts for machines, as JSON.')
      .$type<Readonly<Record<string, unknown>>>()
      .notNull()
      .default({}),
    raised_at: moment('When it was first raised.').notNull().defaultNow(),
    repeated: integer('How often it was raised again.').notNull().default(0),
    delivered_at: moment('When the webhook accepted it; null until then.'),
    attempts: integer('How often delivery was tried.').notNull().default(0),
    next_attempt_at: moment('It is not sent before this time; each attempt doubles the pause.')
      .notNull()
      .defaultNow(),
    error: text('Why the last delivery failed.'),
  },
  (table) => [index('alerts_subject_idx').on(table.kind, table.subject)],
);

/** The days of which the state of an operation is known. */
const EXPECTED_DAYS = ['sessions', 'quarters', 'none'] as const;

export const sessions = declareTable(
  'sessions',
  'Trading days of the exchanges, from the calendar.',
  {
    exchange: text('Exchange.').notNull(),
    day: day('Trading day.').notNull(),
    kind: oneOf(
      ['session', 'special', 'observed'],
      'session, special, or observed (data came for a day that is closed according to the calendar).',
    ).notNull(),
  },
  (table) => [primaryKey({ name: 'sessions_pkey', columns: [table.exchange, table.day] })],
);

export const expectations = declareTable(
  'expectations',
  'What should be stored of each operation, as its file declares it and the settings request it; etl.completeness compares coverage with it.',
  {
    operation: text('Operation of the source, or data set that files fill.').primaryKey(),
    days: oneOf(
      EXPECTED_DAYS,
      'sessions: data is expected of each trading day; quarters: of the last day of each quarter; none: of the operation as a whole.',
    ).notNull(),
    variants: texts('The variants that are requested for each day; null if no day is requested.'),
    parts: texts('The variants whose last responses together list everything; null if one response does.'),
    is_by_instrument: boolean('Whether each request is about single instruments.').notNull(),
    is_of_each_instrument: boolean(
      'Whether it is requested for a list of instruments, so that a share of them may be stored.',
    ).notNull(),
    is_empty_normal: boolean('Whether it is normal that a day has no records.').notNull(),
    weekday: integer('The weekday on which it is requested, 0 on Sundays; null: every day.'),
    exchanges: texts(
      'The exchanges for which the settings request it (EOD_OPERATIONS, EOD_EXCHANGES, EOD_OPERATION_EXCHANGES), as of the last eod migrate or eod up; none: only files fill it.',
    ).notNull(),
  },
  (table) => [check('expectations_days', isOneOf(table.days, EXPECTED_DAYS))],
);

export const databaseIdentity = declareTable(
  'database_identity',
  'A single row: the name of this database in the queue. A restored copy gets another id when it is first used.',
  {
    id: text('Id of the database, part of the names of its queue on Redis and of each job.').notNull(),
    made_for: number('The oid of the database that the id was made for.').notNull(),
  },
  () => [uniqueIndex('database_identity_one_idx').on(sql`(true)`)],
);

export const repeatableMigrations = declareTable(
  'repeatable_migrations',
  'Files of migrations/repeatable as they were last applied by eod migrate.',
  {
    file: text('Name of the file.').primaryKey(),
    hash: text('SHA-256 of the file and of the newest migration, in hex.').notNull(),
    applied_at: moment('When it was applied.').notNull().defaultNow(),
  },
);

export const eventDecisions = declareTable(
  'event_decisions',
  'What people have decided about corporate events with eod events set.',
  {
    event_id: text(
      'The event: market.corporate_events.event_id. The event may be deleted and return later.',
    ).primaryKey(),
    ratio_new: number('Shares after the event for ratio_old before it; null if the event is ignored.'),
    ratio_old: number('Shares before the event.'),
    decided_by: text('Who decided: user and host.').notNull(),
    decided_at: moment('When it was last decided.').notNull().defaultNow(),
  },
  (table) => [
    check(
      'event_decisions_ratio',
      sql`(${table.ratio_new} is null) = (${table.ratio_old} is null) and ${table.ratio_new} > 0 is not false and ${table.ratio_old} > 0 is not false`,
    ),
  ],
);

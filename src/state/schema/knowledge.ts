import { sql } from 'drizzle-orm';
import {
  bigint,
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
import { day, etl, id, isOneOf, moment, reference } from './columns.ts';
import { describe } from './describe.ts';

/** How severe a finding can be, the mildest first. */
export const SEVERITIES = ['info', 'warning', 'error'] as const;

export const findings = etl.table(
  'findings',
  {
    id: id(),
    check: text('check').notNull(),
    severity: text('severity', { enum: SEVERITIES }).notNull(),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    date: day('date').notNull(),
    instrument: text('instrument').notNull().default(''),
    expected: text('expected'),
    found: text('found'),
    run_id: reference('run_id'),
    found_at: moment('found_at').notNull().defaultNow(),
    resolved_at: moment('resolved_at'),
    accepted_at: moment('accepted_at'),
    accepted_by: text('accepted_by'),
  },
  (table) => [
    unique('findings_key').on(table.check, table.operation, table.exchange, table.date, table.instrument),
    check('findings_severity', isOneOf(table.severity, SEVERITIES)),
  ],
);
describe(findings, 'Where data sets contradict one another; a finding never blocks or changes data.', {
  id: 'Number of the finding.',
  check: 'Name of the check.',
  severity: 'info, warning or error.',
  operation: 'Operation whose data is concerned.',
  exchange: 'Exchange.',
  date: 'Trading day.',
  instrument: 'Instrument, if the finding is about one.',
  expected: 'What the other data says.',
  found: 'What the data says.',
  run_id: 'The run after which it was found.',
  found_at: 'When it was first found, or found again after it was resolved.',
  resolved_at: 'When it was no longer found; null until then.',
  accepted_at:
    'When a person accepted that the data is so; null until then, and again once either value changes.',
  accepted_by: 'Who accepted it: user and host.',
});

export const checkedDays = etl.table('checked_days', {
  day: day('day').primaryKey(),
  checked_at: moment('checked_at').notNull(),
});
describe(
  checkedDays,
  'Days with prices on which the data sets were compared; the other days were not checked.',
  {
    day: 'The day.',
    checked_at:
      'When the last comparison began. Where etl.coverage says that the day was loaded later, it is not checked.',
  },
);

export const alerts = etl.table(
  'alerts',
  {
    id: id(),
    kind: text('kind').notNull(),
    subject: text('subject').notNull(),
    message: text('message').notNull(),
    facts: jsonb('facts').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
    raised_at: moment('raised_at').notNull().defaultNow(),
    repeated: integer('repeated').notNull().default(0),
    delivered_at: moment('delivered_at'),
    attempts: integer('attempts').notNull().default(0),
    next_attempt_at: moment('next_attempt_at').notNull().defaultNow(),
    error: text('error'),
  },
  (table) => [index('alerts_subject_idx').on(table.kind, table.subject)],
);
describe(alerts, 'Alerts that were raised; repeats within some hours are counted in one row.', {
  id: 'Number of the alert.',
  kind: 'What it is about, e.g. credential.',
  subject: 'What exactly it is about; alerts of the same kind and subject are the same alert.',
  message: 'The alert as one sentence.',
  facts: 'Facts for machines, as JSON.',
  raised_at: 'When it was first raised.',
  repeated: 'How often it was raised again.',
  delivered_at: 'When the webhook accepted it; null until then.',
  attempts: 'How often delivery was tried.',
  error: 'Why the last delivery failed.',
  next_attempt_at: 'It is not sent before this time; each attempt doubles the pause.',
});

/** The days of which the state of an operation is known. */
const EXPECTED_DAYS = ['sessions', 'quarters', 'none'] as const;

export const sessions = etl.table(
  'sessions',
  {
    exchange: text('exchange').notNull(),
    day: day('day').notNull(),
    kind: text('kind', { enum: ['session', 'special', 'observed'] }).notNull(),
  },
  (table) => [primaryKey({ name: 'sessions_pkey', columns: [table.exchange, table.day] })],
);
describe(sessions, 'Trading days of the exchanges, from the calendar.', {
  exchange: 'Exchange.',
  day: 'Trading day.',
  kind: 'session, special, or observed (data came for a day that is closed according to the calendar).',
});

export const expectations = etl.table(
  'expectations',
  {
    operation: text('operation').primaryKey(),
    days: text('days', { enum: EXPECTED_DAYS }).notNull(),
    variants: text('variants').array(),
    parts: text('parts').array(),
    is_by_instrument: boolean('is_by_instrument').notNull(),
    is_of_each_instrument: boolean('is_of_each_instrument').notNull(),
    is_empty_normal: boolean('is_empty_normal').notNull(),
    weekday: integer('weekday'),
    exchanges: text('exchanges').array().notNull(),
  },
  (table) => [check('expectations_days', isOneOf(table.days, EXPECTED_DAYS))],
);
describe(
  expectations,
  'What should be stored of each operation, as its file declares it and the settings request it; etl.completeness compares coverage with it.',
  {
    operation: 'Operation of the source, or data set that files fill.',
    days: 'sessions: data is expected of each trading day; quarters: of the last day of each quarter; none: of the operation as a whole.',
    variants: 'The variants that are requested for each day; null if no day is requested.',
    parts: 'The variants whose last responses together list everything; null if one response does.',
    is_by_instrument: 'Whether each request is about single instruments.',
    is_of_each_instrument:
      'Whether it is requested for a list of instruments, so that a share of them may be stored.',
    is_empty_normal: 'Whether it is normal that a day has no records.',
    weekday: 'The weekday on which it is requested, 0 on Sundays; null: every day.',
    exchanges:
      'The exchanges for which the settings request it (EOD_OPERATIONS, EOD_EXCHANGES, EOD_OPERATION_EXCHANGES), as of the last eod migrate or eod up; none: only files fill it.',
  },
);

export const databaseIdentity = etl.table(
  'database_identity',
  {
    id: text('id').notNull(),
    made_for: bigint('made_for', { mode: 'number' }).notNull(),
  },
  () => [uniqueIndex('database_identity_one_idx').on(sql`(true)`)],
);
describe(
  databaseIdentity,
  'A single row: the name of this database in the queue. A restored copy gets another id when it is first used.',
  {
    id: 'Id of the database, part of the names of its queue on Redis and of each job.',
    made_for: 'The oid of the database that the id was made for.',
  },
);

export const repeatableMigrations = etl.table('repeatable_migrations', {
  file: text('file').primaryKey(),
  hash: text('hash').notNull(),
  applied_at: moment('applied_at').notNull().defaultNow(),
});
describe(repeatableMigrations, 'Files of migrations/repeatable as they were last applied by eod migrate.', {
  file: 'Name of the file.',
  hash: 'SHA-256 of the file and of the newest migration, in hex.',
  applied_at: 'When it was applied.',
});

export const eventDecisions = etl.table(
  'event_decisions',
  {
    event_id: text('event_id').primaryKey(),
    ratio_new: bigint('ratio_new', { mode: 'number' }),
    ratio_old: bigint('ratio_old', { mode: 'number' }),
    decided_by: text('decided_by').notNull(),
    decided_at: moment('decided_at').notNull().defaultNow(),
  },
  (table) => [
    check(
      'event_decisions_ratio',
      sql`(${table.ratio_new} is null) = (${table.ratio_old} is null) and ${table.ratio_new} > 0 is not false and ${table.ratio_old} > 0 is not false`,
    ),
  ],
);
describe(eventDecisions, 'What people have decided about corporate events with eod events set.', {
  event_id: 'The event: market.corporate_events.event_id. The event may be deleted and return later.',
  ratio_new: 'Shares after the event for ratio_old before it; null if the event is ignored.',
  ratio_old: 'Shares before the event.',
  decided_by: 'Who decided: user and host.',
  decided_at: 'When it was last decided.',
});

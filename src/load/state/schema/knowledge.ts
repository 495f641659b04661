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

/** How severe a finding can be, the mildest first. */
export const SEVERITIES = ['info', 'warning', 'error'] as const;

/** Contradictions between data sets; a finding never blocks or changes data. */
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
  },
  (table) => [
    unique('findings_key').on(table.check, table.operation, table.exchange, table.date, table.instrument),
    check('findings_severity', isOneOf(table.severity, SEVERITIES)),
  ],
);

/** Operations besides the defaults that this database has tables of. */
export const storedOperations = etl.table('operations', {
  name: text('name').primaryKey(),
  /** Is it asked for? */
  is_enabled: boolean('is_enabled').notNull(),
  changed_at: moment('changed_at').notNull().defaultNow(),
  changed_by: text('changed_by').notNull(),
});

/** Days on which the data sets were compared with each other, of those that had a bhav copy then. */
export const checkedDays = etl.table('checked_days', {
  day: day('day').primaryKey(),
  /** When the last comparison began. */
  checked_at: moment('checked_at').notNull(),
});

/** Alerts that were raised, repeats counted in one row, and whether the webhook accepted them. */
export const alerts = etl.table(
  'alerts',
  {
    id: id(),
    kind: text('kind').notNull(),
    /** Same kind and subject: the same alert, not a new one. */
    subject: text('subject').notNull(),
    message: text('message').notNull(),
    facts: jsonb('facts').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
    raised_at: moment('raised_at').notNull().defaultNow(),
    repeated: integer('repeated').notNull().default(0),
    delivered_at: moment('delivered_at'),
    attempts: integer('attempts').notNull().default(0),
    /** It is not sent before this, so that no two workers send it at the same time. */
    next_attempt_at: moment('next_attempt_at').notNull().defaultNow(),
    error: text('error'),
  },
  (table) => [index('alerts_subject_idx').on(table.kind, table.subject)],
);

/** Trading sessions from the calendar, for views that compare what is stored with what should be. */
export const sessions = etl.table(
  'sessions',
  {
    exchange: text('exchange').notNull(),
    day: day('day').notNull(),
    /** `observed`: data came for a day that is closed according to the calendar. */
    kind: text('kind', { enum: ['session', 'special', 'observed'] }).notNull(),
    /** The replay of the answers that were asked about an observed session before it was known; 0 if there were none, null until it is planned. */
    replay_run_id: reference('replay_run_id'),
  },
  (table) => [primaryKey({ name: 'sessions_pkey', columns: [table.exchange, table.day] })],
);

/** A single row: the name of this database in the queue, so that several databases can share one Redis. */
export const databaseIdentity = etl.table(
  'database_identity',
  {
    id: text('id').notNull(),
    /** The oid of the database that the id was made for: a restored copy has another. */
    made_for: bigint('made_for', { mode: 'number' }).notNull(),
  },
  () => [uniqueIndex('database_identity_one_idx').on(sql`(true)`)],
);

/** The files of `migrations/repeatable` that were applied, and in which form; `etl.migrations` has the migrations. */
export const repeatableMigrations = etl.table('repeatable_migrations', {
  file: text('file').primaryKey(),
  /** SHA-256 of the file and of the newest migration, in hex. */
  hash: text('hash').notNull(),
  applied_at: moment('applied_at').notNull().defaultNow(),
});

/** What people have decided about corporate events. A decision outlives its event, which may return. */
export const eventDecisions = etl.table(
  'event_decisions',
  {
    event_id: text('event_id').primaryKey(),
    /** Shares after and before the event, for its factor; null where the event is ignored. */
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

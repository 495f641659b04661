import { sql } from 'drizzle-orm';
import {
  bigint,
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

/** What the data sets say against one another; a finding never blocks or alters data. */
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

/** Alerts that were raised, each kept once while it lasts, and whether the webhook took them. */
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
    /** It is not sent again before this: while one worker sends it, the others leave it alone. */
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
    day: day('day').notNull(),
    /** session, special, or observed: data came for a day the calendar calls closed. */
    kind: text('kind', { enum: ['session', 'special', 'observed'] }).notNull(),
  },
  (table) => [primaryKey({ name: 'sessions_pkey', columns: [table.exchange, table.day] })],
);

/** One row: what this database is called in the queue, so that several can share one Redis. */
export const databaseIdentity = etl.table(
  'database_identity',
  {
    id: text('id').notNull(),
    /** The database the id was made for, as its server numbers databases: a restored copy is another one. */
    made_for: bigint('made_for', { mode: 'number' }).notNull(),
  },
  () => [uniqueIndex('database_identity_one_idx').on(sql`(true)`)],
);

/** Files of `migrations/repeatable` as the last migration applied them; drizzle keeps the others in `etl.migrations`. */
export const repeatableMigrations = etl.table('repeatable_migrations', {
  file: text('file').primaryKey(),
  /** SHA-256 of the file and of the newest migration, in hex. */
  hash: text('hash').notNull(),
  applied_at: moment('applied_at').notNull().defaultNow(),
});

/** What people have decided about corporate events; an event may come later, or go and come again. */
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

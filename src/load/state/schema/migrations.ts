import { text } from 'drizzle-orm/pg-core';
import { etl, moment } from './columns.ts';

/** Files of `migrations/repeatable` as `eod migrate` last applied them; drizzle keeps the others in `etl.migrations`. */
export const repeatableMigrations = etl.table('repeatable_migrations', {
  file: text('file').primaryKey(),
  /** SHA-256 of the file and of the newest migration, in hex. */
  hash: text('hash').notNull(),
  applied_at: moment('applied_at').notNull().defaultNow(),
});

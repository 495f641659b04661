import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { loadConfig } from '../../src/core/config.ts';
import { prepareQueueTables } from '../../src/jobs/queue/queue.ts';
import { syncTradingDays } from '../../src/jobs/responses/sync-sessions.ts';
import { migrateDatabase } from '../../src/migrate.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { query } from './query.ts';

const MIGRATIONS = new URL('../../migrations/', import.meta.url);

/** Prefix of a queue whose tables the template has: to create them takes as long as to clone the template. */
export const QUEUE_PREFIX = 'eod';

/** Trading days up to the end of a year that no test's clock is before are in the template too: there are thousands. */
const TRADING_DAYS_TO = '2024-12-31T12:00:00Z';

/** Creates the migrated database the others are cloned from. Its name changes with the migrations. */
export async function prepareTemplate(adminUrl: string): Promise<void> {
  const template = templateName();
  const rows = await query(adminUrl, 'select from pg_database where datname = $1', [template]);
  if (rows.length === 1) return;
  // Migrated under another name: a run that breaks off must not leave half a template behind.
  const draft = `${template}_${randomBytes(4).toString('hex')}`;
  await execute(adminUrl, `create database ${draft}`);
  const database = openDatabase({ url: withDatabase(adminUrl, draft), connections: 1 });
  try {
    await migrateDatabase(database);
    const config = loadConfig({ EOD_QUEUE_PREFIX: QUEUE_PREFIX });
    await prepareQueueTables({ db: database, config });
    const clock = { now: () => Date.parse(TRADING_DAYS_TO) };
    await syncTradingDays({ db: database, calendar: loadCalendar(), clock, config });
  } finally {
    await database.close();
  }
  await execute(adminUrl, `alter database ${draft} rename to ${template}`);
}

/** Speed for a server that is discarded after the run: nothing has to survive a power cut, or to grow old. */
export async function makeDisposable(adminUrl: string): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum']) {
    await execute(adminUrl, `alter system set ${setting} = off`);
  }
  await execute(adminUrl, 'select pg_reload_conf()');
}

/** Name of the template of these very migrations. */
export function templateName(): string {
  const hash = createHash('sha256');
  for (const file of readdirSync(MIGRATIONS, { recursive: true, encoding: 'utf8' }).sort()) {
    if (file.endsWith('.sql')) hash.update(file).update(readFileSync(new URL(file, MIGRATIONS)));
  }
  return `eod_template_${hash.digest('hex').slice(0, 12)}`;
}

/** The clone of a filled database that suites share. */
export const sharedName = (filled: string): string => `${filled}_shared`;

/** The same server, another database. */
export function withDatabase(adminUrl: string, name: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs one statement on a connection of its own. */
export async function execute(adminUrl: string, statement: string): Promise<void> {
  await query(adminUrl, statement);
}

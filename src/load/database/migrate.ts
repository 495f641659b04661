import { join } from 'node:path';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import type { PoolClient } from 'pg';
import { usageError } from '../../core/errors.ts';
import { writeAsOfFunctions } from '../market/as-of.ts';
import { writeComments } from '../market/comments.ts';
import { fillSightings } from '../market/instruments/sightings.ts';
import {
  DEFAULT_VIEW_SETTINGS,
  type ViewSettings,
  writeCompletenessView,
} from '../state/completeness-view.ts';
import type { Database } from './database.ts';

const FOLDER = {
  migrationsFolder: join(import.meta.dirname, '../../../migrations'),
  migrationsSchema: 'etl',
  migrationsTable: 'migrations',
};

const OLDEST_SERVER = 15;

export type SchemaState = 'missing' | 'behind' | 'current';

/** Has this database our tables, and are they those of this version? */
export async function schemaState(database: Database): Promise<SchemaState> {
  const found = await database.pool.query<{ there: boolean }>(
    "select to_regclass('etl.migrations') is not null as there",
  );
  if (!found.rows[0]?.there) return 'missing';
  const applied = await database.pool.query<{ newest: string | null }>(
    'select max(created_at) as newest from etl.migrations',
  );
  const newest = readMigrationFiles(FOLDER).at(-1)?.folderMillis ?? 0;
  return Number(applied.rows[0]?.newest ?? 0) >= newest ? 'current' : 'behind';
}

/**
 * Brings the schema up to this version and the comments of `market` in line with the operation
 * files, its functions and views included. Safe to run from several processes at once: they queue up.
 *
 * @throws PipelineError `usage` when the server is older than Postgres 15.
 */
export async function migrateDatabase(
  database: Database,
  viewSettings: ViewSettings = DEFAULT_VIEW_SETTINGS,
): Promise<void> {
  const client = await database.pool.connect();
  try {
    await checkServer(client);
    await client.query("select pg_advisory_lock(hashtextextended('eod migrate', 0))");
    // "schema already exists, skipping" on every run would only worry people.
    await client.query("set client_min_messages = 'warning'");
    await migrate(drizzle(client), FOLDER);
    await writeComments(client);
    await writeAsOfFunctions(client);
    await writeCompletenessView(client, viewSettings);
    // All sightings or none: half of them would look filled.
    await client.query('begin');
    await fillSightings(client);
    await client.query('commit');
    await client.query("select pg_advisory_unlock(hashtextextended('eod migrate', 0))");
    await client.query('reset client_min_messages');
    client.release();
  } catch (error) {
    // Thrown away: the transaction, the lock and the setting go with it.
    client.release(true);
    throw error;
  }
}

async function checkServer(client: PoolClient): Promise<void> {
  const result = await client.query<{ server_version_num: string; server_version: string }>(
    "select current_setting('server_version_num') as server_version_num, current_setting('server_version') as server_version",
  );
  const version = result.rows[0];
  if (version !== undefined && Number(version.server_version_num) < OLDEST_SERVER * 10_000) {
    throw usageError(`Postgres ${version.server_version} is too old: eod needs ${OLDEST_SERVER} or newer`);
  }
}

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import type { Context } from '../jobs/context.ts';
import type { Database } from '../postgres/database.ts';
import type { Cli } from './cli.ts';
import { loadSettings } from './load-settings.ts';
import { ensureSchema, noTables, openLog, openStore } from './open-store.ts';

/**
 * Opens the database for commands that only read it: a reader's rights are enough. Only the tables of the private
 * Postgres are created or updated first.
 *
 * @param reads `tables`: those of this program. `anything`: what the user names, in any database.
 */
export async function openReadable(
  cli: Cli,
  reads: 'tables' | 'anything',
): Promise<Pick<Context, 'config' | 'log' | 'db'>> {
  const config = await loadSettings(cli);
  // A command that only reads creates no private Postgres: it would be an empty one, beside that of the demo.
  if (config.DATABASE_URL === undefined && !hasPrivatePostgres(cli, config)) {
    throw usageError(
      'there is no database yet: set DATABASE_URL, or load something first; "eod --demo …" reads what "eod demo" has loaded',
    );
  }
  const log = openLog(cli, config);
  const db = await openStore(cli, config, log, 'none');
  if (config.DATABASE_URL === undefined) await cli.life.open(() => ensureSchema(cli, db, config, true));
  // From the catalog, which any role may read.
  else if (reads === 'tables' && !(await cli.life.open(() => hasSchema(db)))) throw noTables();
  return { config, log, db };
}

async function hasSchema({ pool }: Database): Promise<boolean> {
  return (await pool.query("select from pg_namespace where nspname = 'etl'")).rowCount === 1;
}

export const hasPrivatePostgres = ({ cwd }: Cli, { EOD_DATA_DIR: folder }: Config) =>
  existsSync(resolve(cwd, folder, 'postgres'));

/** Opens the database for statements that a user wrote, and for views, which may be the user's as well. */
export async function openForUser(
  cli: Cli,
  reads: 'tables' | 'anything',
): Promise<Pick<Context, 'config' | 'db'>> {
  const { config, db, log } = await openReadable(cli, reads);
  // On the user's own server, the role of DATABASE_URL says what may be read.
  if (config.DATABASE_URL !== undefined) return { config, db };
  const { openAsReader } = await import('../postgres/embedded/reader.ts');
  const reader = await cli.life.open(() => openAsReader(db, log));
  return { config, db: reader };
}

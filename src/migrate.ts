import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { ClientBase, PoolClient } from 'pg';
import type { Config } from './core/config.ts';
import { errorCode, readMember, usageError } from './core/errors.ts';
import { largest } from './core/iterables.ts';
import { PACKAGE } from './core/package-folders.ts';
import { type Database, endIfSilent } from './postgres/database.ts';
import { databaseError } from './postgres/database-errors.ts';
import { readServerFacts } from './postgres/inspect.ts';
import { takeSessionLock } from './postgres/session-lock.ts';
import { transactionOn } from './postgres/transaction.ts';
import { DEFAULT_SETTINGS, writeCompletenessView, writeExpectations } from './state/coverage/completeness.ts';
import { databaseId } from './state/database-identity.ts';
import { repeatableMigrations } from './state/schema/knowledge.ts';

const MIGRATIONS = {
  migrationsFolder: join(PACKAGE, 'migrations'),
  migrationsSchema: 'etl',
  migrationsTable: 'migrations',
};

/** Functions, views and comments: SQL files that are applied again whenever they change. */
const REPEATABLE_FOLDER = join(MIGRATIONS.migrationsFolder, 'repeatable');

/** The oldest major version of Postgres that works. */
export const OLDEST_SERVER = 15;

/** The encoding that a database must have. */
const ENCODING = 'UTF8';

type SchemaState = 'missing' | 'behind' | 'current';

/**
 * Compares the tables of this database with those of this version; those of a newer version are `current`.
 *
 * @throws PipelineError `usage` when an unreleased version made them.
 */
export async function schemaState(database: Database): Promise<SchemaState> {
  const { rows } = await database.pool.query("select where to_regclass('etl.migrations') is not null");
  if (rows.length === 0) return 'missing';
  const difference =
    (await newestApplied(database.pool)) - largest(readMigrationFiles(MIGRATIONS).map(timeOf), 0);
  if (difference !== 0) return difference > 0 ? 'current' : 'behind';
  return (await changedFiles(database.drizzle)).length === 0 ? 'current' : 'behind';
}

const timeOf = ({ folderMillis }: { folderMillis: number }) => folderMillis;

/**
 * Reads when the newest migration that this database has was made; 0 if it has none.
 *
 * @throws PipelineError `usage` if it has one that is not as in this version. Released migrations are never edited, so
 *   an unreleased version made its tables.
 */
async function newestApplied(client: Pick<ClientBase, 'query'>): Promise<number> {
  const { rows } = await client.query<{ hash: string; created_at: string }>(
    'select hash, created_at from etl.migrations',
  );
  const hashes = new Map(rows.map(({ hash, created_at }) => [Number(created_at), hash]));
  if (
    readMigrationFiles(MIGRATIONS).some(
      (migration) => (hashes.get(timeOf(migration)) ?? migration.hash) !== migration.hash,
    )
  ) {
    throw usageError(
      'this database was made by an unreleased version, and no later one can migrate it',
      'import_unreleased',
    );
  }
  return largest(hashes.keys(), 0);
}

/** SQLSTATE of a role that lacks a right. */
const INSUFFICIENT_PRIVILEGE = '42501';

/**
 * Explains the error of a role that lacks a right; returns any other error as it is. Any role may read the catalog.
 *
 * @param task what was tried: to change the tables, or to work with them.
 */
export async function explainMissingRight(
  { withoutRetry }: Database,
  error: unknown,
  task: 'migrate' | 'work',
): Promise<unknown> {
  const { cause, message } = databaseError(error);
  if (errorCode(cause) !== INSUFFICIENT_PRIVILEGE) return error;
  const { rows } = await withoutRetry.pool.query<{ role: string; owner: string | null; tables: boolean }>(
    `select current_user as role, (select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'etl') as owner,
            exists (select from pg_class where relname = 'migrations' and relnamespace = (
              select oid from pg_namespace where nspname = 'etl')) as tables`,
  );
  const { role = '', owner = null, tables = false } = rows[0] ?? {};
  const roles = 'docs/security.md has the statements for the roles';
  if (task === 'work' && tables) {
    return usageError(
      `the role ${role} lacks rights of a worker (${message}): use the worker's role, or let ${owner} grant them; ${roles}`,
    );
  }
  const problem = tables ? `the tables belong to ${owner}, and` : 'there are no tables yet, and';
  const how =
    owner === null ? `an administrator has to create the schemas first; ${roles}` : `only ${owner} may`;
  const sentence = `${problem} the role ${role} may not create or change them (${message}): ${how}`;
  return usageError(sentence, owner === null ? undefined : 'migrate');
}

/**
 * Brings the schema up to this version: applies the migrations, then the repeatable files that changed, then what is
 * generated from the operation files (comments and as-of functions of `market`) and from the settings (`etl.expectations`
 * and the view `etl.completeness`). Safe to run from several processes at once: they wait for each other.
 *
 * @throws PipelineError `usage` when the server is older than Postgres 15, when the database is not in UTF-8, or when a
 *   migration that it has is not the one of this version, or when objects of users depend on what it drops.
 */
export function migrateDatabase(database: Database, settings: Config = DEFAULT_SETTINGS): Promise<void> {
  return database.withRetry(async (withoutRetry) => {
    // Imported only here, because every command checks the schema first and few migrate it.
    const [{ ensureNextPartitions }, { writeCommentsAndFunctions }] = await Promise.all([
      import('./load/merge/merge.ts'),
      import('./load/schema/comments-and-functions.ts'),
    ]);
    await checkServer(withoutRetry);
    const lock = await takeSessionLock(withoutRetry, 'eod:migrate');
    const { client } = lock;
    try {
      // Otherwise notices such as "relation already exists, skipping" would be printed by every run.
      await client.query("set client_min_messages = 'warning'");
      // Creating an index on years of rows takes long.
      await client.query('set statement_timeout = 0');
      endIfSilent(client, 0);
      const db = drizzle(client);
      await applyMigrations(client);
      await applyRepeatableFiles(client, await changedFiles(db));
      await databaseId(db);
      await transactionOn(client, async (tx) => {
        await ensureNextPartitions(client);
        await writeExpectations(tx, settings);
        await writeCompletenessView(client, settings);
        await writeCommentsAndFunctions(client);
      });
      await client.query('reset client_min_messages');
      await client.query(`set statement_timeout = ${withoutRetry.timeouts.statementMs}`);
      endIfSilent(client, withoutRetry.timeouts.statementMs);
      await lock.release();
    } catch (error) {
      // Closing the connection ends the transaction, the lock and the settings.
      lock.discard();
      throw explainDependents(error);
    }
  });
}

/** SQLSTATE of a statement that would drop what other objects depend on. */
const DEPENDENT_OBJECTS_STILL_EXIST = '2BP01';

/** Names the views and functions of users that keep a migration from dropping something; returns other errors as they are. */
function explainDependents(error: unknown): unknown {
  const { cause } = databaseError(error);
  const detail = readMember(cause, 'detail');
  if (errorCode(cause) !== DEPENDENT_OBJECTS_STILL_EXIST || typeof detail !== 'string') return error;
  return usageError(
    `this version cannot change what your own objects use: ${detail.replaceAll('\n', '; ')}. Drop them, migrate, and ` +
      'create them again with the names of docs/tables.md',
  );
}

/**
 * Applies the migrations that this database does not have, in one transaction. Drizzle's own function would begin with
 * `create schema if not exists`, which needs the right to create schemas even if all of them exist: an administrator
 * may have created them for this role.
 */
async function applyMigrations(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ name: string }>('select nspname as name from pg_namespace');
  const isThere = (schema: string) => rows.some(({ name }) => name === schema);
  if (!isThere('etl')) await client.query('create schema etl');
  await transactionOn(client, async (tx) => {
    await client.query(
      'create table if not exists etl.migrations (id serial primary key, hash text not null, created_at bigint)',
    );
    const newest = await newestApplied(client);
    for (const { folderMillis, hash, sql: statements } of readMigrationFiles(MIGRATIONS)) {
      if (folderMillis <= newest) continue;
      for (const statement of statements) {
        const schema = /^CREATE SCHEMA IF NOT EXISTS "(\w+)";?\s*$/m.exec(statement)?.[1];
        if (schema !== undefined && (schema === 'etl' || isThere(schema))) continue;
        await client.query(statement);
      }
      await tx.execute(sql`insert into etl.migrations (hash, created_at) values (${hash}, ${folderMillis})`);
    }
  });
}

interface RepeatableFile {
  readonly file: string;
  readonly statements: string;
  readonly hash: string;
}

/** Applies the repeatable files that changed, each in one transaction with the record that it was applied. */
async function applyRepeatableFiles(client: PoolClient, files: readonly RepeatableFile[]): Promise<void> {
  for (const { file, statements, hash } of files) {
    await transactionOn(client, async (tx) => {
      await client.query(statements);
      await tx
        .insert(repeatableMigrations)
        .values({ file, hash })
        .onConflictDoUpdate({ target: repeatableMigrations.file, set: { hash, applied_at: sql`now()` } });
    });
  }
}

/** The repeatable files that were never applied to this database, or have changed since. */
async function changedFiles(db: NodePgDatabase): Promise<RepeatableFile[]> {
  const applied = await db.select().from(repeatableMigrations);
  const hashes = new Map(applied.map(({ file, hash }) => [file, hash]));
  return repeatableFiles().filter(({ file, hash }) => hashes.get(file) !== hash);
}

function repeatableFiles(): RepeatableFile[] {
  // A migration may drop a view to change a table that it uses, so every new migration causes all files to be applied
  // again.
  const newest = readMigrationFiles(MIGRATIONS).at(-1)?.hash ?? '';
  return readdirSync(REPEATABLE_FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((file) => {
      const statements = readFileSync(join(REPEATABLE_FOLDER, file), 'utf8');
      return { file, statements, hash: createHash('sha256').update(newest).update(statements).digest('hex') };
    });
}

async function checkServer({ pool }: Database): Promise<void> {
  const { major, encoding } = await readServerFacts(pool);
  if (major < OLDEST_SERVER) {
    throw usageError(`Postgres ${major} is too old: eod needs ${OLDEST_SERVER} or newer`);
  }
  if (encoding !== ENCODING) {
    throw usageError(
      `the database has the encoding ${encoding}, which cannot store every name as the source sends it: ` +
        `create one in ${ENCODING} (create database NAME encoding '${ENCODING}' template template0)`,
    );
  }
}

import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import pg from 'pg';
import { afterAll, inject } from 'vitest';

const MIGRATIONS = new URL('../../migrations/', import.meta.url);

export interface TestDatabase {
  readonly url: string;
  /** Also happens by itself after the last test of the file. */
  drop(): Promise<void>;
}

/**
 * A fresh, migrated database for this test file alone: a clone of the template.
 *
 * @param adminUrl another server than the run's, one that `prepareTemplate` has been called for.
 */
export async function testDatabase(adminUrl: string = inject('databaseAdminUrl')): Promise<TestDatabase> {
  const name = `eod_test_${randomBytes(8).toString('hex')}`;
  await execute(adminUrl, `create database ${name} template ${templateName()}`);
  const database = {
    url: withDatabase(adminUrl, name),
    drop: () => execute(adminUrl, `drop database if exists ${name} with (force)`),
  };
  afterAll(database.drop);
  return database;
}

/** Creates the migrated database the others are cloned from. Its name changes with the migrations. */
export async function prepareTemplate(adminUrl: string): Promise<void> {
  const template = templateName();
  if (await exists(adminUrl, template)) return;
  // Migrated under another name: a run that breaks off must not leave half a template behind.
  const draft = `${template}_${randomBytes(4).toString('hex')}`;
  await execute(adminUrl, `create database ${draft}`);
  const client = new pg.Client({ connectionString: withDatabase(adminUrl, draft) });
  await client.connect();
  try {
    await migrate(drizzle(client), { migrationsFolder: MIGRATIONS.pathname });
  } finally {
    await client.end();
  }
  await execute(adminUrl, `alter database ${draft} rename to ${template}`);
}

/** Speed for a server that is thrown away after the run: nothing has to survive a power cut. */
export async function makeDisposable(adminUrl: string): Promise<void> {
  await execute(adminUrl, 'alter system set fsync = off');
  await execute(adminUrl, 'alter system set synchronous_commit = off');
  await execute(adminUrl, 'select pg_reload_conf()');
}

function templateName(): string {
  const hash = createHash('sha256');
  for (const file of readdirSync(MIGRATIONS, { recursive: true, encoding: 'utf8' }).sort()) {
    if (file.endsWith('.sql')) hash.update(file).update(readFileSync(new URL(file, MIGRATIONS)));
  }
  return `eod_template_${hash.digest('hex').slice(0, 12)}`;
}

function withDatabase(adminUrl: string, name: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function exists(adminUrl: string, name: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const found = await client.query('select from pg_database where datname = $1', [name]);
    return found.rowCount === 1;
  } finally {
    await client.end();
  }
}

async function execute(adminUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

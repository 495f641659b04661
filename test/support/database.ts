import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { closeAfterFile } from './closing.ts';
import { execute, templateName, withDatabase } from './template.ts';

export interface TestDatabase {
  readonly url: string;
  /** Disconnects every client that is still connected. */
  drop(): Promise<void>;
}

/**
 * A fresh, migrated database for this test file alone: a clone of the template (some 100 ms).
 * On the run's own server it is dropped after the file's last test; on another server drop it yourself.
 *
 * @param adminUrl another server than the run's, one that has had `prepareTemplate`.
 */
export function testDatabase(adminUrl?: string): Promise<TestDatabase> {
  return cloneOf(templateName(), adminUrl);
}

/** A clone of a database that nobody is connected to. */
export function cloneOf(name: string, adminUrl?: string): Promise<TestDatabase> {
  return createDatabase(`template ${name} strategy file_copy`, adminUrl);
}

/** The same without a schema, for tests that migrate it themselves. `options`: SQL, how to create it. */
export function emptyDatabase(options = ''): Promise<TestDatabase> {
  return createDatabase(`template template0 ${options}`);
}

async function createDatabase(template: string, adminUrl?: string): Promise<TestDatabase> {
  const server = adminUrl ?? inject('databaseAdminUrl');
  const name = `eod_test_${randomBytes(8).toString('hex')}`;
  await execute(server, `create database ${name} ${template}`);
  const drop = () => execute(server, `drop database if exists ${name} with (force)`);
  if (adminUrl === undefined) closeAfterFile(drop);
  return { url: withDatabase(server, name), drop };
}

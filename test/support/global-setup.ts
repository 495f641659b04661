import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { startPrivatePostgres } from './private-postgres.ts';
import { startRedis } from './redis-server.ts';
import { execute, prepareTemplate, sharedName, templateName } from './template.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Administrator's address of the server test databases are made on. */
    databaseAdminUrl: string;
    /** Of the database that `filledCopy` clones; the first suite that needs it makes it. */
    filledDatabase: string;
    /** Empty where the machine has no redis-server. */
    redisUrl: string;
  }
}

/**
 * Starts one Postgres and one Redis for the whole run; every test file gets its own database and
 * queue prefix on them. `TEST_DATABASE_ADMIN_URL` names another Postgres server to run on (a user who
 * may create databases).
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  buildOnce();
  const filled = `eod_filled_${randomBytes(4).toString('hex')}`;
  const [postgres, redis] = await Promise.all([startPostgres(filled), startRedis()]);
  await prepareTemplate(postgres.url);
  project.provide('databaseAdminUrl', postgres.url);
  project.provide('filledDatabase', filled);
  project.provide('redisUrl', redis?.url ?? '');
  return async () => {
    await Promise.all([postgres.stop(), redis?.stop()]);
  };
}

/** Tests that start `eod` as a process start what was built. */
function buildOnce(): void {
  const script = fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url));
  execFileSync(process.execPath, [script, '--if-stale'], { stdio: ['ignore', 'inherit', 'inherit'] });
}

async function startPostgres(filled: string): Promise<{ url: string; stop(): Promise<void> }> {
  const adminUrl = process.env.TEST_DATABASE_ADMIN_URL ?? '';
  if (adminUrl === '') return startPrivatePostgres();
  return {
    url: adminUrl,
    async stop() {
      for (const name of [templateName(), filled, sharedName(filled)]) {
        await execute(adminUrl, `drop database if exists ${name} with (force)`);
      }
    },
  };
}

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { startPrivatePostgres } from './private-postgres.ts';
import { startRedis } from './redis-server.ts';
import { execute, prepareTemplate, templateName } from './template.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Administrator's address of the server test databases are made on. */
    databaseAdminUrl: string;
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
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  await prepareTemplate(postgres.url);
  project.provide('databaseAdminUrl', postgres.url);
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

async function startPostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const given = process.env.TEST_DATABASE_ADMIN_URL ?? '';
  if (given === '') return startPrivatePostgres();
  return { url: given, stop: () => execute(given, `drop database if exists ${templateName()}`) };
}

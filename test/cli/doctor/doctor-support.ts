import type { Check } from '../../../src/cli/doctor/check.ts';
import { runJson } from '../../support/cli.ts';
import { closeAfterFile } from '../../support/closing.ts';
import { testDatabase } from '../../support/database.ts';
import { startRedis } from '../../support/redis-server.ts';
import { openSandbox } from '../../support/sandbox.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

export interface Examination {
  readonly isOk: boolean;
  readonly checks: readonly Check[];
  readonly version: string;
  readonly node: string;
  readonly platform: string;
}

export const KEY = 'a key for tests';

/** Servers that are well, and the command that examines them. */
export async function openPatient() {
  const cwd = temporaryFolder();
  const { url: DATABASE_URL } = await testDatabase();
  const sandbox = await openSandbox({ accessKey: KEY });
  const redis = await startRedis();
  if (redis === undefined)
    throw new Error('there is no redis-server on the PATH: node scripts/ensure-services.mjs');
  closeAfterFile(() => redis.stop());
  const SETTINGS = {
    DATABASE_URL,
    REDIS_URL: redis.url,
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: KEY,
  };
  return { cwd, DATABASE_URL, sandbox, redis, SETTINGS };
}

export async function examine(cwd: string, env: Readonly<Record<string, string>>, ...flags: string[]) {
  const result = await runJson<Examination>(['doctor', ...flags], { cwd, env });
  const check = (name: string) => {
    const outcome = result.json.checks.find((check) => check.name === name);
    if (outcome === undefined) throw new Error(`there is no check "${name}"`);
    return outcome;
  };
  const states = Object.fromEntries(result.json.checks.map(({ name, state }) => [name, state]));
  return { ...result, check, states };
}

import { expect } from 'vitest';
import type { Check, KeyReport } from '../../src/cli/doctor/check.ts';
import type { Behaviour } from '../../src/sandbox/index.ts';
import { runJson } from '../support/cli.ts';
import { startServer } from '../support/http-server.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();
export const KEY = 'a key for tests';

/** Runs `eod doctor`: what it says of the key. */
export async function examine(url: string, env: Readonly<Record<string, string>>) {
  const settings = { ...env, EOD_BASE_URL: url, EOD_ACCESS_KEY: KEY };
  const { code, json, stdout } = await runJson<{
    readonly checks: readonly Check[];
    readonly key: KeyReport | null;
  }>(['doctor'], { cwd, env: settings });
  expect(stdout).not.toContain(KEY);
  const ofKey = json.checks.filter(({ name }) => name.startsWith('key '));
  return { code, key: json.key, ofKey, settings };
}

/** A sandbox that behaves so. */
export const sandboxWith = async (behaviour: Partial<Behaviour>) =>
  openSandbox({ accessKey: KEY, behaviour });

/** A source that responds to GetLimitation with this, and everything else with an empty list. */
export const sourceSaying = (body: string, status = 200) =>
  startServer((request, response) => {
    const isRequested = request.url?.startsWith('/GetLimitation?') === true;
    response.writeHead(isRequested ? status : 200).end(isRequested ? body : '[]');
  });

import { expect } from 'vitest';
import { runCli } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { examine, KEY, sandboxWith, sourceSaying } from './limitation-support.ts';
import { test } from './support.ts';

const cwd = temporaryFolder();

test('what the key forbids is named before the first night', async ({ url }) => {
  const sandbox = await sandboxWith({
    callsPerHour: 300,
    disabledOperations: ['GetBhavCopyCM'],
    disabledExchanges: ['NSE'],
  });
  const { code, key, ofKey, settings } = await examine(sandbox.url, { DATABASE_URL: url });
  expect(code).toBe(0);
  expect(key).toMatchObject({
    callsPerHour: 300,
    callsPerMonth: 'unlimited',
    expiresAt: expect.stringMatching(/^\d{4}-.*Z$/),
    isEnabled: true,
    exchanges: expect.arrayContaining([{ name: 'BSE', instruments: 'unlimited' }]),
    operations: expect.arrayContaining([{ name: 'GetBhavCopyCM', isEnabled: false }]),
    forbidden: { operations: ['GetBhavCopyCM'], exchanges: ['NSE'] },
  });
  expect(ofKey).toMatchObject([
    { name: 'key limits', state: 'warning', remedy: 'set EOD_CALLS_PER_HOUR=300' },
    { name: 'key expiry', state: 'ok' },
    {
      name: 'key rights',
      state: 'warning',
      found: expect.stringMatching(/^it forbids GetBhavCopyCM; it lists no exchange NSE \(/),
    },
  ]);
  const { stdout } = await runCli(['doctor'], { cwd, env: settings });
  expect(stdout).toMatch(/^warning {2}key rights +it forbids GetBhavCopyCM/m);
  expect(stdout).toMatch(/^ {2}key rights: ask the service/m);
  expect(stdout).toMatch(/^ {2}key limits: set EOD_CALLS_PER_HOUR=300/m);
});

test('an echoed key is not shown', async ({ url }) => {
  const source = await sourceSaying(JSON.stringify({ AllowedExchanges: [`NSE ${KEY}`], Enabled: true }));
  const { ofKey } = await examine(source, { DATABASE_URL: url });
  expect(ofKey).toHaveLength(3);
});

import { expect } from 'vitest';
import type { Check } from '../../src/cli/doctor/check.ts';
import type { KeyReport } from '../../src/cli/doctor/limitation-checks.ts';
import type { Behaviour } from '../../src/sandbox/index.ts';
import { runCli, runJson } from '../support/cli.ts';
import { startServer } from '../support/http-server.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const cwd = temporaryFolder();
const KEY = 'a key for tests';

async function examine(url: string, env: Readonly<Record<string, string>>) {
  const settings = { ...env, EOD_BASE_URL: url, EOD_ACCESS_KEY: KEY };
  const { code, json, stdout } = await runJson<{
    readonly checks: readonly Check[];
    readonly key: KeyReport | null;
  }>(['doctor'], { cwd, env: settings });
  expect(stdout).not.toContain(KEY);
  const ofKey = json.checks.filter(({ name }) => name.startsWith('key '));
  return { code, key: json.key, ofKey, settings };
}

const sandboxWith = async (behaviour: Partial<Behaviour>) => openSandbox({ accessKey: KEY, behaviour });

/** A source that answers GetLimitation with this, and everything else with an empty list. */
const sourceSaying = (body: string, status = 200) =>
  startServer((request, response) => {
    const isAsked = request.url?.startsWith('/GetLimitation?') === true;
    response.writeHead(isAsked ? status : 200).end(isAsked ? body : '[]');
  });

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
  expect(stdout).toMatch(/^warning {2}key rights {9}it forbids GetBhavCopyCM/m);
  expect(stdout).toMatch(/^ {2}key rights: ask the service/m);
  expect(stdout).toMatch(/^ {2}key limits: set EOD_CALLS_PER_HOUR=300/m);
});

test('the other form says the same', async ({ url }) => {
  const reports: object[] = [];
  for (const behaviour of [{}, { nestedLimitation: true, casing: 'mixed' }] as const) {
    const sandbox = await sandboxWith({ ...behaviour, disabledOperations: ['GetSeriesChange'] });
    const { key } = await examine(sandbox.url, { DATABASE_URL: url });
    reports.push({ ...key, expiresAt: typeof key?.expiresAt });
  }
  expect(reports[0]).toMatchObject({
    isEnabled: true,
    expiresAt: 'string',
    forbidden: { operations: ['GetSeriesChange'] },
  });
  expect(reports[1]).toEqual(reports[0]);
});

test.each<[string, string, number, RegExp]>([
  ['a diagnostic line', 'Function not enabled.', 200, /Function not enabled/],
  ['an unknown address', 'Not here', 404, /HTTP status 404/],
  ['an error', 'Out of order', 500, /HTTP status 500/],
  ['a refusal of the key', 'Access Denied. Key Invalid.', 200, /Key Invalid/],
  ['a page', '<!DOCTYPE html><html></html>', 200, /an answer of unknown form/],
  ['nothing', '', 200, /an answer of unknown form/],
  ['another document', '{"Value": [{"a": 1}]}', 200, /an answer of unknown form/],
  ['no text', '\u0000\ufffd', 200, /an answer of unknown form/],
])('%s is one line that the service does not say, and no failure', async (_, body, status, why) => {
  const source = await sourceSaying(body, status);
  const { key, ofKey } = await examine(source, {});
  expect(key).toBeNull();
  expect(ofKey).toEqual([
    { name: 'key limits', state: 'skipped', found: expect.stringMatching(why), remedy: null },
  ]);
  expect(ofKey[0]?.found).toMatch(/^the service does not say what the key may do \(GetLimitation: /);
});

test('a key that has expired, as the service says, fails', async ({ url }) => {
  const source = await sourceSaying('{"value": {"expirationDate": 1538159399, "enabled": "true"}}');
  const { code, ofKey, key } = await examine(source, { DATABASE_URL: url });
  expect(code).toBe(1);
  expect(key).toMatchObject({ expiresAt: '2018-09-28T18:29:59.000Z', exchanges: null });
  expect(ofKey[1]).toEqual({
    name: 'key expiry',
    state: 'failed',
    found: 'the key expired at 2018-09-28 23:59:59',
    remedy: 'have the key renewed, or set another EOD_ACCESS_KEY',
  });
});

test('an echoed key is not shown', async ({ url }) => {
  const source = await sourceSaying(JSON.stringify({ AllowedExchanges: [`NSE ${KEY}`], Enabled: true }));
  const { ofKey } = await examine(source, { DATABASE_URL: url });
  expect(ofKey).toHaveLength(3);
});

test('the last call of an hour is not overdrawn, and a refusal closes the hour', async ({ url }) => {
  const sandbox = await sandboxWith({
    faults: [{ kind: 'diagnostic', value: 'Calls per hour are limited.', operation: 'GetLimitation' }],
  });
  const env = { DATABASE_URL: url, EOD_CALLS_PER_HOUR: '1' };
  const last = await examine(sandbox.url, env);
  expect(last.ofKey).toMatchObject([{ state: 'skipped', found: expect.stringContaining('are used up') }]);
  expect(sandbox.stats().byOperation).toEqual({ GetTotalTradeHighlights: 1 });
  await execute(url, 'delete from etl.call_budget');
  const refused = await examine(sandbox.url, { DATABASE_URL: url });
  expect(refused.ofKey).toMatchObject([{ state: 'skipped', found: expect.stringContaining('are limited') }]);
  expect(await query(url, 'select calls, refused_at is null as open from etl.call_budget')).toEqual([
    { calls: 2, open: false },
  ]);
});

test('a key that is not accepted is not asked about', async ({ url }) => {
  const sandbox = await openSandbox({ accessKey: 'another key' });
  const { code, ofKey } = await examine(sandbox.url, { DATABASE_URL: url });
  expect(code).toBe(1);
  expect(ofKey).toMatchObject([{ name: 'key limits', state: 'skipped' }]);
  expect(sandbox.stats().requests).toBe(1);
});

import { expect } from 'vitest';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { execute } from '../support/template.ts';
import { examine, sandboxWith, sourceSaying } from './limitation-support.ts';
import { test } from './support.ts';

test.each<[string, string, number, RegExp]>([
  ['a diagnostic line', 'Function not enabled.', 200, /Function not enabled/],
  ['an unknown address', 'Not here', 404, /HTTP status 404/],
  ['an error', 'Out of order', 500, /HTTP status 500/],
  ['a refusal of the key', 'Access Denied. Key Invalid.', 200, /Key Invalid/],
  ['a page', '<!DOCTYPE html><html></html>', 200, /a response of unknown form/],
  ['nothing', '', 200, /a response of unknown form/],
  ['another document', '{"Value": [{"a": 1}]}', 200, /a response of unknown form/],
  ['no text', '\u0000\ufffd', 200, /a response of unknown form/],
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
  const source = await sourceSaying('{"expirationDate": 1538159399, "enabled": "true"}');
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

test('a key that is not accepted is not requested', async ({ url }) => {
  const sandbox = await openSandbox({ accessKey: 'another key' });
  const { code, ofKey } = await examine(sandbox.url, { DATABASE_URL: url });
  expect(code).toBe(1);
  expect(ofKey).toMatchObject([{ name: 'key limits', state: 'skipped' }]);
  expect(sandbox.stats().requests).toBe(1);
});

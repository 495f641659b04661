import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { runCli } from '../../support/cli.ts';
import { closeAfterFile } from '../../support/closing.ts';
import { startServer } from '../../support/http-server.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { query } from '../../support/query.ts';
import { notEnabled, openSandbox } from '../../support/sandbox.ts';
import { startWebhook } from '../../support/webhook.ts';
import { test } from '../support.ts';
import { examine as examineIn, KEY, openPatient } from './doctor-support.ts';

const { cwd, DATABASE_URL, sandbox, SETTINGS } = await openPatient();
const examine = (env: Readonly<Record<string, string>>, ...flags: string[]) => examineIn(cwd, env, ...flags);

test('where all is well nothing fails, and one call was made and counted', async () => {
  const { requests } = sandbox.stats();
  const { code, json, states, stdout, check } = await examine(SETTINGS);
  const [{ data = '' } = {}] = await query<{ data: string }>(
    DATABASE_URL,
    "select current_setting('data_directory') as data",
  );
  expect(states).toEqual({
    node: 'ok',
    settings: 'ok',
    database: 'ok',
    rights: 'ok',
    migrations: 'ok',
    disk: existsSync(data) ? 'ok' : 'skipped',
    queue: 'ok',
    night: 'ok',
    source: 'ok',
    'access key': 'ok',
    clock: 'ok',
  });
  expect({ code, isOk: json.isOk }).toEqual({ code: 0, isOk: true });
  expect(json.node).toBe(process.version);
  for (const { state, remedy } of json.checks) expect(remedy === null).toBe(/^(ok|skipped)$/.test(state));
  expect(sandbox.stats().requests - requests).toBe(1);
  expect(await query(DATABASE_URL, 'select calls from etl.call_budget')).toEqual([{ calls: 1 }]);
  expect(stdout).not.toContain(KEY);
  expect(check('disk').found).toContain(existsSync(data) ? data : 'cannot be seen from here');
});

test('--offline makes no call', async () => {
  const { requests } = sandbox.stats();
  const { code, states } = await examine(SETTINGS, '--offline');
  expect(code).toBe(0);
  expect(states).toMatchObject({ source: 'skipped', database: 'ok' });
  expect(sandbox.stats().requests).toBe(requests);
});

test('--alert says whether a test alert arrives, and never the address', async () => {
  const webhook = await startWebhook();
  const posting = (address: string) =>
    examine({ ...SETTINGS, EOD_ALERT_WEBHOOK: address }, '--offline', '--alert');
  const good = await posting(webhook.url);
  expect(good.code).toBe(0);
  const { host } = new URL(webhook.url);
  expect(good.check('alert')).toMatchObject({ state: 'ok', found: `${host} accepted the test alert` });
  expect(webhook.alerts).toMatchObject([
    { kind: 'test', text: 'eod: this is a test alert; nothing is wrong' },
  ]);

  webhook.status = 403;
  const refused = await posting(webhook.url);
  expect(refused.code).toBe(1);
  expect(refused.check('alert')).toMatchObject({
    state: 'failed',
    found: 'the webhook responded with 403',
    remedy: 'correct EOD_ALERT_WEBHOOK',
  });
  expect((await posting('http://127.0.0.1:1/kiwi')).check('alert').found).toContain('ECONNREFUSED');

  const secrets = {
    EOD_ALERT_WEBHOOK: webhook.url,
    EOD_HEARTBEAT_URL: 'http://127.0.0.1:9/ping/kiwi',
    EOD_ALERT_SECRET: 'kiwi-kiwi-kiwi-kiwi',
  };
  const config = await runCli(['config'], { cwd, env: secrets });
  expect(config.stdout).toMatch(/^EOD_HEARTBEAT_URL +environment +http:\/\/127\.0\.0\.1:9\/… \(redacted\)/m);
  expect(config.stdout).toMatch(/^EOD_ALERT_SECRET +environment +set \(redacted\)/m);
  expect(config.stdout).toMatch(
    /^EOD_ALERT_WEBHOOK +environment +http:\/\/127\.0\.0\.1:\d+\/… \(redacted\)/m,
  );
  expect(`${good.stdout}${refused.stdout}${config.stdout}`).not.toContain('kiwi');
});

test('a source that refuses a right works; one that sends pages instead of data does not', async () => {
  const refusing = await openSandbox({
    accessKey: KEY,
    behaviour: { faults: notEnabled('GetTotalTradeHighlights') },
  });
  const refused = await examine({ ...SETTINGS, EOD_BASE_URL: refusing.url });
  expect(refused.code).toBe(0);
  expect(refused.states).toMatchObject({ source: 'warning', 'access key': 'ok' });
  expect(refused.check('source').found).toMatch(/^operation_blocked: /);
  const pages = await startServer((_request, response) => response.end('<html><body>hello</body></html>'));
  const strange = await examine({ ...SETTINGS, EOD_BASE_URL: pages });
  expect({ code: strange.code, source: strange.states.source }).toEqual({ code: 1, source: 'failed' });
  expect(strange.states).not.toHaveProperty('access key');
});

test('people are shown what is not ok, with each remedy, within 80 columns', async () => {
  const env = { ...SETTINGS, EOD_ACCESS_KEY: 'a wrong key', EOD_STATEMENT_TIMEOUT_MS: '60000' };
  const { code, stdout } = await runCli(['doctor'], { cwd, env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^failed +access key +\S/m);
  expect(stdout).not.toMatch(/^ok /m);
  expect(stdout).toMatch(/^What to do:$/m);
  expect(stdout).toMatch(/^ {2}access key: correct EOD_ACCESS_KEY/m);
  expect(stdout).toMatch(/^ {2}settings: set EOD_STATEMENT_TIMEOUT_MS to/m);
  expect(stdout).not.toMatch(/^skipped /m);
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
    / \d+ of \d+ checks are ok \("eod -v doctor" lists them\)\. 1 check failed\. $/,
  );
  const all = await runCli(['-v', 'doctor'], { cwd, env });
  expect(all.stdout).toMatch(/^ok +source/m);
  expect(all.stdout).toMatch(/\n\d+ of \d+ checks are ok\. 1 check failed\.\n$/);
  for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
});

test.runIf(isSlowLayer)('with everything down or silent, each check still says what it found', async () => {
  // Takes connections and never responds.
  const silent = createTcpServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  closeAfterFile(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const { code, check, json, stdout, stderr } = await examine({
    DATABASE_URL: `postgres://eod:hunter2@127.0.0.1:${port}/eod`,
    REDIS_URL: 'redis://:hunter2@127.0.0.1:1',
    EOD_BASE_URL: `http://127.0.0.1:${port}`,
    EOD_ACCESS_KEY: 'kiwi-key',
    EOD_TIMEOUT_MS: '300',
    EOD_DATA_DIR: join(cwd, 'not', 'there'),
    EOD_CALENDAR_FILE: 'nowhere.csv',
  });
  expect({ code, isOk: json.isOk }).toEqual({ code: 1, isOk: false });
  expect(check('database')).toMatchObject({
    state: 'failed',
    remedy: expect.stringContaining('DATABASE_URL'),
  });
  expect(json.checks.map(({ name }) => name)).not.toContain('migrations');
  expect(check('queue')).toMatchObject({ state: 'failed', found: expect.stringContaining('ECONNREFUSED') });
  expect(check('night')).toMatchObject({ state: 'failed', found: expect.stringContaining('nowhere.csv') });
  expect(check('source')).toMatchObject({
    state: 'failed',
    found: expect.stringMatching(/^timeout: .*not counted/),
  });
  expect(check('disk')).toMatchObject({ state: 'skipped' });
  expect(`${stdout}${stderr}`).not.toMatch(/hunter2|kiwi-key/);
});

test('without a configuration it says what is missing; with one that cannot be read the exit code is 2', async () => {
  const bare = await examine({});
  expect(bare.code).toBe(1);
  expect(bare.check('source')).toMatchObject({
    state: 'failed',
    found: expect.stringMatching(/set EOD_BASE_URL .* and EOD_ACCESS_KEY .*eod sandbox/),
    remedy: expect.stringContaining('eod init'),
  });
  expect(bare.check('database')).toMatchObject({
    state: 'ok',
    found: expect.stringContaining('private Postgres'),
  });
  const { code, stderr } = await runCli(['doctor'], { cwd, env: { EOD_CONCURRENCY: 'many' } });
  expect(code).toBe(2);
  expect(stderr).toContain('EOD_CONCURRENCY');
});

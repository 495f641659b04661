import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startWebhook } from '../support/webhook.ts';

const cwd = temporaryFolder();

test('eod alert test says whether a test alert arrives, and never the address', async () => {
  const webhook = await startWebhook();
  const env = { EOD_ALERT_WEBHOOK: webhook.url };
  const good = await runCli(['alert', 'test'], { cwd, env });
  expect(good).toMatchObject({ code: 0, stderr: '' });
  expect(webhook.heard).toMatchObject([
    { kind: 'test', text: 'eod: this is a test alert; nothing is wrong' },
  ]);

  webhook.responses = 403;
  const refused = await runCli(['alert', 'test'], { cwd, env });
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain('the webhook responded with 403');

  const secrets = {
    EOD_HEARTBEAT_URL: 'http://127.0.0.1:9/ping/kiwi',
    EOD_ALERT_SECRET: 'kiwi-kiwi-kiwi-kiwi',
  };
  const config = await runCli(['config'], { cwd, env: { ...env, ...secrets } });
  expect(config.stdout).toMatch(/^EOD_HEARTBEAT_URL +environment +http:\/\/127\.0\.0\.1:9\/… \(redacted\)/m);
  expect(config.stdout).toMatch(/^EOD_ALERT_SECRET +environment +set \(redacted\)/m);
  expect(config.stdout).toMatch(
    /^EOD_ALERT_WEBHOOK +environment +http:\/\/127\.0\.0\.1:\d+\/… \(redacted\)/m,
  );
  expect(`${good.stdout}${refused.stderr}${config.stdout}`).not.toContain('kiwi');

  const unset = await runCli(['alert', 'test'], { cwd });
  expect(unset.code).toBe(2);
  expect(unset.stderr).toContain('EOD_ALERT_WEBHOOK');
});

import { describe, expect } from 'vitest';
import type { Check } from '../../src/cli/doctor/check.ts';
import { runCli, runJson } from '../support/cli.ts';
import { openSandbox } from '../support/sandbox.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const cwd = temporaryFolder();
const sandbox = await openSandbox();
const SETTINGS = { EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: 'a key for tests' };

/** What `eod reconcile` says of what is stored, by name. */
async function storeOf(env: Readonly<Record<string, string>>) {
  const range = ['--from', '2025-02-26', '--to', '2025-02-27'];
  const { json } = await runJson<{ store: Check[] }>(['reconcile', ...range], { cwd, env });
  return Object.fromEntries(json.store.map((check) => [check.name, check]));
}

describe('what is known of the responses', () => {
  test('coverage that was changed by hand is found, and a replay mends it', async ({ url }) => {
    const env = { ...SETTINGS, DATABASE_URL: url };
    const checked = async () => (await storeOf(env)).coverage;
    const days = ['--from', '2025-02-26', '--to', '2025-02-27'];
    for (const operation of ['GetTotalTradeHighlights', 'GetCircuitBreakers']) {
      expect(await runCli(['backfill', operation, ...days], { cwd, env })).toMatchObject({ code: 0 });
    }
    expect(await checked()).toMatchObject({ state: 'ok', found: 'the coverage is what its responses said' });
    const where = "where operation = 'GetCircuitBreakers' and exchange = 'NSE' and day = '2025-02-27'";
    const replay = [
      'replay',
      'GetCircuitBreakers',
      '--exchange',
      'NSE',
      '--from',
      '2025-02-27',
      '--to',
      '2025-02-27',
    ];
    for (const [change, register] of [
      [`update etl.coverage set loaded_records = loaded_records + 1 ${where}`, 'loaded'],
      [`update etl.coverage set last_said = 'empty' ${where}`, 'last'],
      [`delete from etl.coverage ${where}`, 'last, loaded'],
    ] as const) {
      await execute(url, change);
      expect(await checked()).toEqual({
        name: 'coverage',
        state: 'failed',
        found: `the coverage is not what the responses said: 1 entry of Price bands hit, circuit_breakers NSE, the first of 2025-02-27 (${register})`,
        remedy: expect.stringContaining(`"eod ${replay.join(' ')}"`),
      });
      expect(await runCli(replay, { cwd, env })).toMatchObject({ code: 0 });
      expect(await checked()).toMatchObject({ state: 'ok' });
    }
    // A response of an older version, of which nothing was kept.
    await execute(url, 'update etl.responses set said = null, entries = null');
    expect(await checked()).toMatchObject({ state: 'ok' });
  });

  test('a clock that was set back is reported, with what follows', async ({ url }) => {
    const positions = async () => (await storeOf({ DATABASE_URL: url })).positions;
    await execute(url, "update etl.clock set last = clock_timestamp() + interval '2 hours 30 seconds'");
    expect(await positions()).toEqual({
      name: 'positions',
      state: 'warning',
      found: expect.stringMatching(/^the last response has a position 2h 00m ahead of the clock of Postgres/),
      remedy: expect.stringContaining('The order of responses stays right'),
    });
    await execute(url, "update etl.clock set last = clock_timestamp() - interval '2 hours 30 seconds'");
    expect(await positions()).toMatchObject({ state: 'ok' });
    await execute(url, 'delete from etl.clock');
    expect(await positions()).toMatchObject({
      state: 'failed',
      found: 'etl.clock has no row: no response can get a position',
    });
  });
});

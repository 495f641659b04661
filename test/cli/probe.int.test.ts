import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { CONTRARY, OPEN_POINTS } from '../../src/sandbox/index.ts';
import { runCli, startCli } from '../support/cli.ts';
import { startServer } from '../support/http-server.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { DAY, KEY, probe, settingsFor, sourceWith, statesOf } from './probe-support.ts';
import { test } from './support.ts';

test('says what is otherwise, with the setting to change, and what else it has seen', async ({ url }) => {
  const behaviour = { envelope: 'wrong-count', casing: 'camel', xmlAttributes: true } as const;
  const source = await sourceWith({ ...behaviour, historyDays: 500, disabledExchanges: ['NSE'] });
  const { code, json } = await probe(url, source.url, '--calls', '40');
  expect(code).toBe(0);
  const otherwise = json.openPoints.filter(({ state }) => state === 'contradicts');
  expect(otherwise.map(({ name }) => name)).toEqual(['casing', 'envelope', 'xmlAttributes']);
  expect(json.settings).toEqual([{ name: 'EOD_COUNT', value: 'ignore' }]);
  expect(json.dates.isInclusive).toBe(true);
  // The last session that is no older than 500 days.
  const { served = 0, refused = null } = json.history ?? {};
  expect(served).toBeGreaterThan(494);
  expect(served).toBeLessThanOrEqual(500);
  expect(refused).toBe(served + 1);
  expect(json.rights.filter(({ isServed }) => !isServed).map(({ operation }) => operation)).toEqual([
    'GetSeriesChange',
    'GetCircuitBreakers',
    'GetBhavCopyCM',
  ]);
  for (const { differences } of json.formats) expect(differences).toEqual([]);
  expect(source.stats().requests).toBe(json.counted);
});

test('of a contrary source, --shapes sample shows the two points that declared records hide', async ({
  url,
}) => {
  const hidden = async (shapes: 'sample' | 'declared') => {
    const source = await sourceWith({ ...CONTRARY, trialDay: undefined, shapes });
    const { shortNumbers, spacedKeys } = statesOf((await probe(url, source.url)).json);
    return [shortNumbers, spacedKeys];
  };
  expect(await hidden('sample')).toEqual(['contradicts', 'contradicts']);
  expect(await hidden('declared')).not.toContain('contradicts');
});

test('plans without a call, and makes no more than allowed', async ({ url }) => {
  const source = await sourceWith();
  const options = { cwd: temporaryFolder(), env: settingsFor(url, source.url) };
  const plan = await runCli(['probe', '--trial-day', DAY, '--dry-run'], options);
  expect(plan).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^22 calls, .*None\s+was\s+made\.$/ms),
  });
  expect(source.stats().requests).toBe(0);
  const { code, json } = await probe(url, source.url, '--calls', '3');
  expect({ code, counted: json.counted, requests: source.stats().requests }).toEqual({
    code: 0,
    counted: 3,
    requests: 3,
  });
  // The first calls settle most.
  expect(statesOf(json)).toMatchObject({ casing: 'settled', trialDay: 'settled', csvUnquoted: 'settled' });
  expect(json.stopped).toMatch(/^3 calls were made/);
  const few = { ...options.env, EOD_CALLS_PER_HOUR: '4' };
  const text = await runCli(['probe', '--trial-day', DAY], { ...options, env: few });
  expect(text).toMatchObject({ code: 0, stdout: expect.stringMatching(/calls of this hour are used up/) });
  expect(source.stats().requests).toBe(4);
});

test('what is saved is served again, without the key, and shows the same', async ({ url }) => {
  const folder = join(temporaryFolder(), 'responses');
  const source = await sourceWith({ csvUnquoted: true, srcCodes: true });
  const { json } = await probe(url, source.url, '--save', folder);
  expect(json.saved).toEqual({ folder, responses: json.calls.length });
  for (const file of readdirSync(folder)) expect(readFileSync(join(folder, file), 'utf8')).not.toContain(KEY);
  const again = await probe(url, (await openSandbox({ responsesDir: folder })).url);
  expect(again.json.openPoints).toEqual(json.openPoints);
  expect(again.json.formats).toEqual(json.formats);
  // What was not requested is not there.
  const other = await openSandbox({ responsesDir: folder });
  const { status } = await fetch(`${other.url}/GetBhavCopyCM?exchange=NSE`);
  expect(status).toBe(404);
  await expect(openSandbox({ responsesDir: temporaryFolder() })).rejects.toThrow('has no saved responses');
});

test('settings are put into .env, and everything else in it stays', async ({ url }) => {
  const cwd = temporaryFolder();
  const file = join(cwd, '.env');
  const { url: source } = await sourceWith({ envelope: 'wrong-count', trialDay: '2025-02-27' });
  const { EOD_ACCESS_KEY, ...env } = settingsFor(url, source);
  const before = `# mine\nEOD_ACCESS_KEY='${EOD_ACCESS_KEY}'\nEOD_COUNT=check\n`;
  writeFileSync(file, before, { mode: 0o600 });
  const args = ['probe', '--trial-day', DAY];
  expect(await runCli(args, { cwd, env })).toMatchObject({ code: 0 });
  expect(readFileSync(file, 'utf8')).toBe(before);
  const { code, stdout } = await runCli([...args, '--write'], { cwd, env });
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/ {2}- EOD_COUNT=check\n {2}\+ EOD_COUNT=ignore\n/),
  });
  expect(readFileSync(file, 'utf8')).toBe(
    before.replace('EOD_COUNT=check', 'EOD_COUNT=ignore').concat('EOD_TRIAL_DAY=2025-02-27\n'),
  );
  expect(statSync(file).mode & 0o777).toBe(0o600);
  // With them, nothing is left to change.
  expect(await runCli([...args, '--write'], { cwd, env })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('.env stays as it is'),
  });
});

test('a source that names days otherwise is called by these names, and the setting is said', async ({
  url,
}) => {
  const source = await sourceWith({ dialect: 'iso-date' });
  const { code, json } = await probe(url, source.url);
  expect(code).toBe(0);
  expect(json.settings).toEqual([{ name: 'EOD_DATE_DIALECT', value: 'iso-date' }]);
  // Hours are not requested in this dialect.
  const open = json.openPoints.filter(({ state }) => state !== 'settled').map(({ name }) => name);
  expect(open).toEqual(['exactTimes']);
  expect(json.counted).toBeLessThanOrEqual(25);
  // A source that refuses both is called in the dialect that is set, and no setting is said.
  const refusing = await startServer((_request, response) => response.writeHead(400).end('no'));
  expect((await probe(url, refusing)).json.settings).toEqual([]);
});

test('what a key may not request is requested elsewhere, or not again', async ({ url }) => {
  const ofOneExchange = await sourceWith({ disabledExchanges: ['BSE'] });
  const nse = await probe(url, ofOneExchange.url);
  expect(nse.code).toBe(0);
  expect(statesOf(nse.json)).toMatchObject({
    casing: 'settled',
    trialDay: 'settled',
    csvUnquoted: 'settled',
  });
  expect(nse.json.counted).toBeLessThanOrEqual(25);

  const trial = await sourceWith({ demoInstruments: ['RELIANCE'] });
  const { json } = await probe(url, trial.url);
  expect(statesOf(json)).toMatchObject({ casing: 'settled', trialDay: 'settled', csvUnquoted: 'settled' });
  expect(json.calls.filter(({ problem }) => problem?.startsWith('instrument_blocked'))).toHaveLength(1);
  const options = { cwd: temporaryFolder(), env: settingsFor(url, trial.url) };
  expect((await runCli(['probe', '--trial-day', DAY], options)).stdout).toMatch(
    /the key may not request TCS by name: set EOD_INSTRUMENTS to an instrument that\s+it may/,
  );
});

test('responses that show nothing are no success', async ({ url }) => {
  const source = await startServer((_request, response) => response.end('{"Value": [{"Symbol": "TCS", "Clo'));
  const { code, json } = await probe(url, source);
  expect(json.openPoints.every(({ state }) => state === 'undecided')).toBe(true);
  expect(code).toBe(1);
});

describe('ends with what it knows', () => {
  /** Points of a report, all of which are undecided. */
  const allUndecided = Object.fromEntries(OPEN_POINTS.map(({ name }) => [name, 'undecided']));

  test('a key that is refused', async ({ url }) => {
    const source = await openSandbox({ accessKey: 'another' });
    const { code, json } = await probe(url, source.url);
    expect({ code, counted: json.counted, states: statesOf(json) }).toEqual({
      code: 1,
      counted: 1,
      states: allUndecided,
    });
    expect(json.stopped).toMatch(/refuses the access key/);
  });

  test('a source that limits calls', async ({ url }) => {
    const { code, json } = await probe(url, (await sourceWith({ callsPerHour: 5 })).url);
    expect({ code, counted: json.counted }).toEqual({ code: 0, counted: 6 });
    expect(json.stopped).toMatch(/quota of this hour/);
    expect(statesOf(json)).toMatchObject({ epochMilliseconds: 'settled', anyCase: 'undecided' });
  });

  test('a source that is down, too busy, or another server', async ({ url }) => {
    const down = await startServer((_request, response) => response.writeHead(503).end());
    const busy = await startServer((_request, response) => response.writeHead(429).end());
    const page = await startServer((_request, response) => response.end('<html><body>hello</body></html>'));
    const found: { readonly code: number; readonly counted: number }[] = [];
    for (const source of [down, busy, page]) {
      const { code, json } = await probe(url, source);
      found.push({ code, counted: json.counted });
      expect(statesOf(json)).toEqual(allUndecided);
    }
    expect(found).toEqual([
      { code: 1, counted: 3 },
      { code: 1, counted: 1 },
      { code: 1, counted: 23 },
    ]);
  });

  test('a source that does not respond, and Ctrl-C', async ({ url }) => {
    let requests = 0;
    const silent = await startServer(() => {
      requests += 1;
    });
    const env = settingsFor(url, silent);
    const cwd = temporaryFolder();
    const late = await runCli(['probe', '--trial-day', DAY], { cwd, env: { ...env, EOD_TIMEOUT_MS: '100' } });
    expect(late).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/3\s+calls\s+in\s+a\s+row\s+had\s+no\s+response/),
    });
    expect(requests).toBe(3);
    const running = startCli(['probe', '--trial-day', DAY], { cwd, env });
    await waitFor(() => (requests === 4 ? true : null), { what: 'a call' });
    running.signal('SIGINT');
    expect(await running.ended).toMatchObject({
      code: 130,
      stdout: expect.stringMatching(/It ended early: it was interrupted/),
    });
  });
});

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const RESPONSE = {
  Value: [
    {
      MeetingDate: '02-27-2025',
      Symbol: 'RELIANCE',
      ResolutionNo: 1,
      Resolution: 'Accounts',
      VotesFor: 12_345,
      ForPct: 99.98,
    },
    {
      MeetingDate: '02-27-2025',
      Symbol: 'RELIANCE',
      ResolutionNo: 2,
      Resolution: 'Dividend',
      VotesFor: 12_000,
      ForPct: 100,
    },
    {
      MeetingDate: '02-26-2025',
      Symbol: 'TCS',
      ResolutionNo: 1,
      Resolution: 'Accounts',
      VotesFor: 9_456,
      ForPct: 99.9,
    },
  ],
};

test('a response that was saved becomes a declaration that is checked, enabled and loaded', async () => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, 'GetVoting.json'), JSON.stringify(RESPONSE));
  const drafted = await runCli(['operations', 'draft', 'GetVoting.json'], { cwd });
  expect(drafted.stdout).toMatch(/^wrote operations\/GetVoting\.mjs: \d+ guesses are marked\n$/);
  const text = readFileSync(join(cwd, 'operations/GetVoting.mjs'), 'utf8');
  expect(text).toContain("numeric('ForPct', 'for_percent', 'ForPct as sent.'), // guessed: numbers");

  const checked = await runJson<object[]>(['operations', 'check', 'operations/GetVoting.mjs'], { cwd });
  expect(checked.json).toMatchObject([{ name: 'GetVoting', isGood: true, rejects: [], unknownFields: [] }]);
  expect((await runCli(['operations', 'check', 'getvoting'], { cwd })).stdout).toContain(
    'GetVoting: good; 3 records to store, 0 rejects',
  );

  const again = await runCli(['operations', 'draft', 'GetVoting.json'], { cwd });
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('GetVoting.mjs is there already') });
  expect(readFileSync(join(cwd, 'operations/GetVoting.mjs'), 'utf8')).toBe(text);

  const { url } = await testDatabase();
  const sandbox = await openSandbox({ operationsDir: join(cwd, 'operations') });
  const env = { DATABASE_URL: url, EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: 'kiwi' };
  await runJson(['operations', 'enable', 'GetVoting'], { cwd, env });
  const { json } = await runJson<RunReport>(
    ['backfill', 'GetVoting', '--from', '2025-02-24', '--to', '2025-02-28'],
    { cwd, env },
  );
  expect(json).toMatchObject({ state: 'completed', rejected: 0 });
  const [rows] = await query<{ count: number }>(url, 'select count(*)::int from market.voting');
  expect(rows?.count).toBe(json.inserted);
});

test('a declaration that does not fit is reported in sentences, and ends with 1', async () => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, 'GetVoting.json'), JSON.stringify(RESPONSE));
  const { stdout } = await runCli(['operations', 'draft', 'GetVoting.json', '--print'], { cwd });
  expect(existsSync(join(cwd, 'operations'))).toBe(false);
  mkdirSync(join(cwd, 'operations'));
  const wrong = stdout.replace("dates: 'range'", "dates: 'ranges'").replace(", 'resolution_no']", ']');
  writeFileSync(join(cwd, 'operations/GetVoting.mjs'), wrong);
  const { code, stdout: reported } = await runCli(['operations', 'check', 'operations/GetVoting.mjs'], {
    cwd,
  });
  expect(code).toBe(1);
  expect(reported.replace(/\s+/g, ' ')).toMatch(
    /GetVoting\.mjs: request\.dates is "ranges": use range, years, day, spans or none/,
  );
});

test('a broken file is reported, and stops only its own operation', async () => {
  const cwd = temporaryFolder();
  mkdirSync(join(cwd, 'operations'));
  writeFileSync(join(cwd, 'operations/GetBroken.mjs'), 'export default {');
  const { url } = await testDatabase();
  const env = { DATABASE_URL: url };
  const listed = await runCli(['operations', 'list', '--available', '--json'], { cwd, env });
  expect(listed.code).toBe(0);
  expect(listed.stderr).toContain('GetBroken.mjs: it cannot be imported');
  expect(JSON.parse(listed.stdout).length).toBeGreaterThan(40);
  expect((await runCli(['operations', 'enable', 'GetSectors'], { cwd, env })).code).toBe(0);
  const refused = await runCli(['operations', 'enable', 'GetBroken'], { cwd, env });
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('GetBroken.mjs: it cannot be imported'),
  });
});

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli, runJson } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const EXAMPLE = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');

test('writes a commented .env for its owner alone, and says what comes next', async () => {
  const cwd = temporaryFolder();
  const { code, stdout, stderr } = await runCli(['init'], { cwd });
  const file = join(cwd, '.env');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(readFileSync(file, 'utf8')).toBe(EXAMPLE);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  for (const says of [file, 'EOD_BASE_URL', 'EOD_ACCESS_KEY', 'DATABASE_URL']) expect(stdout).toContain(says);
  expect(stdout).toMatch(/^ +eod migrate .*\n +eod doctor .*\n +eod nightly /m);
  // It sets nothing yet, and is read.
  expect(await runCli(['config'], { cwd })).toMatchObject({ code: 0, stderr: '' });
});

test('replaces a file only with --force, and then its rights too', async () => {
  const cwd = temporaryFolder();
  const file = join(cwd, '.env');
  writeFileSync(file, 'EOD_ACCESS_KEY=mine\n', { mode: 0o644 });
  expect(await runCli(['init'], { cwd })).toEqual({
    code: 2,
    stdout: '',
    stderr: `eod: ${file} exists already, and may hold your key; --force replaces it\n`,
  });
  expect(readFileSync(file, 'utf8')).toBe('EOD_ACCESS_KEY=mine\n');
  expect(await runJson(['init', '--force'], { cwd })).toMatchObject({
    code: 0,
    json: { file, hasReplaced: true },
  });
  expect(readFileSync(file, 'utf8')).toBe(EXAMPLE);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('another file is named in the next steps; a folder that is not there is a mistake', async () => {
  const cwd = temporaryFolder();
  const { code, stdout } = await runCli(['init', 'production.env'], { cwd });
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/eod\s+reads\s+\.env/) });
  const wrong = await runCli(['init', 'nowhere/.env'], { cwd });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be written') });
});

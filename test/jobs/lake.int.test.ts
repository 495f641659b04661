import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli, runJson } from '../support/cli.ts';
import { filledDatabase } from '../support/filled-database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { manifestOf } from './lake-support.ts';

const env = { DATABASE_URL: await filledDatabase() };
const exported = (...args: string[]) => runJson(['export', ...args], { cwd: temporaryFolder(), env });

describe('a lake of its own', () => {
  test('runs a command after a change, and again until it succeeds', async () => {
    const folder = join(temporaryFolder(), 'change');
    mkdirSync(folder);
    const run = (command: string) =>
      runCli(['export', 'bhavcopy_cm', '--lake', folder, '--on-change', command], {
        cwd: folder,
        env: { ...env, EOD_ACCESS_KEY: 'kiwi-4711', https_proxy: 'http://kiwi-4711@proxy:3128' },
      });
    const failed = await run('exit 3');
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(
      /the command of --on-change ended with exit code 3; the next export with --on-change runs it again/,
    );
    const tell =
      'env >> environment; echo "$EOD_LAKE_STATE $EOD_LAKE $EOD_LAKE_TABLES" >> reported; test -f "$EOD_LAKE_MANIFEST"';
    for (const _ of [1, 2]) expect((await run(tell)).code).toBe(0);
    const reported = () => readFileSync(join(folder, 'reported'), 'utf8').trim().split('\n');
    const line = () => `${manifestOf(folder).state} ${folder}`;
    expect(reported()).toEqual([`${line()} bhavcopy_cm`]);
    const environment = readFileSync(join(folder, 'environment'), 'utf8');
    expect(environment).toContain('https_proxy=http://proxy:3128/\n');
    expect(environment).not.toMatch(/kiwi|DATABASE_URL/);
    // An export without the command changes another table: it is reported by the next one.
    await exported('deliveries', '--lake', folder);
    await run(tell);
    expect(reported().slice(1)).toEqual([`${line()} deliveries`]);
    const killed = await run('echo >> reported; kill -9 $$');
    expect(killed).toMatchObject({ code: 0 });
    await exported('prices', '--lake', folder);
    // What cannot be read was not handled.
    writeFileSync(join(folder, '_on_change.json'), 'null');
    expect((await run('kill -9 $$')).stderr).toContain('ended with SIGKILL; the next export');
  });

  test.each([
    ['a table that is not there', ['bhavcopy', '--lake', 'typo'], /did you mean bhavcopy_cm/],
    ['a path without a name', ['bhavcopy_cm', '--lake', ''], /--lake needs the path of a folder/],
    [
      'an empty command',
      ['bhavcopy_cm', '--lake', 'typo', '--on-change', ' '],
      /--on-change needs a command/,
    ],
    ['a file', ['bhavcopy_cm', '--lake', 'file'], /file is a file, not a folder/],
  ])('is refused for %s, and leaves nothing behind', async (_, args, message) => {
    const cwd = temporaryFolder();
    writeFileSync(join(cwd, 'file'), '');
    const refused = await runCli(['export', ...args], { cwd, env });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
    expect(readdirSync(cwd)).not.toContain('typo');
  });
});

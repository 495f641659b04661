import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { runCli } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const ROOT = new URL('../../', import.meta.url);
const readme = readFileSync(new URL('README.md', ROOT), 'utf8');

/** The words of each command of "Try it" that imports or reads, without `eod --demo`; a quoted query may have two lines. */
const commands = [...readme.matchAll(/^ {4}eod --demo ((?:import|query|gaps) (?:[^"\n]|"[^"]*")*)$/gm)].map(
  ([, line = '']) =>
    [...line.replace(/ +#.*$/, '').matchAll(/"([^"]*)"|(\S+)/g)].map(
      ([, quoted, word = '']) => quoted ?? word.replace(/^test\/fixtures\//, `${ROOT.pathname}$&`),
    ),
);
/** What README.md shows of their output. */
const shown = [...readme.matchAll(/```console\n([\s\S]*?)```/g)].map(([, text = '']) => text);

test('the commands of README.md print what it says', async ({ url }) => {
  const env = { DATABASE_URL: url, EOD_BASE_URL: 'http://127.0.0.1:1', EOD_ACCESS_KEY: 'kiwi' };
  const cwd = temporaryFolder();
  const printed: string[] = [];
  for (const args of commands) {
    const { code, stdout, stderr } = await runCli(args, { cwd, env });
    expect(code, stderr).toBe(args[0] === 'gaps' ? 1 : 0);
    if (args[0] !== 'import') printed.push(stdout);
  }
  const [now = '', past = '', gaps, prices = ''] = printed;
  expect([now, past].map((text) => /\d+\.\d+/.exec(text)?.[0])).toEqual(['402.50', '400.00']);
  expect(readme).toContain('The first query prints `402.50`, the second one `400.00`');
  expect(gaps).toBe(shown[0]);
  expect(prices.split('\n')).toEqual(expect.arrayContaining((shown[1] ?? '').trimEnd().split('\n')));
});

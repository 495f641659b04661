import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { operations } from '../../src/operations/registry.ts';
import { captureCli, runCli } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();
const SHELLS = ['bash', 'zsh', 'fish'] as const;
const has = (shell: string) => spawnSync(shell, ['-c', 'true']).status === 0;
const file = (shell: string) => join(cwd, `eod.${shell}`);

beforeAll(async () => {
  symlinkSync(fileURLToPath(new URL('../../bin/eod.mjs', import.meta.url)), join(cwd, 'eod'));
  for (const shell of SHELLS) {
    const { code, stdout } = await runCli(['completion', shell], { cwd });
    expect(code).toBe(0);
    writeFileSync(file(shell), stdout);
  }
});

function run(shell: string, ...args: string[]): string {
  const env = { ...process.env, PATH: `${cwd}:${process.env.PATH}` };
  const { status, stdout, stderr } = spawnSync(shell, args, { cwd, env, encoding: 'utf8', timeout: 40_000 });
  if (status !== 0) throw new Error(`${shell} ended with ${status}: ${stderr}`);
  return stdout;
}

const operationsNamed = (start: string): string[] =>
  operations.flatMap(({ name }) => (name.startsWith(start) ? [name] : []));

/** What is offered after words of a command line, the last of which is being typed. */
async function offers(...words: string[]): Promise<string[]> {
  const { code, stdout } = await runCli(['complete', '--', ...words], { cwd });
  expect(code).toBe(0);
  return stdout.split('\n').flatMap((line) => line.split('\t')[0] || []);
}

const EXCHANGES = ['BSE', 'NSE'];

describe.concurrent('eod complete', () => {
  test.each<readonly [line: string, words: readonly string[]]>([
    ['back', ['backfill']],
    ['backfill GetFinRatio', operationsNamed('GetFinRatio')],
    ['gaps GetB', operationsNamed('GetB')],
    ['backfill --all --excha', ['--exchange']],
    ['backfill --exchange ', EXCHANGES],
    ['backfill --exchange NSE,', EXCHANGES.map((code) => `NSE,${code}`)],
    ['backfill --band ', ['H', 'L']],
    ['backfill --from ', []],
    ['up --roles sched', ['scheduler']],
    ['rejects re', ['retry']],
    ['rejects sh', []],
    ['rejects retry --op', ['--operation']],
    ['gaps fi', ['fill']],
    ['withdrawals --verb', ['--verbose']],
    ['runs ca', ['cancel']],
    ['events --ki', ['--kind']],
    ['findings --severity w', ['warning']],
    ['findings --check previous_', ['previous_close']],
    ['sandbox --casing p', ['pascal']],
    ['sandbox --fault=ha', ['--fault=half-json', '--fault=half-list', '--fault=hang']],
    ['completion ', SHELLS],
    ['help doc', ['doctor']],
    ['help runs ', ['cancel', 'resume']],
    ['nonsuch ', []],
    // As one word, where COMP_WORDBREAKS lacks the equals sign, …
    ['backfill --exchange=N', ['--exchange=NSE']],
    ['backfill --exchange=', EXCHANGES.map((code) => `--exchange=${code}`)],
    ['backfill --exchange=NSE,B', ['--exchange=NSE,BSE']],
    // … and as bash divides it otherwise.
    ['backfill --exchange =', EXCHANGES],
    ['backfill --exchange = N', ['NSE']],
    ['import b', [':files']],
    ['export bhavcopy_cm --out=b', [':files--out=']],
  ])('eod %s', async (line, words) => {
    expect((await offers(...line.split(' '))).toSorted()).toEqual(words.toSorted());
  });

  test('all commands, all operations, and all flags of a command', async () => {
    const program = buildProgram(captureCli({ cwd }).cli);
    const commands = program.commands.map((command) => command.name()).filter((name) => name !== 'complete');
    expect((await offers('')).toSorted()).toEqual(commands.toSorted());
    expect(await offers()).toEqual(await offers(''));
    expect((await offers('backfill', '')).toSorted()).toEqual(operations.map(({ name }) => name).toSorted());
    const flags = ['--dry-run', '--help', '--nature-of-report', '--verbose'];
    expect(await offers('backfill', '--')).toEqual(expect.arrayContaining(flags));
  });

  test('each word has its meaning behind it, in short', async () => {
    const { stdout } = await runCli(['complete', '--', 'gap'], { cwd });
    expect(stdout).toBe('gaps\tList sessions that should be loaded and are not, and why\n');
  });
});

/** What is typed, and what stands there after Tab. */
const LINES = [
  ['eod gaps GetBhavCopyC', 'GetBhavCopyCM'],
  ['eod backfill --exchange=NSE,B', '--exchange=NSE,BSE'],
] as const;

describe('bash', () => {
  /** What bash offers for the last word of a line, split as bash would. */
  const complete = (...words: readonly string[]) => {
    const line = words.map((word) => `'${word}'`).join(' ');
    const script = `source '${file('bash')}'; COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _eod; printf '%s\n' "\${COMPREPLY[@]}"`;
    return run('bash', '--norc', '-c', script).trim().split('\n').toSorted();
  };

  test.each(LINES)('%s', (line, offered) => {
    expect(complete(...line.split(' '))).toEqual([offered]);
  });

  test('files, and the parts into which bash divides a word', () => {
    expect(complete('eod', 'import', 'eod.ba')).toEqual(['eod.bash']);
    expect(complete('eod', 'export', 'bhavcopy_cm', '--out=eod.ba')).toEqual(['--out=eod.bash']);
    expect(complete('eod', 'backfill', '--exchange', '=', '')).toEqual(['BSE', 'NSE']);
    expect(complete('eod', 'backfill', '--from', '')).toEqual(['']);
  });
});

describe('fish', () => {
  test.each(has('fish') ? LINES : [])('%s', (line, offered) => {
    const found = run('fish', '--no-config', '-c', `source '${file('fish')}'; complete -C '${line}'`);
    expect(found.split('\n').flatMap((text) => text.split('\t')[0] || [])).toEqual([offered]);
  });

  test('is there to be tested, or said to be missing', () => {
    if (!has('fish')) process.stderr.write('fish is not installed: its completion was only generated\n');
    expect(run('bash', '-c', `grep '^complete' '${file('fish')}'`)).toMatch(/^complete -c eod /);
  });
});

describe('zsh', () => {
  /** An interactive zsh on a terminal of its own: what one press of Tab makes of a line. */
  const complete = (line: string) =>
    run(
      'zsh',
      '-fc',
      `zmodload zsh/zpty
zpty z zsh -fi
zpty -w z "PS1='>>''> '; stty columns 200; autoload -Uz compinit; compinit -uD; source '${file('zsh')}'; print R''EADY"
zpty -r z out '*READY*>>> *'
zpty -wn z $'${line}\\t # end\\n'
zpty -r z out '*# end*'
zpty -d z
print -r -- $out`,
    );

  test.each(has('zsh') ? LINES : [])('%s', (line, offered) => {
    expect(stripVTControlCharacters(complete(line))).toContain(offered);
  });

  test('is there to be tested, or said to be missing', () => {
    if (!has('zsh')) process.stderr.write('zsh is not installed: its completion was only generated\n');
    expect(run('bash', '-c', `head -1 '${file('zsh')}'`)).toBe('#compdef eod\n');
  });
});

test('a shell that is not known is a mistake', async () => {
  const { code, stderr } = await runCli(['completion', 'tcsh'], { cwd });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/'tcsh' is invalid.*bash, zsh, fish/),
  });
});

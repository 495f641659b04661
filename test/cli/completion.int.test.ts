import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
  for (const shell of SHELLS) {
    const { code, stdout } = await runCli(['completion', shell], { cwd });
    expect(code).toBe(0);
    writeFileSync(file(shell), stdout);
  }
});

function run(shell: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(shell, args, { cwd, encoding: 'utf8', timeout: 20_000 });
  if (status !== 0) throw new Error(`${shell} ended with ${status}: ${stderr}`);
  return stdout;
}

function operationsNamed(start: string): string[] {
  return operations.flatMap(({ name }) => (name.startsWith(start) ? [name] : []));
}

/** Command lines that end where Tab is pressed, and what is offered there. */
const CASES: readonly (readonly [line: string, offers: readonly string[]])[] = [
  ['eod back', ['backfill']],
  ['eod backfill GetFinRatio', operationsNamed('GetFinRatio')],
  ['eod gaps GetB', operationsNamed('GetB')],
  ['eod backfill --all --excha', ['--exchange']],
  ['eod backfill --exchange ', ['BSE', 'NSE']],
  ['eod backfill --band ', ['H', 'L']],
  ['eod up --roles sched', ['scheduler']],
  ['eod rejects re', ['retry']],
  ['eod rejects retry --op', ['--operation']],
  ['eod gaps fi', ['fill']],
  ['eod withdrawals --verb', ['--verbose']],
  ['eod runs ca', ['cancel']],
  ['eod events --ki', ['--kind']],
  ['eod findings --severity w', ['warning']],
  ['eod completion ', [...SHELLS]],
  ['eod help doc', ['doctor']],
];

describe('bash', () => {
  /** What bash offers for the last word of a line, split as bash would. */
  const complete = (words: readonly string[]) => {
    const line = words.map((word) => `'${word}'`).join(' ');
    const script = `source '${file('bash')}'; COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _eod; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return run('bash', '--norc', '-c', script).trim().split('\n').toSorted();
  };

  test.each(CASES)('%s', (line, offers) => {
    expect(complete(line.split(' '))).toEqual(offers.toSorted());
  });

  test('all commands, all operations, lists and values behind an equals sign', () => {
    const program = buildProgram(captureCli({ cwd }).cli);
    const commands = program
      .createHelp()
      .visibleCommands(program)
      .map((command) => command.name());
    expect(commands).not.toContain('run');
    expect(complete(['eod', ''])).toEqual(commands.toSorted());
    expect(complete(['eod', 'backfill', ''])).toEqual(operations.map(({ name }) => name).toSorted());
    expect(complete(['eod', 'backfill', '--exchange', 'NSE,'])).toEqual(['NSE,BSE', 'NSE,NSE']);
    expect(complete(['eod', 'backfill', '--exchange', '=', 'N'])).toEqual(['NSE']);
    // As one word, where COMP_WORDBREAKS lacks the equals sign.
    expect(complete(['eod', 'backfill', '--exchange=N'])).toEqual(['--exchange=NSE']);
    expect(complete(['eod', 'backfill', '--exchange='])).toEqual(['--exchange=BSE', '--exchange=NSE']);
    expect(complete(['eod', 'backfill', '--exchange=NSE,B'])).toEqual(['--exchange=NSE,BSE']);
    expect(complete(['eod', 'export', 'bhavcopy_cm', '--out=eod.ba'])).toEqual(['--out=eod.bash']);
    expect(complete(['eod', 'backfill', '--from', ''])).toEqual(['']);
    expect(complete(['eod', 'import', 'eod.ba'])).toEqual(['eod.bash']);
    const flags = complete(['eod', 'backfill', '--']);
    expect(flags).toEqual(expect.arrayContaining(['--dry-run', '--help', '--nature-of-report']));
  });
});

describe('fish', () => {
  const withEquals = [
    ['eod backfill --exchange=N', ['--exchange=NSE']],
    ['eod backfill --exchange=NSE,B', ['--exchange=NSE,BSE']],
    ['eod backfill --band=', ['--band=H', '--band=L']],
  ] as const;

  test.each(has('fish') ? [...CASES, ...withEquals] : [])('%s', (line, offers) => {
    const offered = run('fish', '--no-config', '-c', `source '${file('fish')}'; complete -C '${line}'`);
    const words = offered.split('\n').flatMap((text) => text.split('\t')[0] || []);
    expect(words.toSorted()).toEqual(offers.toSorted());
  });

  test('is there to be tested, or said to be missing', () => {
    if (!has('fish')) process.stderr.write('fish is not installed: its completion was only generated\n');
    expect(run('bash', '-c', `grep -c '^complete -c eod' '${file('fish')}'`)).toMatch(/^\d{3}/);
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

  test.each(
    !has('zsh')
      ? []
      : [
          ['eod back', 'eod backfill'],
          ['eod gaps GetB', 'eod gaps GetBhavCopyCM'],
          ['eod backfill --all --excha', '--all --exchange='],
          ['eod up --roles sched', '--roles scheduler'],
          ['eod rejects re', 'eod rejects retry'],
          ['eod rejects retry --op', 'retry --operation='],
          ['eod findings --severity w', '--severity warning'],
          ['eod help doc', 'eod help doctor'],
          ['eod backfill --exchange=N', '--exchange=NSE'],
          ['eod backfill --exchange=NSE,B', '--exchange=NSE,BSE'],
        ],
  )('%s', (line, makes) => {
    expect(stripVTControlCharacters(complete(line))).toContain(makes);
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

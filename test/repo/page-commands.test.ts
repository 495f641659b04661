import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { captureCli } from '../support/cli.ts';

const ROOT = new URL('../../', import.meta.url);
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(new URL('docs', ROOT)).map((name) => `docs/${name}`),
].filter((name) => name.endsWith('.md'));

const { cli } = captureCli();
const program = buildProgram(cli);

/** What is wrong with a command line of a page: a command or an option that `eod` does not have. */
function mistakesOf(line: string): string[] {
  const words = line
    .replace(/ #.*$/, '')
    .split(/\s+/)
    .filter((word) => word !== '');
  const flags = words.filter((word) => /^--[a-z]/.test(word)).map((word) => word.split('=')[0] as string);
  const names = words.filter((word) => !word.startsWith('-'));
  // The name of a command may have two words, as `gaps fill`.
  const [command = program] = [names.slice(0, 2).join(' '), names[0]].flatMap(
    (name) => program.commands.find((other) => other.name() === name) ?? [],
  );
  if (command === program && names.length > 0) return [`eod ${names[0]}`];
  const options = [...program.options, ...command.options];
  const known = ['--help', ...options.flatMap(({ long }) => long ?? [])];
  return flags.filter((flag) => !known.includes(flag)).map((flag) => `eod ${command.name()} ${flag}`);
}

test('a command or an option that does not exist is noticed', () => {
  expect(mistakesOf('gaps fill --from 2026-11-02 --dry-run   # of all')).toEqual([]);
  expect(mistakesOf('--demo statsu')).toEqual(['eod statsu']);
  expect(mistakesOf('gaps fill --form 2026-11-02')).toEqual(['eod gaps fill --form']);
});

test.each(PAGES)('%s shows commands and options that exist', (page) => {
  const text = readFileSync(new URL(page, ROOT), 'utf8');
  const lines = [...text.matchAll(/^ {4,}(?:[A-Z_]+=\S+ )*(?:npx )?eod ([^\n|;&>]*)/gm)].map(
    ([, line = '']) => line,
  );
  expect(lines.flatMap(mistakesOf)).toEqual([]);
});

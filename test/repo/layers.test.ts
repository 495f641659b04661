import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { loadConfig } from '../../src/core/config.ts';
import { ISSUE_KINDS } from '../../src/state/issue-kinds.ts';
import * as typed from '../../src/web/commands.ts';
import { captureCli } from '../support/cli.ts';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** The TypeScript files of a folder of src/. */
const filesOf = (folder: string) =>
  readdirSync(join(SRC, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(folder, file).split(sep).join('/'));

const codeOf = (file: string) => readFileSync(join(SRC, file), 'utf8');

test('no file finds others from its own folder, which the build changes: those start from CODE and PACKAGE', () => {
  const isKept = (code: string) =>
    code
      .replaceAll('createRequire(import.meta.url)', '')
      .replaceAll('extname(import.meta.filename)', '')
      .includes('import.meta.');
  const files = filesOf('.').filter((file) => isKept(codeOf(file)));
  expect(files).toEqual(['core/package-folders.ts']);
});

test.each(['jobs', 'cli', 'web'])(
  'no file of %s names a table of the schema etl, in SQL or in words',
  (folder) => {
    const files = filesOf(folder);
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => codeOf(file).includes('etl.'))).toEqual([]);
  },
);

test.each(['jobs', 'cli', 'web'])('no file of %s queries the tables of market', (folder) => {
  const statement = /\b(?:from|join|into|update|table)\s+market(?:_history)?\./i;
  expect('select 1 from market.bhavcopy_cm').toMatch(statement);
  expect(filesOf(folder).filter((file) => statement.test(codeOf(file)))).toEqual([]);
});

/** The commands and their flags, as the command line has them. */
function vocabulary(): { commands: string[]; flags: string[] } {
  const { cli } = captureCli();
  const { commands } = buildProgram(cli);
  return {
    commands: commands.map((command) => command.name()),
    flags: commands.flatMap((command) => command.options.flatMap(({ long }) => (long == null ? [] : [long]))),
  };
}

/** Something that needs a person. */
const ISSUE = {
  priority: 1,
  operation: 'GetBhavCopyCM',
  exchange: 'NSE',
  exchanges: ['NSE'],
  from: '2025-08-29',
  to: '2025-08-29',
  subject: 'INFY',
  items: 1,
  effect: 1,
  text: null,
  since: null,
};

const PIPELINE = { state: 'blocked', cause: null, since: null, nextTry: null } as const;

const PIPELINE_REMEDIES = [
  'try_key',
  'check_storage',
  'follow_run',
  'await_source',
  'resume',
  'fill_gaps',
  'import_files',
] as const;

test('what pages tell people to type is a command that exists, with flags that it has', () => {
  const { commands, flags } = vocabulary();
  const texts = [
    ...Object.values(typed.COMMANDS),
    typed.runCommand('resume', 1),
    typed.refetchCommand('GetBhavCopyCM', 'NSE', '2025-08-29'),
    typed.rejectCommand(1),
    ...PIPELINE_REMEDIES.flatMap((remedy) =>
      [6, null].map((runId) => typed.pipelineAdvice({ ...PIPELINE, remedy, runId })?.command ?? ''),
    ),
    typed.eventCommand('NSE:ITC:2025-08-29:split'),
    ...ISSUE_KINDS.flatMap((kind) =>
      ['3', null].map((id) => typed.issueCommand({ ...ISSUE, kind, id }, loadConfig({}))),
    ),
  ];
  for (const text of texts) {
    // A setting that leaves something out.
    if (/^EOD_[A-Z]+=\S+$/.test(text)) continue;
    const [program, command, ...words] = text.split(' ');
    expect(program).toBe('eod');
    expect(commands).toContain(command);
    for (const word of words) if (word.startsWith('--')) expect(flags).toContain(word);
  }
});

test('a command with the symbol of an event can be pasted into a shell', () => {
  expect(typed.eventCommand('BSE:M&M:2025-08-29:split')).toBe(
    "eod events set 'BSE:M&M:2025-08-29:split' --factor A:B",
  );
  expect(typed.eventCommand('NSE:ITC:2025-08-29:split')).toBe(
    'eod events set NSE:ITC:2025-08-29:split --factor A:B',
  );
});

test('only the command line names commands and flags', () => {
  const { commands, flags } = vocabulary();
  expect(commands).toContain('backfill');
  expect(flags).toContain('--instruments');
  const pattern = new RegExp(`\\beod (?:${commands.join('|')})\\b|(?:${flags.join('|')})(?![\\w-])`, 'g');
  expect('see "eod gaps" or --limit, not eod_gaps or --limits'.match(pattern)).toEqual([
    'eod gaps',
    '--limit',
  ]);
  const folders = readdirSync(SRC).filter(
    (name) => name !== 'cli' && statSync(join(SRC, name)).isDirectory(),
  );
  expect(folders.length).toBeGreaterThan(10);
  const uses = folders
    .flatMap(filesOf)
    // Settings and tables are declared with what they mean; pages tell people what to type.
    .filter(
      (file) =>
        !file.startsWith('state/schema/') &&
        !['core/settings.ts', 'core/consistent-settings.ts', 'web/commands.ts'].includes(file),
    )
    .flatMap((file) => (codeOf(file).match(pattern) ?? []).map((name) => `${file}: ${name}`));
  expect(uses).toEqual([]);
});

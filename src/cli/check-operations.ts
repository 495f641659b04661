import { existsSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import { checkSample, type SampleCheck } from '../extract/check-sample.ts';
import type { DeclarationProblem } from '../operations/check-declaration.ts';
import { type DeclaredFile, findDeclared, readDeclared, tablesTakenBy } from '../operations/declared.ts';
import type { Operation } from '../operations/operation.ts';
import { allOperations, builtIn } from '../operations/registry.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from './cli.ts';
import { readNamed } from './draft-operation.ts';
import { bold, plural } from './output.ts';

interface CheckFlags extends JsonFlag {
  readonly answer?: string;
}

/** What was found about one declaration. */
interface Checked extends Omit<SampleCheck, 'problems' | 'warnings'> {
  readonly name: string;
  readonly file: string | null;
  /** Has it no error? Warnings may be meant. */
  readonly isGood: boolean;
  readonly problems: readonly DeclarationProblem[];
}

/** A file, or a default, whose file is in this package. */
type Named = DeclaredFile | Operation;

/** Tests declarations against their samples, or one against a saved answer. */
export async function checkOperations(cli: Cli, named: readonly string[], flags: CheckFlags): Promise<void> {
  const config = await loadSettings(cli);
  const folder = config.EOD_OPERATIONS_DIR;
  const { operations: all, broken } = await allOperations(folder);
  const names = [...all.map(({ operation }) => operation), ...broken].map(({ name }) => name);

  const find = (text: string): Named => {
    const path = resolve(cli.cwd, text);
    if (existsSync(path) && statSync(path).isFile()) {
      return { name: basename(path).replace(/\.[^.]*$/, ''), path, from: 'folder' };
    }
    const isNamed = ({ operation }: (typeof all)[number]) =>
      operation.name.toLowerCase() === text.toLowerCase();
    const found = findDeclared(text, folder) ?? all.find(isNamed)?.operation;
    if (found !== undefined) return found;
    throw usageError(`there is neither a file nor an operation "${text}"${didYouMean(text, names)}`);
  };

  const check = async (one: Named, saved: Buffer | undefined): Promise<Checked> => {
    const isFile = 'path' in one;
    const others = [...builtIn, ...all.map(({ operation }) => operation)].filter(
      ({ name }) => name !== one.name,
    );
    const taken = tablesTakenBy(others);
    const { operation, problems } = isFile
      ? await readDeclared(one, taken, [...names, one.name])
      : { operation: one, problems: [] };
    const facts = { name: one.name, file: isFile ? one.path : null };
    if (operation === null) return { ...facts, isGood: false, problems, ...NOTHING_READ };
    const { problems: errors, warnings, ...read } = checkSample(operation, config.EOD_TIMEZONE, saved);
    const prefix = isFile ? `${one.path}: ` : '';
    const found: DeclarationProblem[] = [
      ...problems,
      ...errors.map((text) => ({ level: 'error' as const, text: `${prefix}${text}` })),
      ...warnings.map((text) => ({ level: 'warning' as const, text: `${prefix}${text}` })),
    ];
    return { ...facts, isGood: errors.length === 0, problems: found, ...read };
  };

  const files = named.map(find);
  if (flags.answer !== undefined && files.length > 1) {
    throw usageError('--answer is read by one declaration: name one');
  }
  const saved = flags.answer === undefined ? undefined : readNamed(cli, flags.answer);
  const checked: Checked[] = [];
  for (const one of files) checked.push(await check(one, saved));
  if (flags.json === true) printJson(cli, checked);
  else print(cli, checked.map(checkedText).join('\n\n'));
  if (checked.some(({ isGood }) => !isGood)) cli.exitCode = EXIT.failed;
}

const NOTHING_READ = { request: null, records: [], rejects: [], unknownFields: [], emptyColumns: [] };

/** So many records are printed; JSON has all. */
const MOST_SHOWN = 10;

function checkedText({ name, isGood, problems, request, records, rejects, ...fields }: Checked): string {
  const lines = records.slice(0, MOST_SHOWN).map(
    ({ table, key, filled, columns }) =>
      `  ${table}: ${Object.entries(key)
        .map(([column, value]) => `${column} ${value}`)
        .join(', ')}; ${filled} of ${plural(columns, 'other column')} filled`,
  );
  const errors = problems.filter(({ level }) => level === 'error').length;
  const verdict = isGood ? 'good' : plural(errors, 'problem');
  return [
    `${bold(name)}: ${verdict}; ${plural(records.length, 'record')} to store, ${plural(rejects.length, 'reject')}`,
    ...(request === null ? [] : [`  asks ${request}`]),
    ...lines,
    ...(records.length > MOST_SHOWN ? [`  … and ${records.length - MOST_SHOWN} more`] : []),
    ...listLine('fields that no column reads', fields.unknownFields),
    ...listLine('columns that no record fills', fields.emptyColumns),
    ...problems.map(({ level, text }) => `  ${level}: ${text}`),
  ].join('\n');
}

const listLine = (what: string, names: readonly string[]): string[] =>
  names.length === 0 ? [] : [`  ${what}: ${names.join(', ')}`];

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { clockOf, today } from '../core/clock.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { type Cli, loadSettings, logNote, print, writeOut } from './cli.ts';

export interface DraftFlags {
  readonly name?: string;
  readonly print?: boolean;
}

/** Reads a file that the user names. @throws PipelineError `usage` */
export function readNamed(cli: Cli, file: string): Buffer {
  try {
    return readFileSync(resolve(cli.cwd, file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw usageError(`there is no file ${file}`);
    throw usageError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Writes the declaration of an operation from a saved answer. */
export async function draftOperation(cli: Cli, file: string, flags: DraftFlags): Promise<void> {
  const { allOperations } = await import('../operations/registry.ts');
  const { findDeclared } = await import('../operations/declared.ts');
  const { draftDeclaration, readSavedAnswer } = await import('../extract/draft/index.ts');
  const name = flags.name ?? basename(file).replace(/\..*$/s, '');
  if (!/^[A-Z]\w{0,99}$/.test(name)) {
    throw usageError(
      `"${name}" is no name of an operation, which begins with a capital letter: say with --name how the source is asked, such as --name GetVoting`,
    );
  }
  const body = readNamed(cli, file);
  const config = await loadSettings(cli);
  const folder = resolve(cli.cwd, config.EOD_OPERATIONS_DIR ?? 'operations');
  const { operations } = await allOperations(folder);
  const other = operations.find(({ operation }) => operation.name.toLowerCase() === name.toLowerCase());
  if (other !== undefined && other.from !== 'folder') {
    throw usageError(
      other.from === 'default'
        ? `${name} comes with eod, and is loaded already`
        : `${name} is declared in the catalogue: "eod operations enable ${other.operation.name}", or give yours another name with --name`,
    );
  }
  let answer: ReturnType<typeof readSavedAnswer>;
  try {
    answer = readSavedAnswer(body);
  } catch (error) {
    throw usageError(`${file}: ${messageOf(error)}`);
  }
  const text = draftDeclaration({
    ...answer,
    name,
    known: operations.filter(({ from }) => from !== 'folder').map(({ operation }) => operation),
    timeZone: config.EOD_TIMEZONE,
    today: today(clockOf(config), config.EOD_TIMEZONE),
  });
  if (flags.print === true) {
    await writeOut(cli, text);
    return;
  }
  const path = findDeclared(name, folder)?.path ?? join(folder, `${name}.mjs`);
  const shown = relative(cli.cwd, path);
  if (existsSync(path)) {
    throw usageError(`${shown} is there already: remove it, or print the draft with --print and compare`);
  }
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, text, { flag: 'wx' });
  } catch (error) {
    throw usageError(`${shown} cannot be written: ${messageOf(error)}`);
  }
  print(cli, `wrote ${shown}: ${text.split('guessed: ').length - 1} guesses are marked`);
  logNote(cli, `correct them, then: eod operations check ${shown}`);
}

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { clockOf, today } from '../core/clock.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { draftDeclaration, readSavedResponse } from '../extract/draft/draft.ts';
import { draftFormat, linesBeforeHeader, patternOf } from '../extract/draft/draft-format.ts';
import { FORMATS_FOLDER, findDeclared, tablesTakenBy } from '../operations/declared.ts';
import { allOperations, builtIn } from '../operations/registry.ts';
import { type Cli, loadSettings, logNote, print, writeOut } from './cli.ts';
import { plural } from './output.ts';

interface DraftFlags {
  readonly name?: string;
  /** True if it is a file to import, not a response. */
  readonly file?: boolean;
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

/** The name of an operation. */
const NAME = /^[A-Z]\w{0,99}$/;

/**
 * Writes the declaration of an operation from a saved response, or of a format from a file to import.
 */
export async function draftOperation(cli: Cli, file: string, flags: DraftFlags): Promise<void> {
  const named = basename(file).replace(/\..*$/s, '');
  // Responses are saved under the names of their operations, files under those that exchanges give them, many with a day.
  const isNamed = NAME.test(named) && patternOf(named) === named;
  const isFile = flags.file ?? (flags.name === undefined && /\.csv$/i.test(file) && !isNamed);
  const name = flags.name ?? (isFile ? nameOfFormat(named) : named);
  if (!NAME.test(name)) {
    throw usageError(
      `"${name}" is not the name of an operation, which begins with a capital letter: give the name with --name, such as --name GetVoting`,
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
  let response: ReturnType<typeof readSavedResponse>;
  try {
    const before = isFile ? linesBeforeHeader(body) : 0;
    if (before > 0)
      throw usageError(`it has ${plural(before, 'line')} before its header: delete what is before it`);
    response = readSavedResponse(body);
  } catch (error) {
    throw usageError(`${file}: ${messageOf(error)}`);
  }
  const others = operations.filter((one) => one !== other);
  const input = {
    ...response,
    name,
    known: operations.filter(({ from }) => from !== 'folder').map(({ operation }) => operation),
    taken: [...tablesTakenBy([...builtIn, ...others.map(({ operation }) => operation)]).keys()],
    timeZone: config.EOD_TIMEZONE,
    today: today(clockOf(config), config.EOD_TIMEZONE),
  };
  const text = isFile ? draftFormat({ ...input, fileName: basename(file) }) : draftDeclaration(input);
  if (flags.print === true) {
    await writeOut(cli, text);
    return;
  }
  const path = isFile
    ? join(folder, FORMATS_FOLDER, `${name}.mjs`)
    : (findDeclared(name, folder)?.path ?? join(folder, `${name}.mjs`));
  const shown = relative(cli.cwd, path);
  if (existsSync(path)) {
    throw usageError(`${shown} is there already: remove it, or print the draft with --print and compare`);
  }
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { flag: 'wx' });
  } catch (error) {
    throw usageError(`${shown} cannot be written: ${messageOf(error)}`);
  }
  print(cli, `wrote ${shown}: ${text.split('guessed: ').length - 1} guesses are marked`);
  logNote(cli, `correct them, then: eod operations check ${shown}`);
}

/** `weekly_01092025` is `Weekly`. */
const nameOfFormat = (fileName: string) =>
  fileName
    .split(/[^A-Za-z]+/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');

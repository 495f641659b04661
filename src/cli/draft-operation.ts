import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { clockOf, today } from '../core/clock.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import { draftDeclaration, draftFields, readSavedResponse } from '../extract/draft/draft.ts';
import { draftFormat, linesBeforeHeader, patternOf } from '../extract/draft/draft-format.ts';
import { readKeptResponse } from '../load/state/responses/responses.ts';
import { readUnreadFields } from '../load/state/responses/schema-changes.ts';
import { FORMATS_FOLDER, findDeclared, tablesTakenBy } from '../operations/declared.ts';
import { allOperations, builtIn, namedBy, operations as used } from '../operations/registry.ts';
import { type Cli, loadSettings, logNote, print, writeOut } from './cli.ts';
import { openReadable } from './open-context.ts';
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
 * Writes the declaration of an operation from a saved response, or of a format from a file to import; of an operation
 * that is requested, instead of a file, the lines for the fields of its kept responses that no column reads.
 */
export async function draftOperation(cli: Cli, file: string, flags: DraftFlags): Promise<void> {
  if (
    flags.file !== true &&
    /^[A-Z]\w*$/i.test(file) &&
    flags.name === undefined &&
    !existsSync(resolve(cli.cwd, file))
  ) {
    await draftUnread(cli, file);
    return;
  }
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

/** Prints the lines for the fields that no column reads. @throws PipelineError `usage` */
async function draftUnread(cli: Cli, named: string): Promise<void> {
  const { operations } = await allOperations((await loadSettings(cli)).EOD_OPERATIONS_DIR);
  const declared = operations.map(({ operation }) => operation);
  // A mistake is reported before a database is opened, or created.
  if (namedBy(declared, named) === undefined) {
    const names = declared.map(({ name }) => name);
    throw usageError(`there is neither a file nor an operation "${named}"${didYouMean(named, names)}`);
  }
  const { config, db } = await openReadable(cli, 'tables');
  const operation = namedBy(used, named);
  if (operation === undefined) {
    throw usageError(`${named} is not enabled, so it has no responses: save one, and draft from its file`);
  }
  const { name } = operation;
  const { fields, responseIds } = await readUnreadFields(db.drizzle, name);
  if (fields.length === 0) {
    logNote(cli, `a column reads every field that responses of ${name} had so far`);
    return;
  }
  const bodies: Buffer[] = [];
  for (const id of responseIds) {
    const response = await readKeptResponse(db.drizzle, id);
    if (response !== null) bodies.push(response.body);
  }
  if (bodies.length === 0) {
    throw usageError(
      `no column of ${name} reads ${fields.join(', ')}, but no response with ${fields.length === 1 ? 'it' : 'them'} is kept any more`,
    );
  }
  const known = operations.filter(({ from }) => from !== 'folder').map((one) => one.operation);
  const lines = draftFields({ operation, bodies, fields, known, timeZone: config.EOD_TIMEZONE });
  print(cli, lines.join('\n'));
  logNote(cli, `add them to the declaration of ${name}, then: eod migrate, and eod replay ${name}`);
}

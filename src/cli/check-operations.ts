import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { messageOf, usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import { buildUrl } from '../extract/build-request.ts';
import { readResponse } from '../extract/read.ts';
import type { Extracted, Reject, SourceSettings } from '../extract/types.ts';
import type { DeclarationProblem } from '../operations/check-declaration.ts';
import {
  type DeclaredFile,
  FORMATS_FOLDER,
  findDeclared,
  readDeclared,
  readFormats,
  tablesTakenBy,
} from '../operations/declared.ts';
import type { Requested } from '../operations/fields.ts';
import { type Operation, tablesFilledBy } from '../operations/operation.ts';
import { allOperations, builtIn, namedBy } from '../operations/registry.ts';
import { type Row, SOURCE_AUDIT, type TableDefinition } from '../operations/table.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from './cli.ts';
import { readNamed } from './draft-operation.ts';
import { bold, plural } from './output.ts';

/** What was found about one declaration. */
interface Checked extends Omit<SampleCheck, 'problems' | 'warnings'> {
  readonly name: string;
  readonly file: string | null;
  /** True if it has no error. Warnings may be meant. */
  readonly isGood: boolean;
  readonly problems: readonly DeclarationProblem[];
}

/** What the sample of an operation is read as, and what is wrong with it. */
type SampleCheck = ReturnType<typeof checkSample>;

/** A file, or a default, whose file is in this package. */
type Named = DeclaredFile | Operation;

const SETTINGS = {
  baseUrl: 'http://source',
  accessKey: '',
  dateDialect: 'epoch',
  dateFormat: 'String',
  format: 'Json',
} as const satisfies Partial<SourceSettings>;

interface TableRow {
  readonly table: TableDefinition;
  readonly row: Row;
}

/** Tests declarations against their samples, or one against a saved response. */
export async function checkOperations(
  cli: Cli,
  named: readonly string[],
  flags: JsonFlag & { readonly response?: string },
): Promise<void> {
  const config = await loadSettings(cli);
  const folder = config.EOD_OPERATIONS_DIR;
  const { operations: all, broken } = await allOperations(folder);
  const declared = all.map(({ operation }) => operation);
  const names = [...declared, ...broken].map(({ name }) => name);

  const find = (text: string): Named => {
    const path = resolve(cli.cwd, text);
    if (existsSync(path) && statSync(path).isFile()) {
      return { name: basename(path).replace(/\.[^.]*$/, ''), path, from: 'folder' };
    }
    const found = findDeclared(text, folder) ?? namedBy(declared, text);
    if (found !== undefined) return found;
    throw usageError(`there is neither a file nor an operation "${text}"${didYouMean(text, names)}`);
  };

  const check = async (one: Named, saved: Buffer | undefined): Promise<Checked> => {
    const isFile = 'path' in one;
    if (isFile && basename(dirname(one.path)) === FORMATS_FOLDER) {
      const read = await readFormats(one.path);
      const found = 'problem' in read ? [{ level: 'error' as const, text: read.problem }] : [];
      const isGood = found.length === 0;
      return { name: one.name, file: one.path, isGood, problems: found, ...NOTHING_READ };
    }
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
  if (flags.response !== undefined && files.length > 1) {
    throw usageError('--response is read by one declaration: name one');
  }
  const saved = flags.response === undefined ? undefined : readNamed(cli, flags.response);
  const checked: Checked[] = [];
  for (const one of files) checked.push(await check(one, saved));
  if (flags.json === true) printJson(cli, checked);
  else print(cli, checked.map(checkedText).join('\n\n'));
  if (checked.some(({ isGood }) => !isGood)) cli.exitCode = EXIT.failed;
}

const NOTHING_READ = {
  /** The request whose response the sample is, without a key. */
  request: null as string | null,
  records: [] as ReturnType<typeof storedRecord>[],
  rejects: [] as Pick<Reject, 'position' | 'problems'>[],
  /** Fields of the records that nothing reads. */
  unknownFields: [] as readonly string[],
  /** Columns that no record fills, with their tables. */
  emptyColumns: [] as string[],
};

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
    ...(request === null ? [] : [`  requests ${request}`]),
    ...lines,
    ...(records.length > MOST_SHOWN ? [`  … and ${records.length - MOST_SHOWN} more`] : []),
    ...listLine('fields that no column reads', fields.unknownFields),
    ...listLine('columns that no record fills', fields.emptyColumns),
    ...problems.map(({ level, text }) => `  ${level}: ${text}`),
  ].join('\n');
}

const listLine = (what: string, names: readonly string[]): string[] =>
  names.length === 0 ? [] : [`  ${what}: ${names.join(', ')}`];

/**
 * Makes the request of an operation's sample and reads its response, as the pipeline would; needs no database (pure).
 *
 * @param saved another response, which may be of any day.
 * @returns also problems and warnings, a sentence each; a warning is about what may be meant, such as two records of one
 *   key.
 */
export function checkSample(operation: Operation, timeZone: string, saved?: Buffer) {
  const { sample } = operation;
  const requested: Requested = { ...sample.requested, calledOn: sample.requested.to };
  const problems: string[] = [];
  let request: string | null = null;
  try {
    request = buildUrl({ ...SETTINGS, timeZone }, operation, requested).replace(/^.*\?accessKey=&/, '');
  } catch (error) {
    problems.push(`sample.requested makes no request: ${messageOf(error)}`);
  }
  const what = saved === undefined ? 'sample.response' : 'the saved response';
  const text = typeof sample.response === 'string' ? sample.response : JSON.stringify(sample.response);
  const body = saved ?? Buffer.from(text ?? '');
  // A response to another request is of other days, as that of a trial address is.
  const params = saved === undefined ? requested.params : { ...requested.params, trialDay: requested.to };
  let read: Extracted;
  try {
    const response = { body, contentType: null, bytes: body.length };
    read = readResponse(operation, { ...requested, params }, response, { accessKey: '', timeZone });
  } catch (error) {
    problems.push(`${what} is not a response: ${messageOf(error)}`);
    return { ...NOTHING_READ, request, problems, warnings: [] };
  }
  for (const reject of read.rejects) {
    const found = reject.problems.map(({ path, message }) => [path, message].filter(Boolean).join(' '));
    problems.push(`${what} has a record (the ${reject.position + 1}.) that is a reject: ${found.join('; ')}`);
  }
  const rows = read.batches.flatMap(({ table, rows: some }) => [...some].map((row) => ({ table, row })));
  if (rows.length === 0) problems.push(`${what} has no record that would be stored: give one of the source`);
  return {
    request,
    records: rows.map(storedRecord),
    rejects: read.rejects.map(({ position, problems: found }) => ({ position, problems: found })),
    problems,
    warnings: [...sameKeys(rows, what), ...read.warnings.map((warning) => `${what}: ${warning}`)],
    unknownFields: read.unknownFields,
    emptyColumns: emptyColumns(operation, rows),
  };
}

const keyOf = ({ table, row }: TableRow): Row =>
  Object.fromEntries(table.key.map((column) => [column, row[column] ?? null]));

/** The columns besides the key and those that every table has. */
const ownColumns = ({ fields, key }: TableDefinition): string[] =>
  fields
    .map(({ column }) => column)
    .filter((column) => !key.includes(column) && !(SOURCE_AUDIT as readonly string[]).includes(column));

const isFilled = (row: Row, column: string): boolean => (row[column] ?? null) !== null;

/**
 * A record that would be stored: how many columns have a value, and how many could, without those that the key or every
 * table has.
 */
function storedRecord({ table, row }: TableRow) {
  const columns = ownColumns(table);
  return {
    table: `market.${table.name}`,
    key: keyOf({ table, row }),
    filled: columns.filter((column) => isFilled(row, column)).length,
    columns: columns.length,
  };
}

/** Records of one key are one row. */
function sameKeys(rows: readonly TableRow[], what: string): string[] {
  const counts = new Map<string, number>();
  for (const one of rows) {
    const key = Object.values(keyOf(one)).join(', ');
    const name = `market.${one.table.name} (${key})`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > 1)
    .map(
      ([name, count]) =>
        `${what} has ${count} records of one key, of which one row remains: ${name}; add to the key what distinguishes them, or occurrence(…)`,
    );
}

function emptyColumns(operation: Operation, rows: readonly TableRow[]): string[] {
  return tablesFilledBy(operation).flatMap((table) => {
    const own = rows.filter((one) => one.table === table);
    if (own.length === 0) return [];
    const empty = ownColumns(table).filter((column) => !own.some(({ row }) => isFilled(row, column)));
    return empty.map((column) => `market.${table.name}.${column}`);
  });
}

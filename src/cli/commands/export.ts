import { existsSync, realpathSync, rmSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { messageOf, usageError } from '../../core/errors.ts';
import { exportPartitions } from '../../export/export-partitions.ts';
import { exportTable, type Format } from '../../export/export-table.ts';
import { checkNamesFiles } from '../../export/relation.ts';
import { type Cli, type JsonFlag, logNote, print, printJson } from '../cli.ts';
import { openForUser } from '../open-context.ts';
import { FORMATS, parseOpenRange, type RangeFlags } from '../options.ts';
import { count, plural } from '../output.ts';
import { refuseCodes } from './events-command.ts';

export async function exportTables(cli: Cli, tables: readonly string[], flags: ExportFlags): Promise<void> {
  const ending = FORMATS.find((name) => flags.out?.endsWith(`.${name}`) === true);
  const format = flags.format ?? ending ?? 'parquet';
  if (flags.decimals === true && format !== 'parquet') throw usageError('--decimals applies to Parquet only');
  if (flags.out === '-')
    throw usageError('--out takes a file or a folder; "eod query --csv" prints to stdout');
  const [table, ...more] = tables;
  if (table === undefined) throw usageError('name the table or view to export');
  if (flags.partition !== undefined)
    return exportFolders(cli, tables, { ...flags, format, by: flags.partition });
  if (more.length > 0)
    throw usageError('one table or view is exported to a file; several with --partition year --out DIR');
  return exportRows(cli, table, format, flags);
}

async function exportRows(cli: Cli, table: string, format: Format, flags: ExportFlags): Promise<void> {
  const { from, to } = parseOpenRange(flags);
  const symbols = listed('--symbol', flags.symbol);
  const series = listed('--series', flags.series);
  const fileFor = await outputFile(cli, flags.out, format);
  const { db } = await openForUser(cli, 'tables');
  await refuseCodes({ db }, symbols ?? []);
  const onPartial = await removedAtExit(cli);
  const progress = progressLine(cli, table);
  const exported = await exportTable(
    db,
    {
      table,
      format,
      from,
      to,
      symbols,
      series,
      exchanges: flags.exchange,
      doubles: flags.decimals !== true,
      fileFor,
      onPartial,
    },
    { timeoutMs: 0, signal: cli.life.signal },
    progress.add,
  ).finally(progress.end);
  for (const notice of exported.notices) logNote(cli, `eod: ${notice}`);
  if (exported.rows === 0) logNote(cli, `eod: no row of ${exported.table} ${filterText(flags)}`);
  if (flags.json === true) return printJson(cli, exported);
  print(cli, exported.files.map(fileText).join('\n'));
}

const fileText = ({ file, rows, bytes }: Awaited<ReturnType<typeof exportTable>>['files'][number]) =>
  `${file}  ${plural(rows, 'row')}, ${sizeText(bytes)}`;

/** Returns a function that takes the names of temporary files, which are removed if the process ends before it does so. */
async function removedAtExit({ life }: Cli): Promise<(file: string) => void> {
  const partials = await life.open(
    async () => new Set<string>(),
    async () => undefined,
    (files) => {
      for (const file of files) rmSync(file, { force: true });
    },
  );
  return (file) => void partials.add(file);
}

/** `eod export --partition`: brings a folder of each table or view up to date. */
async function exportFolders(
  cli: Cli,
  tables: readonly string[],
  { format, by, ...flags }: ExportFlags & { readonly format: Format; readonly by: 'month' | 'year' },
): Promise<void> {
  for (const name of ['from', 'to', 'symbol', 'series', 'exchange'] as const)
    if (flags[name] !== undefined)
      throw usageError(`--${name} cannot be used with --partition, whose files have all rows`);
  if (flags.out === undefined)
    throw usageError('--partition needs --out DIR, the folder that it keeps up to date');
  const folder = await usableFolder(cli, resolve(cli.cwd, flags.out));
  const { db } = await openForUser(cli, 'tables');
  const onPartial = await removedAtExit(cli);
  const progress = progressLine(cli, tables.join(', '));
  const exported = await exportPartitions(
    db,
    { tables, folder, format, by, doubles: flags.decimals !== true, onBytes: progress.add, onPartial },
    { timeoutMs: 0, signal: cli.life.signal },
  ).finally(progress.end);
  for (const notice of exported.tables.flatMap(({ notices }) => notices)) logNote(cli, `eod: ${notice}`);
  if (flags.json === true) return printJson(cli, exported);
  for (const { folder: path, rows, files, written, removed } of exported.tables) {
    for (const partition of written) print(cli, fileText({ ...partition, file: join(path, partition.file) }));
    for (const file of removed) print(cli, `${join(path, file)}  removed`);
    print(
      cli,
      `${path}  ${plural(rows, 'row')} in ${plural(files, 'file')}, ${count(written.length)} written`,
    );
  }
}

/** The names that a flag lists, in upper case; undefined if it is not given. */
function listed(flag: string, text: string | undefined): string[] | undefined {
  const names = text
    ?.split(',')
    .map((name) => name.trim().toUpperCase())
    .filter((name) => name !== '');
  if (names?.length === 0) throw usageError(`${flag} names no ${flag.slice(2)}`);
  return names;
}

/** The filters of an export that found no row, as the end of the sentence that says so. */
function filterText(flags: ExportFlags): string {
  const filters = (['symbol', 'series', 'exchange', 'from', 'to'] as const).flatMap((name) =>
    flags[name] === undefined ? [] : [`--${name} ${flags[name]}`],
  );
  return filters.length === 0 ? 'is stored' : `matches ${filters.join(' ')}`;
}

/** Makes a folder unless there is one. */
async function usableFolder({ cwd }: Cli, folder: string): Promise<string> {
  // Outside, it is more often a mistake in the path than a wish.
  if (isOutside(cwd, folder) && !existsSync(folder))
    throw usageError(`--out: there is no folder ${folder}; outside the working folder, make it first`);
  await mkdir(folder, { recursive: true }).catch((error) => {
    throw usageError(`--out: ${folder} cannot be used: ${messageOf(error)}`);
  });
  return folder;
}

/** Returns a function that names the file. */
async function outputFile(
  cli: Cli,
  out: string | undefined,
  format: Format,
): Promise<(name: string) => string> {
  const path = resolve(cli.cwd, out ?? '.');
  const isFolder = out?.endsWith('/') === true || (existsSync(path) && statSync(path).isDirectory());
  await usableFolder(cli, isFolder ? path : dirname(path));
  if (!isFolder) return () => path;
  return (name) => {
    checkNamesFiles(name, 'name one with --out FILE');
    return join(path, `${name}.${format}`);
  };
}

/** Whether a folder lies outside of another one, by its path or behind a link. */
function isOutside(cwd: string, folder: string): boolean {
  let there = folder;
  while (!existsSync(there)) there = dirname(there);
  return relative(realpathSync(cwd), realpathSync(there)).split(sep)[0] === '..';
}

interface ExportFlags extends RangeFlags, JsonFlag {
  readonly symbol?: string;
  readonly series?: string;
  readonly exchange?: readonly string[];
  readonly format?: (typeof FORMATS)[number];
  readonly out?: string;
  readonly partition?: 'month' | 'year';
  readonly decimals?: boolean;
}

const sizeText = (bytes: number) => (bytes < 1e6 ? `${count(bytes / 1e3)} kB` : `${count(bytes / 1e6)} MB`);

const PROGRESS_EVERY_MS = 500;

/** Shows on a terminal how much has been read; how much there is in all is not known before the end. */
function progressLine({ stderr, verbosity }: Cli, table: string) {
  let bytes = 0;
  let next = Date.now() + PROGRESS_EVERY_MS;
  let isShown = false;
  return {
    add(more: number) {
      bytes += more;
      if (stderr.isTTY !== true || verbosity === 'nothing' || Date.now() < next) return;
      next = Date.now() + PROGRESS_EVERY_MS;
      isShown = true;
      stderr.write(`\r${table}: ${sizeText(bytes)} read`);
    },
    end() {
      if (isShown) stderr.write('\n');
    },
  };
}

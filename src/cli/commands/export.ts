import { existsSync, realpathSync, rmSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { messageOf, usageError } from '../../core/errors.ts';
import { parseChoice } from '../../core/input.ts';
import { exportTable } from '../../load/export/export-table.ts';
import { checkNamesFiles } from '../../load/export/relation.ts';
import { progressLine, sizeText } from '../bytes-read.ts';
import { type Cli, logNote, print, printJson } from '../cli.ts';
import { type ExportFlags, exportLake } from '../export-lake.ts';
import { openForUser } from '../open-context.ts';
import { FORMATS, parseExchanges, parseOpenRange } from '../options.ts';
import { plural } from '../output.ts';

const FLAG_NAMES = { all: '--all', onChange: '--on-change' } as const;

export async function exportTables(cli: Cli, tables: readonly string[], flags: ExportFlags): Promise<void> {
  if (flags.lake !== undefined) return exportLake(cli, tables, flags.lake, flags);
  for (const name of ['all', 'onChange'] as const)
    if (flags[name] !== undefined) throw usageError(`${FLAG_NAMES[name]} needs --lake DIR`);
  const [table, ...more] = tables;
  if (table === undefined) throw usageError('name the table or view to export');
  if (more.length > 0)
    throw usageError('one table or view can be exported at a time, several with --lake DIR');
  return exportRows(cli, table, flags);
}

async function exportRows(cli: Cli, table: string, flags: ExportFlags): Promise<void> {
  const { from, to } = parseOpenRange(flags);
  const exchanges = parseExchanges(flags.exchange);
  const symbols = listed('--symbol', flags.symbol);
  const series = listed('--series', flags.series);
  const ending = FORMATS.find((one) => flags.out?.endsWith(`.${one}`) === true);
  const format =
    flags.format === undefined ? (ending ?? 'parquet') : parseChoice('--format', flags.format, FORMATS);
  const byYear = flags.partition !== undefined;
  if (byYear) parseChoice('--partition', flags.partition ?? '', ['year']);
  if (flags.decimals === true && format !== 'parquet') throw usageError('--decimals is for Parquet only');
  if (flags.out === '-')
    throw usageError('--out takes a file or a folder; "eod query --csv" prints to stdout');
  const fileFor = await outputFile(cli, flags.out, byYear, format);

  const { life } = cli;
  const { db } = await openForUser(cli, 'tables');
  const partials = await life.open(
    async () => [] as string[],
    async () => undefined,
    (files) => {
      for (const file of files) rmSync(file, { force: true });
    },
  );
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
      exchanges,
      byYear,
      doubles: flags.decimals !== true,
      fileFor,
      onPartial: (file) => void partials.push(file),
    },
    { timeoutMs: 0, signal: life.signal },
    progress.add,
  ).finally(progress.end);
  for (const notice of exported.notices) logNote(cli, `eod: ${notice}`);
  if (exported.rows === 0) logNote(cli, `eod: no row of ${exported.table} ${filterText(flags)}`);
  if (flags.json === true) return printJson(cli, exported);
  const lines = exported.files.map(
    ({ file, rows, bytes }) => `${file}  ${plural(rows, 'row')}, ${sizeText(bytes)}`,
  );
  print(cli, lines.length === 0 ? `${exported.table}: no such rows, so no file` : lines.join('\n'));
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
  const given = (['symbol', 'series', 'exchange', 'from', 'to'] as const).flatMap((name) =>
    flags[name] === undefined ? [] : [`--${name} ${flags[name]}`],
  );
  return given.length === 0 ? 'is stored' : `matches ${given.join(' ')}`;
}

/** Returns a function that names the file for a year, or for all rows where the year is null. */
async function outputFile(
  { cwd }: Cli,
  out: string | undefined,
  byYear: boolean,
  format: string,
): Promise<(name: string, year: number | null) => string> {
  const path = resolve(cwd, out ?? '.');
  const isFolder =
    byYear || out?.endsWith('/') === true || (existsSync(path) && statSync(path).isDirectory());
  const folder = isFolder ? path : dirname(path);
  // Outside, it is more often a mistake in the path than a wish.
  if (isOutside(cwd, folder) && !existsSync(folder))
    throw usageError(`--out: there is no folder ${folder}; outside the working folder, make it first`);
  await mkdir(folder, { recursive: true }).catch((error) => {
    throw usageError(`--out: ${path} cannot be used: ${messageOf(error)}`);
  });
  if (!isFolder) return () => path;
  return (name, year) => {
    checkNamesFiles(name, byYear ? 'export a view of another name' : 'name one with --out FILE');
    return join(path, `${name}${year === null ? '' : `_${year}`}.${format}`);
  };
}

/** Whether a folder lies outside of another one, by its path or behind a link. */
function isOutside(cwd: string, folder: string): boolean {
  let there = folder;
  while (!existsSync(there)) there = dirname(there);
  return relative(realpathSync(cwd), realpathSync(there)).split(sep)[0] === '..';
}

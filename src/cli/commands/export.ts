import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync, rmSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { environmentOfCommand } from '../../core/environment.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import { exportTable } from '../../load/export/export-table.ts';
import { type LakeResult, writeLake } from '../../load/export/lake.ts';
import {
  filesOfTables,
  HANDLED,
  readHandled,
  readManifest,
  writeWhole,
} from '../../load/export/lake-manifest.ts';
import { checkNamesFiles } from '../../load/export/relation.ts';
import { type Cli, EXIT, type JsonFlag, logNote, logStderr, print, printJson } from '../cli.ts';
import { openForUser } from '../open-context.ts';
import { FORMATS, parseOpenRange, type RangeFlags } from '../options.ts';
import { count, plural } from '../output.ts';
import { refuseCodes } from './events-command.ts';

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
  const symbols = listed('--symbol', flags.symbol);
  const series = listed('--series', flags.series);
  const ending = FORMATS.find((one) => flags.out?.endsWith(`.${one}`) === true);
  const format = flags.format ?? ending ?? 'parquet';
  const byYear = flags.partition !== undefined;
  if (flags.partition === 'month') throw usageError('--partition month needs --lake DIR');
  if (flags.decimals === true && format !== 'parquet') throw usageError('--decimals applies to Parquet only');
  if (flags.out === '-')
    throw usageError('--out takes a file or a folder; "eod query --csv" prints to stdout');
  const fileFor = await outputFile(cli, flags.out, byYear, format);

  const { life } = cli;
  const { db } = await openForUser(cli, 'tables');
  await refuseCodes({ db }, symbols ?? []);
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
      exchanges: flags.exchange,
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

interface ExportFlags extends RangeFlags, JsonFlag {
  readonly symbol?: string;
  readonly series?: string;
  readonly exchange?: readonly string[];
  readonly format?: (typeof FORMATS)[number];
  readonly out?: string;
  readonly partition?: 'month' | 'year';
  readonly decimals?: boolean;
  readonly lake?: string;
  readonly all?: boolean;
  readonly onChange?: string;
}

/** Flags that choose rows or a form, which do not apply to a lake. */
const OF_FILES = ['from', 'to', 'symbol', 'series', 'exchange', 'format', 'out'] as const;

/** `eod export --lake DIR`: brings the lake up to date, and runs a command unless it has succeeded with these files. */
async function exportLake(
  cli: Cli,
  tables: readonly string[],
  folder: string,
  flags: ExportFlags,
): Promise<void> {
  for (const name of OF_FILES)
    if (flags[name] !== undefined)
      throw usageError(`--${name} cannot be used with --lake, which has all rows`);
  if (flags.all === true && tables.length > 0) throw usageError('name tables, or give --all, but not both');
  if (flags.all !== true && tables.length === 0)
    throw usageError('name the tables and views of the lake, or give --all');
  if (folder.trim() === '') throw usageError('--lake needs the path of a folder');
  if (flags.onChange?.trim() === '') throw usageError('--on-change needs a command');
  const { db } = await openForUser(cli, 'tables');
  const progress = progressLine(cli, 'lake');
  const result = await writeLake(
    db,
    {
      folder: resolve(cli.cwd, folder),
      tables: flags.all === true ? null : tables,
      by: flags.partition,
      doubles: flags.decimals !== true,
    },
    { timeoutMs: 0, signal: cli.life.signal },
    progress.add,
  ).finally(progress.end);
  for (const notice of result.notices) logNote(cli, `eod: ${notice}`);
  if (flags.json === true) printJson(cli, result);
  else print(cli, resultLines(result).join('\n'));
  if (flags.onChange !== undefined) await onChange(cli, flags.onChange, result);
}

function resultLines({ tables, state, isChanged }: LakeResult): string[] {
  if (!isChanged) return [`state ${state}: nothing has changed`];
  const lines = tables
    .filter(({ written, replaced }) => written + replaced > 0)
    .map(({ table, files, rows, written, writtenRows }) =>
      files === 0
        ? `${table}  is not part of the lake any more`
        : `${table}  ${written} of ${plural(files, 'file')} written with ${count(writtenRows)} of ${plural(rows, 'row')}`,
    );
  return [...lines, `state ${state}`];
}

/** Runs the command of --on-change for the tables whose files it has not succeeded with. */
async function onChange(cli: Cli, command: string, { lake, manifest, state }: LakeResult): Promise<void> {
  const handled = join(lake, HANDLED);
  const found = readManifest(lake);
  const [before, now] = [readHandled(handled), found === null ? {} : filesOfTables(found)];
  const changed = Object.keys({ ...before, ...now }).filter((table) => before[table] !== now[table]);
  if (changed.length === 0) return;
  const { env, cwd, life } = cli;
  const kill = (child: ChildProcess, signal: NodeJS.Signals) => {
    const { pid, exitCode, signalCode } = child;
    // The shell and what it has started are a group of processes.
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
  };
  const child = await life.open(
    async () =>
      spawn(command, {
        cwd,
        shell: true,
        detached: true,
        stdio: ['ignore', 2, 2],
        env: {
          ...environmentOfCommand(env),
          EOD_LAKE: lake,
          EOD_LAKE_MANIFEST: manifest,
          EOD_LAKE_STATE: String(state),
          EOD_LAKE_TABLES: changed.sort().join(' '),
        },
      }),
    undefined,
    (child) => kill(child, 'SIGKILL'),
  );
  const stop = () => kill(child, 'SIGTERM');
  life.signal.addEventListener('abort', stop);
  const [code, signal] = await (once(child, 'close') as Promise<[number | null, string | null]>);
  life.signal.removeEventListener('abort', stop);
  if (code === 0) return writeWhole(handled, JSON.stringify(now));
  const how = signal === null ? `exit code ${code}` : signal;
  cli.exitCode = life.cutShort() ?? EXIT.failed;
  logStderr(
    cli,
    `eod: the lake has state ${state}, but the command of --on-change ended with ${how}; the next export with --on-change runs it again`,
  );
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

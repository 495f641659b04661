import { existsSync, rmSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { exampleDays } from '../../core/clock.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import type { exportTable, Format } from '../../export/export-table.ts';
import { type Cli, logNote, print, printJson } from '../cli.ts';
import { defineCommand, type OptionValues } from '../define-command.ts';
import {
  exchangeOption,
  flag,
  onlyDays,
  parseOpenRange,
  several,
  splitList,
  text,
  word,
} from '../options.ts';
import { count, plural } from '../output.ts';
import { refuseCodes } from './events.ts';

/** Formats of exported files; each is also the ending of a file's name. */
const FORMATS = ['parquet', 'csv', 'ndjson'] as const;

const options = {
  ...onlyDays('days'),
  symbol: text('<list>', 'only rows with these symbols, e.g. INFY,TCS'),
  series: text('<list>', 'only rows of these series, e.g. EQ,BE'),
  exchange: exchangeOption,
  format: word(
    '<format>',
    `${FORMATS.join(', ')} (default: from the ending of --out, else parquet)`,
    FORMATS,
  ),
  out: text('<path>', 'the file, or the folder to write it to (default: this folder)'),
  partition: word(
    '<by>',
    'year or month: a file for each, DIR/NAME/2026.parquet, below the folder of --out; run again, it writes only those whose rows have changed since',
    ['month', 'year'],
  ),
  decimals: flag(
    'write decimal numbers to Parquet as DECIMAL with all of their digits (default: as DOUBLE, which keeps 15)',
  ),
};

type ExportValues = OptionValues<typeof options> & { readonly json: boolean };

export default defineCommand({
  path: 'export',
  group: 'Look',
  summary:
    'Write a table or view to a file of Parquet, CSV or JSON lines, or keep a folder of such files up to date, for pandas, DuckDB and the like.',
  args: {
    tables: several(
      'a table or view, in the schema market unless another is named; several with --partition',
    ),
  },
  options,
  examples: [
    'eod export prices_adjusted',
    `eod export bhavcopy_cm --exchange NSE --from ${exampleDays().from} --out days.csv`,
    'eod export bhavcopy_cm prices_adjusted --partition month --out lake/',
  ],
  async run(cli, { tables, ...values }) {
    const ending = FORMATS.find((name) => values.out?.endsWith(`.${name}`) === true);
    const format = values.format ?? ending ?? 'parquet';
    if (values.decimals && format !== 'parquet') throw usageError('--decimals applies to Parquet only');
    if (values.out === '-')
      throw usageError('--out takes a file or a folder; "eod query --csv" prints to stdout');
    const [table, ...more] = tables;
    if (table === undefined) throw usageError('name the table or view to export');
    if (values.partition !== undefined)
      return exportFolders(cli, tables, { ...values, format, by: values.partition });
    if (more.length > 0)
      throw usageError('one table or view is exported to a file; several with --partition year --out DIR');
    return exportRows(cli, table, format, values);
  },
});

async function exportRows(cli: Cli, table: string, format: Format, values: ExportValues): Promise<void> {
  const { exportTable } = await import('../../export/export-table.ts');
  const { openForUser } = await import('../open-readable.ts');
  const { from, to } = parseOpenRange(values);
  const symbols = listed('--symbol', values.symbol);
  const series = listed('--series', values.series);
  const fileFor = await outputFile(cli, values.out, format);
  const { db } = await openForUser(cli, 'tables');
  await refuseCodes({ db }, symbols ?? []);
  const onPartial = await removedAtExit(cli);
  const exported = await exportTable(
    db,
    {
      table,
      format,
      from,
      to,
      symbols,
      series,
      exchanges: values.exchange,
      doubles: !values.decimals,
      fileFor,
      onPartial,
    },
    { timeoutMs: 0, signal: cli.life.signal },
  );
  for (const notice of exported.notices) logNote(cli, `eod: ${notice}`);
  if (exported.rows === 0) logNote(cli, `eod: no row of ${exported.table} ${filterText(values)}`);
  if (values.json) return printJson(cli, exported);
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
  { format, by, ...values }: ExportValues & { readonly format: Format; readonly by: 'month' | 'year' },
): Promise<void> {
  const { exportPartitions } = await import('../../export/export-partitions.ts');
  const { openForUser } = await import('../open-readable.ts');
  for (const name of ['from', 'to', 'symbol', 'series', 'exchange'] as const)
    if (values[name] !== undefined)
      throw usageError(`--${name} cannot be used with --partition, whose files have all rows`);
  if (values.out === undefined)
    throw usageError('--partition needs --out DIR, the folder that it keeps up to date');
  const folder = await usableFolder(resolve(cli.cwd, values.out));
  const { db } = await openForUser(cli, 'tables');
  const onPartial = await removedAtExit(cli);
  const exported = await exportPartitions(
    db,
    { tables, folder, format, by, doubles: !values.decimals, onPartial },
    { timeoutMs: 0, signal: cli.life.signal },
  );
  for (const notice of exported.tables.flatMap(({ notices }) => notices)) logNote(cli, `eod: ${notice}`);
  if (values.json) return printJson(cli, exported);
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
  if (text === undefined) return undefined;
  const names = splitList(text.toUpperCase());
  if (names.length === 0) throw usageError(`${flag} names no ${flag.slice(2)}`);
  return names;
}

/** The filters of an export that found no row, as the end of the sentence that says so. */
function filterText(values: ExportValues): string {
  const filters = (['symbol', 'series', 'exchange', 'from', 'to'] as const).flatMap((name) =>
    values[name] === undefined ? [] : [`--${name} ${values[name]}`],
  );
  return filters.length === 0 ? 'is stored' : `matches ${filters.join(' ')}`;
}

/** Makes a folder unless there is one. */
async function usableFolder(folder: string): Promise<string> {
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
  const { checkNamesFiles } = await import('../../export/relation.ts');
  const path = resolve(cli.cwd, out ?? '.');
  const isFolder = out?.endsWith('/') === true || (existsSync(path) && statSync(path).isDirectory());
  await usableFolder(isFolder ? path : dirname(path));
  if (!isFolder) return () => path;
  return (name) => {
    checkNamesFiles(name, 'name one with --out FILE');
    return join(path, `${name}.${format}`);
  };
}

const sizeText = (bytes: number) => (bytes < 1e6 ? `${count(bytes / 1e3)} kB` : `${count(bytes / 1e6)} MB`);

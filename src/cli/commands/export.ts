import { existsSync, rmSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { messageOf, usageError } from '../../core/errors.ts';
import { parseChoice } from '../../core/input.ts';
import { type Cli, type Commands, type JsonFlag, logNote, print, printJson } from '../cli.ts';
import {
  addRange,
  exampleDays,
  examples,
  exchangeOption,
  jsonOption,
  parseExchanges,
  parseOpenRange,
  type RangeFlags,
} from '../options.ts';
import { count, plural } from '../output.ts';

interface Flags extends RangeFlags, JsonFlag {
  readonly symbol?: string;
  readonly exchange?: string;
  readonly format?: string;
  readonly out?: string;
  readonly partition?: string;
  readonly doubles?: boolean;
}

/** File formats; each is also the ending of a file's name. */
export const FORMATS = ['parquet', 'csv', 'ndjson'] as const;

export const commands: Commands = {
  export(command, cli) {
    const { from } = exampleDays();
    command.argument('<table>', 'a table or view, in the schema market unless another is named');
    addRange(command, {
      from: 'only days from this one on, YYYY-MM-DD',
      to: 'only days up to this one, YYYY-MM-DD',
    })
      .option('--symbol <list>', 'only rows with these symbols, e.g. INFY,TCS')
      .addOption(exchangeOption())
      .option('--format <format>', `${FORMATS.join(', ')} (default: from the ending of --out, else parquet)`)
      .option('--out <path>', 'the file, or the folder to write it to (default: this folder)')
      .option('--partition <by>', 'year: one file a year, TABLE_YEAR, in the folder of --out')
      .option('--doubles', 'write decimal numbers to Parquet as DOUBLE, which keeps at least 15 digits')
      .addOption(jsonOption())
      .addHelpText(
        'after',
        examples(
          'eod export prices_adjusted',
          `eod export bhavcopy_cm --exchange NSE --from ${from} --out days.csv`,
          'eod export bhavcopy_cm --partition year --out archive/',
        ),
      )
      .action((table: string, flags: Flags) => exportRows(cli, table, flags));
  },
};

async function exportRows(cli: Cli, table: string, flags: Flags): Promise<void> {
  const { from, to } = parseOpenRange(flags);
  const exchanges = parseExchanges(flags.exchange);
  const symbols = flags.symbol
    ?.split(',')
    .map((symbol) => symbol.trim().toUpperCase())
    .filter((symbol) => symbol !== '');
  if (symbols?.length === 0) throw usageError('--symbol names no symbol');
  const ending = FORMATS.find((one) => flags.out?.endsWith(`.${one}`) === true);
  const format =
    flags.format === undefined ? (ending ?? 'parquet') : parseChoice('--format', flags.format, FORMATS);
  const byYear = flags.partition !== undefined;
  if (byYear) parseChoice('--partition', flags.partition ?? '', ['year']);
  if (flags.doubles === true && format !== 'parquet') throw usageError('--doubles is for Parquet only');
  if (flags.out === '-')
    throw usageError('--out takes a file or a folder; "eod query --csv" prints to stdout');
  const fileFor = await outputFile(cli, flags.out, byYear, format);

  const { openForUser } = await import('../open-context.ts');
  const { exportTable } = await import('../../load/export/export-table.ts');
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
      exchanges,
      byYear,
      doubles: flags.doubles === true,
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

/** The filters of an export that found no row, as the end of the sentence that says so. */
function filterText(flags: Flags): string {
  const given = (['symbol', 'exchange', 'from', 'to'] as const).flatMap((name) =>
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
  await mkdir(isFolder ? path : dirname(path), { recursive: true }).catch((error) => {
    throw usageError(`--out: ${path} cannot be used: ${messageOf(error)}`);
  });
  if (!isFolder) return () => path;
  return (name, year) => join(path, `${name}${year === null ? '' : `_${year}`}.${format}`);
}

const sizeText = (bytes: number) => (bytes < 1e6 ? `${count(bytes / 1e3)} kB` : `${count(bytes / 1e6)} MB`);

const PROGRESS_EVERY_MS = 500;

/** Shows on a terminal how much has been read; how much there is in all is not known before the end. */
function progressLine({ stderr, told }: Cli, table: string) {
  let bytes = 0;
  let next = Date.now() + PROGRESS_EVERY_MS;
  let isShown = false;
  return {
    add(more: number) {
      bytes += more;
      if (stderr.isTTY !== true || told === 'nothing' || Date.now() < next) return;
      next = Date.now() + PROGRESS_EVERY_MS;
      isShown = true;
      stderr.write(`\r${table}: ${sizeText(bytes)} read`);
    },
    end() {
      if (isShown) stderr.write('\n');
    },
  };
}

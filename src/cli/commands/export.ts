import { existsSync, rmSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { messageOf, usageError } from '../../core/errors.ts';
import { parseChoice } from '../../core/input.ts';
import { type Cli, type Commands, type JsonFlag, logStderr, print, printJson } from '../cli.ts';
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

/** Forms of files, each the ending of its name. */
export const FORMATS = ['parquet', 'csv', 'ndjson'] as const;

export const commands: Commands = {
  export(command, cli) {
    const { from } = exampleDays();
    command.argument('<table>', 'a table or view, of the schema market unless it says another');
    addRange(command, {
      from: 'days from this one on, YYYY-MM-DD',
      to: 'days up to this one, YYYY-MM-DD',
    })
      .option('--symbol <list>', 'only these symbols, as the rows have them, e.g. INFY,TCS')
      .addOption(exchangeOption())
      .option('--format <format>', `${FORMATS.join(', ')} (default: by the name of the file; else parquet)`)
      .option('--out <path>', 'the file, or a folder for it (default: this folder)')
      .option('--partition <by>', 'year: a file for each, TABLE_YEAR, in the folder')
      .option('--doubles', 'in Parquet decimal numbers as DOUBLE, rounded to 15 digits or more')
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
  const symbols = flags.symbol
    ?.split(',')
    .map((symbol) => symbol.trim().toUpperCase())
    .filter((symbol) => symbol !== '');
  if (symbols?.length === 0) throw usageError('--symbol: it names no symbol');
  const ending = FORMATS.find((one) => flags.out?.endsWith(`.${one}`) === true);
  const format =
    flags.format === undefined ? (ending ?? 'parquet') : parseChoice('--format', flags.format, FORMATS);
  const byYear = flags.partition !== undefined;
  if (byYear) parseChoice('--partition', flags.partition ?? '', ['year']);
  if (flags.doubles === true && format !== 'parquet') throw usageError('--doubles is for Parquet alone');
  if (flags.out === '-') throw usageError('--out: a file or a folder; "eod query --csv" prints to stdout');
  const fileFor = await placeFor(cli, flags.out, byYear, format);

  const { openReadable } = await import('../open-context.ts');
  const { exportTable } = await import('../../load/export/export-table.ts');
  const { life } = cli;
  const { db } = await openReadable(cli);
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
      exchanges: parseExchanges(flags.exchange),
      byYear,
      doubles: flags.doubles === true,
      fileFor,
      onPartial: (file) => void partials.push(file),
    },
    { timeoutMs: 0, signal: life.signal },
    progress.add,
  ).finally(progress.end);
  for (const notice of exported.notices) logStderr(cli, `eod: ${notice}`);
  if (exported.rows === 0) logStderr(cli, `eod: no row of ${exported.table} ${chosenBy(flags)}`);
  if (flags.json === true) return printJson(cli, exported);
  const lines = exported.files.map(
    ({ file, rows, bytes }) => `${file}  ${plural(rows, 'row')}, ${sizeText(bytes)}`,
  );
  print(cli, lines.length === 0 ? `${exported.table}: no such rows, so no file` : lines.join('\n'));
}

/** What an export without a row was asked for, to end the sentence that says so. */
function chosenBy(flags: Flags): string {
  const given = (['symbol', 'exchange', 'from', 'to'] as const).flatMap((name) =>
    flags[name] === undefined ? [] : [`--${name} ${flags[name]}`],
  );
  return given.length === 0 ? 'is stored' : `matches ${given.join(' ')}`;
}

/** The file for the rows of a year, or of all. */
async function placeFor(
  { cwd }: Cli,
  out: string | undefined,
  byYear: boolean,
  format: string,
): Promise<(name: string, year: number | null) => string> {
  const path = resolve(cwd, out ?? '.');
  const isFolder =
    byYear || out?.endsWith('/') === true || (existsSync(path) && statSync(path).isDirectory());
  await mkdir(isFolder ? path : dirname(path), { recursive: true }).catch((error) => {
    throw usageError(`--out: ${messageOf(error)}`);
  });
  if (!isFolder) return () => path;
  return (name, year) => join(path, `${name}${year === null ? '' : `_${year}`}.${format}`);
}

const sizeText = (bytes: number) => (bytes < 1e6 ? `${count(bytes / 1e3)} kB` : `${count(bytes / 1e6)} MB`);

const EVERY_MS = 500;

/** On a terminal, how much has come so far; what there is in all nobody knows before the end. */
function progressLine({ stderr }: Cli, table: string) {
  let bytes = 0;
  let next = Date.now() + EVERY_MS;
  let isShown = false;
  return {
    add(more: number) {
      bytes += more;
      if (stderr.isTTY !== true || Date.now() < next) return;
      next = Date.now() + EVERY_MS;
      isShown = true;
      stderr.write(`\r${table}: ${sizeText(bytes)} read`);
    },
    end() {
      if (isShown) stderr.write('\n');
    },
  };
}

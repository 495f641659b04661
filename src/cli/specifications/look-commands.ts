import { Argument, Option } from 'commander';
import { nearest } from '../../core/input.ts';
import { SHORT_EXAMPLES } from '../../load/examples.ts';
import {
  detachOption,
  dryRunOption,
  exampleDays,
  exchangeOption,
  FORMATS,
  idArgument,
  integerOption,
  LISTED,
  limitOption,
  parseDuration,
  rangeOptions,
  wordOption,
  yesOption,
} from '../options.ts';
import { numbered, type Specification } from '../specification.ts';

const { from, to } = exampleDays();

/** What says where to look for gaps; `gapScope` reads it. */
const gapScope: Pick<Specification, 'args'> & { readonly options: readonly Option[] } = {
  args: [new Argument('[operations...]', 'only these operations (default: all)')],
  options: [
    ...rangeOptions({
      from: 'first day (default: the first day loaded, for each operation and exchange)',
      to: 'last day (default: the last published trading day; without requests, the last imported)',
    }),
    exchangeOption(),
  ],
};

const runId = idArgument('run', 'the number of the run');

/** SQL that begins with a comment (`-- why`) must not be taken for an option, which has no white space in its name. */
const asOperand = (arg: string) => (/^--[^\s=]*\s/.test(arg) ? ` ${arg}` : arg);

/** Commands that show what is there. */
export const lookCommands: readonly Specification[] = [
  {
    name: 'status',
    summary: 'Show what is loaded, what is missing, what was rejected, and what is being worked on.',
    examples: ['eod status', 'eod status --json'],
    run: async () => (await import('../commands/status.ts')).showStatus,
  },
  {
    name: 'runs',
    summary:
      'List the newest runs; with a number, show that run and the windows that failed. The verbs continue a run or cancel it.',
    args: [new Argument('[id]', 'number of a run, to show that one')],
    options: [limitOption(20)],
    json: 'a list of runs',
    examples: ['eod runs', 'eod runs 12', 'eod runs --limit 100 --json', 'eod runs resume 12'],
    list: numbered('run', async () => (await import('../commands/runs-command.ts')).showRun),
    run: async () => (await import('../commands/runs-command.ts')).listRuns,
    verbs: [
      {
        name: 'resume',
        summary: 'Continue a run: what is left of a stopped one, or what failed.',
        args: [runId],
        examples: ['eod runs resume 12'],
        run: async () => (await import('../commands/run-verbs.ts')).resume,
      },
      {
        name: 'cancel',
        summary: 'Cancel a run. What it has loaded stays; the rest is not requested.',
        args: [runId],
        options: [yesOption()],
        examples: ['eod runs cancel 12'],
        run: async () => (await import('../commands/run-verbs.ts')).cancel,
      },
    ],
  },
  {
    name: 'gaps',
    summary:
      'List trading days that should be loaded and are not, and why. Exit code 1 if there are any. The verb loads them.',
    ...gapScope,
    options: [
      ...gapScope.options,
      new Option('--all', 'also list trading days that are not published yet, which are not gaps'),
    ],
    examples: [
      'eod gaps',
      `eod gaps GetBhavCopyCM --exchange NSE --from ${from} --to ${to}`,
      'eod gaps --json',
      'eod gaps fill --dry-run',
    ],
    list: {
      // A gap is what an operation lacks of an exchange, and changes with every run.
      id: 'an operation (gaps have no numbers)',
      isId: (text) => !/^\d+$/.test(text) && nearest(text, ['fill'], 1) === null,
    },
    run: async () => (await import('../commands/gaps.ts')).listGaps,
    verbs: [
      {
        name: 'fill',
        summary: 'Request exactly the trading days that "eod gaps" lists.',
        ...gapScope,
        options: [...gapScope.options, dryRunOption(), detachOption()],
        examples: [
          'eod gaps fill',
          'eod gaps fill --dry-run',
          `eod gaps fill GetBhavCopyCM --from ${from} --json`,
        ],
        run: async () => (await import('../commands/fill-gaps.ts')).fillGaps,
      },
    ],
  },
  {
    name: 'schedules',
    summary: 'Show when "eod up" runs each operation next.',
    json: 'a list of schedules',
    examples: ['eod schedules'],
    run: async () => (await import('../commands/schedules.ts')).listSchedules,
  },
  {
    name: 'operations',
    summary:
      'List the operations; with a name, show its parameters, tables, fields and units (the data dictionary).',
    args: [new Argument('[name]', 'an operation, or data set of imported files')],
    examples: ['eod operations', 'eod operations GetBhavCopyCM'],
    list: {
      id: 'an operation',
      show: async () => (await import('../commands/operations-command.ts')).describeOperation,
    },
    run: async () => (await import('../commands/operations-command.ts')).listOperations,
  },
  {
    name: 'query',
    summary: 'Run one read-only SQL statement, and print its rows as a table, CSV or JSON.',
    args: [new Argument('<sql>', 'one SELECT or other reading statement; - reads it from stdin')],
    options: [
      new Option('--csv', 'print CSV with a header line'),
      limitOption(undefined, `rows to print at most (default: all; ${LISTED.asTable} in a table)`),
      integerOption('--timeout <seconds>', 'how long the statement may run', {
        least: 1,
        most: 86_400,
      }).default(300),
    ],
    json: 'a list of objects; numbers keep all their digits',
    examples: [
      `eod query "${SHORT_EXAMPLES.few}"`,
      `eod query --csv "${SHORT_EXAMPLES.many}" > prices.csv`,
      'eod query --json - < report.sql | jq .',
    ],
    rewrite: (args) => args.map(asOperand),
    run: async () => (await import('../commands/query-command.ts')).query,
  },
  {
    name: 'export',
    summary:
      'Write a table or view to a file of Parquet, CSV or JSON lines, or keep a folder of such files up to date, for pandas, DuckDB and the like.',
    args: [
      new Argument(
        '[tables...]',
        'a table or view, in the schema market unless another is named; several with --partition',
      ),
    ],
    options: [
      ...rangeOptions({
        from: 'only days from this one on, YYYY-MM-DD',
        to: 'only days up to this one, YYYY-MM-DD',
      }),
      new Option('--symbol <list>', 'only rows with these symbols, e.g. INFY,TCS'),
      new Option('--series <list>', 'only rows of these series, e.g. EQ,BE'),
      exchangeOption(),
      wordOption(
        '--format <format>',
        `${FORMATS.join(', ')} (default: from the ending of --out, else parquet)`,
        FORMATS,
      ),
      new Option('--out <path>', 'the file, or the folder to write it to (default: this folder)'),
      wordOption(
        '--partition <by>',
        'year or month: a file for each, DIR/NAME/2026.parquet, below the folder of --out; run again, it writes only those whose rows have changed since',
        ['month', 'year'],
      ),
      new Option(
        '--decimals',
        'write decimal numbers to Parquet as DECIMAL with all of their digits (default: as DOUBLE, which keeps 15)',
      ),
    ],
    examples: [
      'eod export prices_adjusted',
      `eod export bhavcopy_cm --exchange NSE --from ${from} --out days.csv`,
      'eod export bhavcopy_cm prices_adjusted --partition month --out lake/',
    ],
    run: async () => (await import('../commands/export.ts')).exportTables,
  },
  {
    name: 'state',
    summary:
      'Show the number of the current state of the tables, or of a past one. Written down with a report, it finds the same rows again.',
    options: [new Option('--at <time>', 'the state at that time: a day, or a time with its zone')],
    examples: ['eod state', `eod state --at ${to}T21:00:00+05:30 --json`],
    run: async () => (await import('../commands/state.ts')).showState,
  },
  {
    name: 'wait',
    summary:
      'Wait until a night is complete: until everything that became due on its day is loaded. Exit code 1 if it is late.',
    options: [
      new Option('--night <day>', 'the day of the night (YYYY-MM-DD, today, yesterday)'),
      new Option(
        '--timeout <time>',
        'give up after this long, e.g. 90s, 30m; 0: look once (default: 2h)',
      ).argParser((text) => parseDuration('--timeout', text)),
    ],
    examples: [`eod wait --night ${to} --timeout 3h`, 'eod wait --night today --timeout 0'],
    run: async () => (await import('../commands/wait.ts')).wait,
  },
  {
    name: 'web',
    summary:
      'Serve the dashboard alone, until Ctrl-C: what is loaded, what is missing and why, runs, data quality.',
    options: [
      integerOption('--port <n>', 'listen on this port instead of EOD_HTTP_PORT; 0: a free one', {
        least: 0,
        most: 65_535,
      }),
    ],
    examples: ['eod web', 'eod web --port 8081', 'eod --demo web'],
    json: false,
    run: async () => (await import('../commands/web-command.ts')).web,
  },
];

import { Argument, Option } from 'commander';
import {
  detachOption,
  dryRunOption,
  exampleDays,
  ROLES,
  rangeOptions,
  repeatableOption,
  wordsOption,
} from '../options.ts';
import type { Specification } from '../specification.ts';

const { from, to } = exampleDays();

/** Commands that load data. */
export const loadCommands: readonly Specification[] = [
  {
    name: 'demo',
    summary:
      'Load the last 5 trading days of all operations from the sandbox into a private Postgres, and show them.',
    options: [new Option('--keep', 'afterwards, keep Postgres and the sandbox running until Ctrl-C')],
    examples: ['eod demo', 'eod demo --keep', 'eod --demo status'],
    run: async () => (await import('../run-demo.ts')).demo,
  },
  {
    name: 'up',
    summary:
      'Run as a service: start the nightly runs on schedule, work on every open run, serve the dashboard. Stops on SIGTERM or Ctrl-C.',
    options: [
      wordsOption(
        '--roles <list>',
        'what this process does: scheduler, worker, web (the dashboard)',
        ROLES,
        'role',
      ).default(ROLES, `"${ROLES.join(',')}"`),
    ],
    examples: ['eod up', 'eod up --roles worker'],
    json: false,
    run: async () => (await import('../commands/up.ts')).up,
  },
  {
    name: 'nightly',
    summary:
      'Catch up to today: every operation from its last loaded trading day on, and a few trading days before it for late corrections.',
    options: [
      new Option(
        '--date <day>',
        'the night to plan for: YYYY-MM-DD, today or yesterday (default: the last one whose data is due)',
      ),
      dryRunOption(),
    ],
    examples: ['eod nightly', 'eod nightly --dry-run', `eod nightly --date ${to} --json`],
    run: async () => (await import('../commands/nightly.ts')).nightly,
  },
  {
    name: 'backfill',
    summary: 'Load a range of past days. Days that are loaded already are skipped.',
    args: [
      new Argument(
        '[operations...]',
        'operations to load, by name or by table, in any case: GetBhavCopyCM, bhavcopy_cm (see: eod operations)',
      ),
    ],
    options: async () => [
      ...rangeOptions({ from: 'first day: YYYY-MM-DD, today or yesterday', to: 'last day, the same' }),
      new Option('--all', 'every operation'),
      // A chosen operation may have further ones.
      new Option(
        '--exchange <list>',
        'exchanges to request, e.g. NSE,BSE (default: those of each operation)',
      ),
      new Option(
        '--instruments <list>',
        'only these instruments: A,B or @file, a file with one on each line',
      ),
      new Option('--force', 'also request what is loaded already'),
      repeatableOption(
        '--param <name=value>',
        'a request option by its name, or any parameter of the source, sent as it is; may be given several times',
      ),
      dryRunOption(),
      detachOption(),
      ...(await import('../parse-request.ts')).requestOptions(),
    ],
    examples: [
      `eod backfill GetBhavCopyCM --from ${from} --to ${to} --exchange NSE,BSE`,
      `eod backfill --all --from ${from} --to ${to} --dry-run`,
      `eod backfill GetFinRatioEOD --from ${to} --to ${to} --instruments 'TCS,M&M'`,
      `eod backfill GetCircuitBreakers --from ${from} --to ${to} --band H`,
    ],
    run: async () => (await import('../commands/backfill.ts')).backfill,
  },
  {
    name: 'import',
    summary:
      'Load files of the exchanges: bhav copies, deliveries, derivatives, price bands, deals, lists and more, of any age. Files that were imported before are skipped.',
    args: [
      new Argument(
        '<paths...>',
        'files, or folders to search for .csv, .dat, .json and .zip files, also with .gz behind',
      ),
    ],
    options: [
      new Option('--force', 'also read files that were imported before'),
      new Option('--strict', 'fail if a file has an unknown form, also where others are imported'),
    ],
    examples: [
      'eod import downloads/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv.zip',
      'eod import archive/nse archive/bse --json',
    ],
    run: async () => (await import('../commands/import-command.ts')).importPaths,
  },
];

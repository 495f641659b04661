import { Argument, Option } from 'commander';
import { EVENT_KINDS } from '../../extract/corporate-actions/purpose.ts';
import { ISSUE_KINDS } from '../../state/issue-kinds.ts';
import {
  EVENT_STATUSES,
  exampleDays,
  exchangeOption,
  idArgument,
  limitOption,
  optionalId,
  rangeOptions,
  SEVERITIES,
  wordOption,
  wordsOption,
  yesOption,
} from '../options.ts';
import { numbered, type Specification } from '../specification.ts';

const { from, to } = exampleDays();

const operationsOfRejects = new Option('--operation <list>', 'only rejects of these operations');

const days = rangeOptions({
  from: 'only days from this one on, YYYY-MM-DD',
  to: 'only days up to this one, YYYY-MM-DD',
});

const ofFindings = [
  ...days,
  new Option('--check <name>', 'only findings of this check'),
  exchangeOption(),
  wordsOption('--severity <list>', 'only these severities: info, warning, error', SEVERITIES, 'severity'),
];

/** Commands that repair what is there. */
export const repairCommands: readonly Specification[] = [
  {
    name: 'issues',
    summary:
      'List what needs a person, each with the command that settles it. Missing rows, findings that are errors, and corporate actions that may move a price by a fifth or more come first; then the newest day, and of one day the largest effect.',
    options: [
      wordsOption('--kind <list>', `only these kinds: ${ISSUE_KINDS.join(', ')}`, ISSUE_KINDS, 'kind'),
      exchangeOption(),
      limitOption(50),
    ],
    json: 'a list of issues',
    examples: ['eod issues', 'eod issues --kind withdrawal,suspicious', 'eod issues --exchange BSE --json'],
    run: async () => (await import('../commands/issues-command.ts')).listIssues,
  },
  {
    name: 'rejects',
    summary:
      'List the records that were rejected and are not resolved yet; show one of them, or try them all again.',
    args: [new Argument('[id]', 'number of a reject, to show the record as the source sent it')],
    options: [operationsOfRejects, exchangeOption(), ...days, limitOption(50)],
    json: 'a list of rejects',
    examples: ['eod rejects', 'eod rejects 17', 'eod rejects retry'],
    list: numbered('reject', async () => (await import('../commands/rejects-command.ts')).showReject),
    run: async () => (await import('../commands/rejects-command.ts')).listRejects,
    verbs: [
      {
        name: 'retry',
        summary: 'Read the rejected records again with the current code, and load those that pass now.',
        options: [operationsOfRejects, exchangeOption(), ...days],
        run: async () => (await import('../commands/retry-rejects.ts')).retryRejects,
      },
      {
        name: 'accept',
        summary:
          'Accept that a record cannot be stored, so that it is no longer listed: one, or all that match. The same record stays accepted when it is sent again.',
        args: [optionalId('reject')],
        options: [operationsOfRejects, exchangeOption(), ...days],
        examples: [
          'eod rejects accept 17',
          `eod rejects accept --operation bhavcopy_cm --from ${from} --to ${from}`,
        ],
        run: async () => (await import('../commands/rejects-command.ts')).accept,
      },
    ],
  },
  {
    name: 'withdrawals',
    summary: 'List withheld withdrawals: too many rows that the source no longer lists; accept them.',
    args: [new Argument('[id]', 'number of a withdrawal, to show all its rows')],
    options: [limitOption(50)],
    examples: ['eod withdrawals', 'eod withdrawals 4', 'eod withdrawals accept 4'],
    list: numbered(
      'withdrawal',
      async () => (await import('../commands/withdrawals-command.ts')).showWithdrawal,
    ),
    run: async () => (await import('../commands/withdrawals-command.ts')).listWithdrawals,
    verbs: [
      {
        name: 'accept',
        summary: 'Withdraw the rows of one: the source is right.',
        args: [idArgument('withdrawal')],
        run: async () => (await import('../commands/accept-command.ts')).accept,
      },
    ],
  },
  {
    name: 'events',
    summary:
      'List splits, bonuses, dividends and other corporate events, and decide those that need a decision.',
    args: [new Argument('[id]', 'id of an event, to show that one; or a symbol, to list its events')],
    options: [
      wordsOption(
        '--status <list>',
        'only events with these states: applied, needs_review, ignored',
        EVENT_STATUSES,
        'status',
      ),
      wordsOption('--kind <list>', 'only these kinds, e.g. split,bonus', EVENT_KINDS, 'kind'),
      new Option('--symbol <symbol>', 'only events of the share that has or had this symbol'),
      exchangeOption(),
      ...rangeOptions({
        from: 'only ex-dates from this day on, YYYY-MM-DD',
        to: 'only ex-dates up to this day, YYYY-MM-DD',
      }),
      limitOption(100),
    ],
    json: 'a list of events',
    examples: [
      'eod events --status needs_review',
      'eod events BAJAJFINSV',
      `eod events NSE:VEEDOL:${from}:bonus`,
      `eod events set NSE:VEEDOL:${from}:bonus --factor 1:2`,
      `eod events set NSE:ITC:${from}:demerger --ignore`,
    ],
    list: {
      id: 'the id of an event',
      // It has the exchange, the symbol, the day and the kind.
      isId: (text) => text.includes(':'),
      show: async () => (await import('../commands/events-command.ts')).showEvent,
      narrowedBy: 'symbol',
    },
    run: async () => (await import('../commands/events-command.ts')).listEvents,
    verbs: [
      {
        name: 'set',
        summary:
          'Decide by hand what an event does to prices, on both exchanges together. The decision is kept when lists are imported again.',
        args: [new Argument('<id>', 'the id of the event, from "eod events"')],
        options: [
          new Option('--factor <a:b>', 'multiply earlier prices by a ÷ b: 1:2 halves them'),
          new Option('--ignore', 'the event does not change prices'),
          new Option('--reset', 'undo the decision'),
        ],
        json: 'the event',
        run: async () => (await import('../commands/set-event.ts')).setEvent,
      },
      {
        name: 'ignore',
        summary:
          'Ignore all events that need review and move the price by less than a percentage. The move is that of the dividend, or of open and close on the ex-date; events without either are left.',
        options: [
          new Option('--below <percent>', 'those that move the price by less, e.g. 5'),
          new Option('--dry-run', 'only show which'),
          yesOption(),
        ],
        examples: ['eod events ignore --below 5 --dry-run'],
        run: async () => (await import('../commands/set-event.ts')).ignoreSmall,
      },
    ],
  },
  {
    name: 'reconcile',
    summary: 'Check the stored data sets against each other; contradictions are stored as findings.',
    options: [
      ...rangeOptions({
        from: 'first day, YYYY-MM-DD (default: EOD_HISTORY_DAYS before the last day)',
        to: 'last day, YYYY-MM-DD (default: today)',
      }),
      wordOption(
        '--fail-on <severity>',
        'exit with 1 if a finding is open that is at least this severe: info, warning, error',
        SEVERITIES,
        'severity',
      ),
    ],
    examples: ['eod reconcile', `eod reconcile --from ${from} --to ${to} --fail-on error`],
    run: async () => (await import('../commands/reconcile.ts')).reconcile,
  },
  {
    name: 'findings',
    summary:
      'List the open findings of "eod reconcile", the newest days first; with a number, show that one.',
    args: [new Argument('[id]', 'number of a finding, to show that one')],
    options: [
      ...ofFindings,
      new Option('--resolved', 'also findings that a later check resolved, and accepted ones'),
      limitOption(100),
    ],
    json: 'a list of findings',
    examples: [
      'eod findings',
      'eod findings 3',
      'eod findings --check previous_close --severity error,warning --json',
    ],
    list: numbered('finding', async () => (await import('../commands/findings-command.ts')).showFinding),
    run: async () => (await import('../commands/findings-command.ts')).listFindings,
    verbs: [
      {
        name: 'accept',
        summary:
          'Accept that the data is so: of one finding, or of all that match. They are listed again once either value changes.',
        args: [optionalId('finding')],
        options: [...ofFindings],
        examples: [
          'eod findings accept 3',
          `eod findings accept --check previous_close --from ${from} --to ${from}`,
        ],
        run: async () => (await import('../commands/findings-command.ts')).accept,
      },
    ],
  },
  {
    name: 'replay',
    summary:
      'Read kept responses and imported files again with the current code, and load them. Makes no call to the source.',
    args: [
      new Argument('[operations...]', 'operations, or data sets of imported files, to replay (default: all)'),
    ],
    options: [
      ...rangeOptions({
        from: 'only responses about days from this one on, YYYY-MM-DD',
        to: 'only responses about days up to this one, YYYY-MM-DD',
      }),
      exchangeOption(),
      new Option('--rejects', 'only responses with rejects that are not resolved yet'),
    ],
    examples: ['eod replay', `eod replay GetBhavCopyCM --from ${from} --to ${to}`, 'eod replay --rejects'],
    run: async () => (await import('../commands/replay.ts')).replay,
  },
  {
    name: 'verify',
    summary:
      'Check that the rows are what the kept responses say: fold these again, and name the rows that differ. Writes nothing.',
    args: [
      new Argument('[operations...]', 'operations, or data sets of imported files, to verify (default: all)'),
    ],
    options: [
      ...rangeOptions({
        from: 'only responses about days from this one on, YYYY-MM-DD',
        to: 'only responses about days up to this one, YYYY-MM-DD',
      }),
      exchangeOption(),
    ],
    examples: ['eod verify', `eod verify GetBhavCopyCM --from ${from} --to ${to}`],
    run: async () => (await import('../commands/verify.ts')).verify,
  },
  {
    name: 'prune',
    summary:
      'Delete runs older than EOD_KEEP_RUNS_DAYS and what they left: windows, alerts, resolved rejects. Rows and kept responses stay.',
    options: [new Option('--dry-run', 'only show what would be deleted'), yesOption()],
    examples: ['eod prune', 'eod prune --dry-run'],
    run: async () => (await import('../commands/prune.ts')).pruneAll,
  },
];

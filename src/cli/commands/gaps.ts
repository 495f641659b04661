import type { Command } from 'commander';
import { systemClock } from '../../core/clock.ts';
import { nearest } from '../../core/input.ts';
import type { Gap, Gaps } from '../../jobs/runs/read-gaps.ts';
import { gapText } from '../../load/state/coverage/gap-reasons.ts';
import {
  type Cli,
  type Commands,
  EXIT,
  type JsonFlag,
  loadSettings,
  logNote,
  print,
  printJson,
} from '../cli.ts';
import {
  addRange,
  detachOption,
  dryRunOption,
  exampleDays,
  examples,
  exchangeOption,
  jsonOption,
  listOf,
  noSuchVerb,
} from '../options.ts';
import { type Column, columnsOf, plural, table } from '../output.ts';
import type { GapFlags } from '../parse-request.ts';

const COLUMNS: readonly Column<Gap>[] = [
  ...columnsOf<Gap>('operation', 'exchange', 'from', 'to', 'sessions'),
  { head: 'why', cell: gapText },
];

interface Flags extends GapFlags, JsonFlag {}

export const commands: Commands = {
  gaps(command, cli) {
    const { from, to } = exampleDays();
    command.addHelpText(
      'after',
      examples(
        'eod gaps',
        `eod gaps GetBhavCopyCM --exchange NSE --from ${from} --to ${to}`,
        'eod gaps --json',
        'eod gaps fill --dry-run',
      ),
    );
    addScope(listOf(command, 'an operation'))
      .option('--all', 'also list sessions that are not published yet; they do not count as gaps')
      .action((names: string[], flags: Flags & { readonly all?: boolean }) => {
        const [first = ''] = names;
        // A gap has no number: it is what an operation lacks of an exchange, and changes with every run.
        if (names.length === 1 && isNoOperation(first))
          throw noSuchVerb(command, 'an operation (gaps have no numbers)', first);
        return listGaps(cli, names, flags);
      });
    addFill(command.command('fill').description('Pull exactly the sessions that "eod gaps" lists.'), cli);
  },
  'fill-gaps': addFill,
};

function addFill(command: Command, cli: Cli): void {
  const { from } = exampleDays();
  addScope(command)
    .addOption(dryRunOption())
    .addOption(detachOption())
    .addHelpText(
      'after',
      examples(
        'eod gaps fill',
        'eod gaps fill --dry-run',
        `eod gaps fill GetBhavCopyCM --from ${from} --json`,
      ),
    )
    .action((names: string[], flags: Flags) => fillGaps(cli, names, flags));
}

/** Is a text a number, or a mistyped verb? */
const isNoOperation = (text: string) => /^\d+$/.test(text) || nearest(text, ['fill'], 1) !== null;

/** Adds the arguments and flags that say where to look for gaps; `gapScope` reads them. */
function addScope(command: Command): Command {
  addRange(command, {
    from: 'first day (default: the first day loaded, for each operation and exchange)',
    to: 'last day (default: the last published session)',
  });
  return command
    .argument('[operations...]', 'only these operations (default: all)')
    .addOption(exchangeOption())
    .addOption(jsonOption());
}

async function listGaps(
  cli: Cli,
  names: readonly string[],
  flags: Flags & { readonly all?: boolean },
): Promise<void> {
  const config = await loadSettings(cli);
  const { gapScope, parsedLate } = await import('../parse-request.ts');
  const scope = parsedLate(names, config, () => gapScope(names, flags, { config, clock: systemClock }));
  const { openContext } = await import('../open-context.ts');
  const { readGaps } = await import('../../jobs/runs/read-gaps.ts');
  const { pending, ...found } = await readGaps(await openContext(cli, { config }), scope());
  if (flags.json === true) printJson(cli, flags.all === true ? { ...found, pending } : found);
  else print(cli, gapsText(found, flags.all === true ? pending : []));
  logAssumptions(cli, found);
  cli.exitCode = found.total > 0 ? EXIT.failed : EXIT.done;
}

async function fillGaps(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const { gapScope, parsedLate } = await import('../parse-request.ts');
  const scope = parsedLate(names, config, () => gapScope(names, flags, { config, clock: systemClock }));
  const { gapRequest, readGaps } = await import('../../jobs/runs/read-gaps.ts');
  const { runRequest } = await import('../work-on-run.ts');
  await runRequest(cli, flags, {
    config,
    async request(context) {
      const found = await readGaps(context, scope());
      // Files may reach back for years that the source does not have. Who names the first day means it.
      const isFar = ({ reason }: Gap) => flags.from === undefined && reason === 'beyond_history';
      const far = found.gaps.filter(isFar).reduce((sum, { sessions }) => sum + sessions, 0);
      if (far > 0) logNote(cli, farText(far));
      const gaps = found.gaps.filter((gap) => !isFar(gap));
      // Where there is a run, its plan logs these assumptions.
      if (gaps.length > 0) return gapRequest(gaps);
      logAssumptions(cli, found);
      if (flags.json === true) printJson(cli, null);
      else print(cli, far === 0 ? 'nothing is missing' : 'nothing is missing that the source still has');
      return null;
    },
  });
}

const farText = (sessions: number) =>
  `${plural(sessions, 'missing session')} beyond the history of the source (EOD_HISTORY_DAYS): only "eod import" can load them; with --from they are asked for all the same`;

function gapsText(found: Omit<Gaps, 'pending'>, pending: readonly Gap[]): string {
  const { from, to, gaps, total } = found;
  const range = from === null ? '' : `, ${from} to ${to}`;
  const listed = [...gaps, ...pending];
  return [
    ...(listed.length === 0 ? [] : [table(COLUMNS, listed), '']),
    total === 0
      ? `nothing is missing${range}`
      : `${plural(total, 'session')} missing in ${plural(gaps.length, 'range')}${range}`,
    ...found.observed.map(
      ({ exchange, day }) =>
        `${day} is a session of ${exchange} because data arrived for it, though no calendar lists it`,
    ),
  ].join('\n');
}

/** Says which days are assumed to be sessions because the calendar has no data for them. */
function logAssumptions(cli: Cli, { unknownYears }: Pick<Gaps, 'unknownYears'>): void {
  if (unknownYears.length === 0) return;
  const years = unknownYears.join(', ');
  logNote(cli, `no calendar data for ${years}: Monday to Friday was assumed (EOD_CALENDAR_FILE)`);
}

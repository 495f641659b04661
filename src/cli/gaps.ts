import type { Command } from 'commander';
import { systemClock } from '../core/clock.ts';
import { loadConfig } from '../core/config.ts';
import { type Gap, type Gaps, readGaps } from '../jobs/runs/gaps.ts';
import type { GapReason } from '../load/state/completeness.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { EXIT } from './errors.ts';
import { type GapFlags, gapScope, withGapOptions } from './gap-options.ts';
import { type Column, plural, print, printJson, say, table } from './output.ts';

const REASONS: Readonly<Record<GapReason, string>> = {
  never_asked: 'never asked',
  failed: 'failed',
  blocked: 'blocked',
  beyond_history: 'beyond the history of the source',
  not_published: 'not published yet',
  empty: 'the source listed nothing',
  partial: 'only some instruments were asked for',
};

const COLUMNS: readonly Column<Gap>[] = [
  { head: 'operation', cell: (gap) => gap.operation },
  { head: 'exchange', cell: (gap) => gap.exchange },
  { head: 'from', cell: (gap) => gap.from },
  { head: 'to', cell: (gap) => gap.to },
  { head: 'sessions', cell: (gap) => gap.sessions },
  {
    head: 'why',
    cell: ({ reason, detail }) => (detail === null ? REASONS[reason] : `${REASONS[reason]}: ${detail}`),
  },
];

export function gapsCommand(program: Command, cli: Cli): Command {
  const command = program
    .command('gaps')
    .description('Sessions that should be there and are not, and why. Exit code 1 if there are any.');
  return withGapOptions(command)
    .option('--all', 'list sessions too that are not published yet; they are no gaps')
    .addHelpText(
      'after',
      examples(
        'eod gaps',
        'eod gaps GetBhavCopyCM --exchange NSE --from 2025-08-29 --to 2025-09-11',
        'eod gaps --json',
      ),
    )
    .action((names: string[], flags: GapFlags & { readonly all?: boolean }) => gaps(cli, names, flags));
}

async function gaps(
  cli: Cli,
  names: readonly string[],
  flags: GapFlags & { readonly all?: boolean },
): Promise<void> {
  const config = loadConfig();
  const scope = gapScope(names, flags, { config, clock: systemClock });
  const { pending, ...found } = await readGaps(await openContext(cli.life, config), scope);
  if (flags.json === true) printJson(flags.all === true ? { ...found, pending } : found);
  else print(gapsText(found, flags.all === true ? pending : []));
  sayAssumptions(found);
  cli.exitCode = found.total > 0 ? EXIT.failed : EXIT.done;
}

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
        `${day} is a session of ${exchange} because data came, though no calendar lists it`,
    ),
  ].join('\n');
}

/** What the result rests on where the calendar has no data. */
export function sayAssumptions({ unknownYears }: Pick<Gaps, 'unknownYears'>): void {
  if (unknownYears.length === 0) return;
  say(`no calendar data for ${unknownYears.join(', ')}: Monday to Friday was assumed (EOD_CALENDAR_FILE)`);
}

import type { Command } from 'commander';
import { systemClock, today } from '../core/clock.ts';
import { loadConfig } from '../core/config.ts';
import { nightlyRequest } from '../jobs/runs/nightly.ts';
import { parseDay } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { newRun } from './new-run.ts';
import { workUntilEnd } from './work-command.ts';

interface Flags {
  readonly date?: string;
  readonly json?: boolean;
}

export function nightlyCommand(program: Command, cli: Cli): Command {
  return program
    .command('nightly')
    .description('Catch up: every operation from its last loaded session, less the lookback, to today.')
    .option('--date <day>', 'the night to plan for, YYYY-MM-DD (default: today)')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples('eod nightly', 'eod nightly --date 2025-02-27 --json'))
    .action((flags: Flags) => nightly(cli, flags));
}

async function nightly(cli: Cli, flags: Flags): Promise<void> {
  const config = loadConfig();
  const clock = systemClock;
  const date =
    flags.date === undefined
      ? today(clock, config.EOD_TIMEZONE)
      : parseDay('--date', flags.date, { config, clock });
  const context = await openContext(cli.life, config, { source: true, wait: 'short' });
  const request = await nightlyRequest(context, { date });
  await workUntilEnd(cli, context, await newRun(context, request), flags);
}

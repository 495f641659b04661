import { clockOf } from '../../core/clock.ts';
import { lastNight } from '../../operations/night-times.ts';
import { type Cli, type Commands, type JsonFlag, loadSettings } from '../cli.ts';
import { dryRunOption, exampleDays, examples, jsonOption, parseDay } from '../options.ts';

interface Flags extends JsonFlag {
  readonly dryRun?: boolean;
  readonly date?: string;
}

export const commands: Commands = {
  nightly(command, cli) {
    const { to } = exampleDays();
    command
      .option(
        '--date <day>',
        'the night to plan for: YYYY-MM-DD, today or yesterday (default: the last one whose data is due)',
      )
      .addOption(dryRunOption())
      .addOption(jsonOption())
      .addHelpText(
        'after',
        examples('eod nightly', 'eod nightly --dry-run', `eod nightly --date ${to} --json`),
      )
      .action((flags: Flags) => nightly(cli, flags));
  },
};

async function nightly(cli: Cli, flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const clock = clockOf(config);
  const date =
    flags.date === undefined ? lastNight(config, clock) : parseDay('--date', flags.date, { config, clock });
  const { nightlyRequest } = await import('../../jobs/runs/nightly-request.ts');
  const { runRequest } = await import('../work-on-run.ts');
  await runRequest(cli, flags, { config, request: (context) => nightlyRequest(context, { date }) });
}

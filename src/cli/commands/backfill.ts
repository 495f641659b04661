import { systemClock } from '../../core/clock.ts';
import { type Cli, type Commands, type JsonFlag, loadSettings } from '../cli.ts';
import {
  addRange,
  detachOption,
  dryRunOption,
  exampleDays,
  examples,
  exchangeOption,
  jsonOption,
  repeatableOption,
} from '../options.ts';
import type { BackfillFlags } from '../parse-request.ts';

interface Flags extends BackfillFlags, JsonFlag {
  readonly dryRun?: boolean;
  readonly detach?: boolean;
}

export const commands: Commands = {
  async backfill(command, cli) {
    const { requestOptions } = await import('../parse-request.ts');
    const { from, to } = exampleDays();
    addRange(command, { from: 'first day: YYYY-MM-DD, today or yesterday', to: 'last day, the same' });
    command
      .argument('[operations...]', 'operations to pull, in any case (see: eod operations)')
      .option('--all', 'every operation')
      .addOption(exchangeOption('exchanges to pull from, e.g. NSE,BSE (default: those of each operation)'))
      .option('--instruments <list>', 'only these instruments: A,B or @file, a file with one on each line')
      .option('--force', 'also pull what is already loaded')
      .addOption(
        repeatableOption(
          '--param <name=value>',
          'a request option by its name, or any parameter of the source, sent as it is; may be given several times',
        ),
      )
      .addOption(dryRunOption())
      .addOption(detachOption())
      .addOption(jsonOption());
    for (const option of requestOptions()) command.addOption(option);
    command
      .addHelpText(
        'after',
        examples(
          `eod backfill GetBhavCopyCM --from ${from} --to ${to} --exchange NSE,BSE`,
          `eod backfill --all --from ${from} --to ${to} --dry-run`,
          `eod backfill GetFinRatioEOD --from ${to} --to ${to} --instruments 'TCS,M&M'`,
          `eod backfill GetCircuitBreakers --from ${from} --to ${to} --band H`,
        ),
      )
      .action((names: string[], flags: Flags) => backfill(cli, names, flags));
  },
};

async function backfill(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const { backfillRequest, parsedLate } = await import('../parse-request.ts');
  const request = parsedLate(names, config, () =>
    backfillRequest(names, flags, { config, clock: systemClock, cwd: cli.cwd }),
  );
  const { runRequest } = await import('../work-on-run.ts');
  await runRequest(cli, flags, { config, request: async () => request() });
}

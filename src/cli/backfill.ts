import { type Command, Option } from 'commander';
import { systemClock } from '../core/clock.ts';
import { loadConfig } from '../core/config.ts';
import type { RunRequest } from '../load/state/run-request.ts';
import { type BackfillFlags, backfillRequest } from './backfill-request.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { printForecast } from './forecast-view.ts';
import { detach, newRun } from './new-run.ts';
import { requestFlags } from './request-options.ts';
import { workUntilEnd } from './work-command.ts';

interface Flags extends BackfillFlags {
  readonly dryRun?: boolean;
  readonly detach?: boolean;
  readonly preview?: boolean;
  readonly json?: boolean;
}

export function backfillCommand(program: Command, cli: Cli): Command {
  const command = program
    .command('backfill')
    .description('Pull a range of past days. Days that are loaded already are skipped.')
    .argument('[operations...]', 'operations to ask, in any case (see: eod operations)')
    .option('--all', 'every operation')
    .option('--from <day>', 'first day, YYYY-MM-DD')
    .option('--to <day>', 'last day, YYYY-MM-DD')
    .option('--exchange <list>', 'exchanges to ask, e.g. NSE,BSE (default: those of each operation)')
    .option('--instruments <list>', 'only these instruments: A,B or @file with one a line')
    .option('--force', 'ask again for what is loaded already')
    .option('--param <name=value>', 'a request option by its name; repeatable', collect)
    .addOption(new Option('--dry-run', 'only say what would be asked').conflicts('detach'))
    .addOption(
      new Option('--preview', 'ask, compare and count, then roll back: nothing is stored').conflicts([
        ...['detach', 'dryRun'],
      ]),
    )
    .option('--detach', 'leave the work to running workers (eod up) and print the number of the run')
    .option('--json', 'print one JSON document');
  for (const { flag, description } of requestFlags()) command.option(flag, description);
  return command
    .addHelpText(
      'after',
      examples(
        'eod backfill GetBhavCopyCM --from 2025-02-20 --to 2025-02-27 --exchange NSE,BSE',
        'eod backfill --all --from 2025-02-20 --to 2025-02-27 --dry-run',
        "eod backfill GetFinRatioEOD --from 2025-02-27 --to 2025-02-27 --instruments 'TCS,M&M'",
        'eod backfill GetCircuitBreakers --from 2025-02-20 --to 2025-02-27 --band H',
      ),
    )
    .action((names: string[], flags: Flags) => backfill(cli, names, flags));
}

async function backfill(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = loadConfig();
  const asked = backfillRequest(names, flags, { config, clock: systemClock });
  const request: RunRequest = flags.preview === true ? { ...asked, kind: 'preview' } : asked;
  if (flags.dryRun === true) {
    await printForecast(await openContext(cli.life, config), request, flags);
    return;
  }
  if (flags.detach === true) {
    await detach(await openContext(cli.life, config, { queue: true, wait: 'short' }), request, flags);
    return;
  }
  const context = await openContext(cli.life, config, { source: true, wait: 'short' });
  await workUntilEnd(cli, context, await newRun(context, request), flags);
}

function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

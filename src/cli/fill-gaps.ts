import { type Command, Option } from 'commander';
import { systemClock } from '../core/clock.ts';
import { loadConfig } from '../core/config.ts';
import type { Context } from '../jobs/context.ts';
import { type GapScope, gapRequest, readGaps } from '../jobs/runs/gaps.ts';
import type { RunRequest } from '../load/state/run-request.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { printForecast } from './forecast-view.ts';
import { type GapFlags, gapScope, withGapOptions } from './gap-options.ts';
import { sayAssumptions } from './gaps.ts';
import { detach, newRun } from './new-run.ts';
import { print, printJson } from './output.ts';
import { workUntilEnd } from './work-command.ts';

interface Flags extends GapFlags {
  readonly dryRun?: boolean;
  readonly detach?: boolean;
}

export function fillGapsCommand(program: Command, cli: Cli): Command {
  const command = program
    .command('fill-gaps')
    .description('Pull exactly the sessions that "eod gaps" reports, and report as a backfill does.');
  return withGapOptions(command)
    .addOption(new Option('--dry-run', 'only say what would be asked').conflicts('detach'))
    .addOption(
      new Option('--detach', 'leave the work to running workers (eod up) and print the number of the run'),
    )
    .addHelpText(
      'after',
      examples(
        'eod fill-gaps',
        'eod fill-gaps --dry-run',
        'eod fill-gaps GetBhavCopyCM --from 2025-09-01 --json',
      ),
    )
    .action((names: string[], flags: Flags) => fillGaps(cli, names, flags));
}

async function fillGaps(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = loadConfig();
  const scope = gapScope(names, flags, { config, clock: systemClock });
  if (flags.dryRun === true) {
    const context = await openContext(cli.life, config);
    const request = await requestFor(context, scope, flags);
    if (request !== null) await printForecast(context, request, flags);
    return;
  }
  if (flags.detach === true) {
    const context = await openContext(cli.life, config, { queue: true, wait: 'short' });
    const request = await requestFor(context, scope, flags);
    if (request !== null) await detach(context, request, flags);
    return;
  }
  const context = await openContext(cli.life, config, { source: true, wait: 'short' });
  const request = await requestFor(context, scope, flags);
  if (request !== null) await workUntilEnd(cli, context, await newRun(context, request), flags);
}

/** @returns null, having said so, when nothing is missing: then there is no run to report. */
async function requestFor(context: Context, scope: GapScope, flags: Flags): Promise<RunRequest | null> {
  const found = await readGaps(context, scope);
  // The plan of the run says so itself.
  if (found.total > 0) return gapRequest(found.gaps);
  sayAssumptions(found);
  if (flags.json === true) printJson(null);
  else print('nothing is missing');
  return null;
}

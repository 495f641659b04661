import { type Command, Option } from 'commander';
import { systemClock } from '../core/clock.ts';
import { loadConfig } from '../core/config.ts';
import type { QueueContext } from '../jobs/context.ts';
import { type GapScope, gapRequest, readGaps } from '../jobs/gaps.ts';
import { reportRun } from '../jobs/report.ts';
import { patiently } from '../load/patience.ts';
import { openQueueContext, openWorkContext, patienceOf } from './app.ts';
import { newRun } from './backfill.ts';
import { type Cli, examples } from './command.ts';
import { type GapFlags, gapScope, withGapOptions } from './gap-options.ts';
import { sayAssumptions } from './gaps.ts';
import { plural, print, printJson } from './output.ts';
import { workUntilEnd } from './work-command.ts';

interface Flags extends GapFlags {
  readonly detach?: boolean;
}

export function fillGapsCommand(program: Command, cli: Cli): Command {
  const command = program
    .command('fill-gaps')
    .description('Pull exactly the sessions that "eod gaps" reports, and report as a backfill does.');
  return withGapOptions(command)
    .addOption(
      new Option('--detach', 'leave the work to running workers (eod up) and print the number of the run'),
    )
    .addHelpText('after', examples('eod fill-gaps', 'eod fill-gaps GetBhavCopyCM --from 2025-09-01 --json'))
    .action((names: string[], flags: Flags) => fillGaps(cli, names, flags));
}

async function fillGaps(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = loadConfig();
  const scope = gapScope(names, flags, { config, clock: systemClock });
  if (flags.detach === true) {
    const context = await openQueueContext(cli.life, config);
    const runId = await startFilling(cli, context, scope, flags);
    if (runId === null) return;
    const report = await patiently(patienceOf(cli.life, config), () => reportRun(context.db.pool, runId));
    if (flags.json === true) printJson(report);
    else print(`run ${runId} enqueued: ${plural(report.windows.open, 'window')}`);
    return;
  }
  const context = await openWorkContext(cli.life, config);
  const runId = await startFilling(cli, context, scope, flags);
  if (runId !== null) await workUntilEnd(cli, context, runId, flags);
}

/** @returns null, having said so, when nothing is missing: then there is no run to report. */
async function startFilling(
  cli: Cli,
  context: QueueContext,
  scope: GapScope,
  flags: Flags,
): Promise<number | null> {
  const found = await patiently(patienceOf(cli.life, context.config), () => readGaps(context, scope));
  sayAssumptions(found);
  if (found.total > 0) return newRun(cli, context, gapRequest(found.gaps));
  if (flags.json === true) printJson(null);
  else print('nothing is missing');
  return null;
}

import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import { reopenRun, resumeRun } from '../jobs/runs/runs.ts';
import { reportRun } from '../load/state/reports.ts';
import { parseRunId } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { workAndPrint } from './replay.ts';
import { workUntilEnd } from './work-command.ts';

export function resumeCommand(program: Command, cli: Cli): Command {
  return program
    .command('resume')
    .description('Go on with a run: what is left of a stopped one, what failed of a failed one.')
    .argument('<id>', 'number of the run')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples('eod resume 12'))
    .action(async (id: string, flags: { readonly json?: boolean }) => {
      const runId = parseRunId(id);
      const config = loadConfig();
      // A replay asks nothing of the source: neither the queue nor the source's settings are needed.
      const opened = await openContext(cli.life, config, { wait: 'short' });
      const { kind } = await reportRun(opened.db.drizzle, runId);
      if (kind === 'import') {
        throw usageError(`run ${runId} is an import: import the same files again, those loaded are skipped`);
      }
      if (kind === 'replay') {
        await reopenRun(opened, runId);
        return workAndPrint(cli, opened, runId, flags);
      }
      const context = await openContext(cli.life, config, { source: true, wait: 'short', opened });
      await resumeRun(context, runId);
      await workUntilEnd(cli, context, runId, flags);
    });
}

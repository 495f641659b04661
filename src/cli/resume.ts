import type { Command } from 'commander';
import { resumeRun } from '../jobs/runs.ts';
import { openWorkContext } from './app.ts';
import { parseRunId } from './args.ts';
import { type Cli, examples } from './command.ts';
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
      const context = await openWorkContext(cli.life);
      await resumeRun(context, runId);
      await workUntilEnd(cli, context, runId, flags);
    });
}

import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { cancelRun } from '../jobs/runs/runs.ts';
import { reportRun } from '../load/state/reports.ts';
import { parseRunId } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { plural, print, printJson } from './output.ts';

export function cancelCommand(program: Command, cli: Cli): Command {
  return program
    .command('cancel')
    .description('Call a run off. What it has loaded stays; what is left is not asked.')
    .argument('<id>', 'number of the run')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples('eod cancel 12'))
    .action(async (id: string, flags: { readonly json?: boolean }) => {
      const runId = parseRunId(id);
      const context = await openContext(cli.life, loadConfig());
      await cancelRun(context, runId);
      const report = await reportRun(context.db.drizzle, runId);
      if (flags.json === true) printJson(report);
      else print(`run ${runId} ${report.state}: ${plural(report.windows.cancelled, 'window')} called off`);
    });
}

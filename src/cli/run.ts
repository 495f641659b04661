import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { reportRun } from '../load/state/reports.ts';
import { parseRunId } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { print, printJson } from './output.ts';
import { failuresText, runText } from './run-view.ts';

export function runCommand(program: Command, cli: Cli): Command {
  return program
    .command('run')
    .description('Everything about one run.')
    .argument('<id>', 'number of the run')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples('eod run 12', 'eod run 12 --json'))
    .action(async (id: string, flags: { readonly json?: boolean }) => {
      const runId = parseRunId(id);
      const context = await openContext(cli.life, loadConfig());
      const report = await reportRun(context.db.drizzle, runId);
      if (flags.json === true) return printJson(report);
      const failures = failuresText(report);
      print(failures === null ? runText(report) : `${runText(report)}\n\n${failures}`);
    });
}

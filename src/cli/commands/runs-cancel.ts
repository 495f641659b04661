import { confirm, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { numberOf, yesOption } from '../options.ts';
import { plural } from '../output.ts';

export default defineCommand({
  path: 'runs cancel',
  summary: 'Cancel a run. What it has loaded stays; the rest is not requested.',
  args: { id: numberOf('run') },
  options: { yes: yesOption },
  examples: ['eod runs cancel 12'],
  async run(cli, { id, json, yes }) {
    const { cancelRun } = await import('../../jobs/runs/run-control.ts');
    const { reportRun } = await import('../../state/runs/reports.ts');
    const { openContext } = await import('../open-context.ts');
    const context = await openContext(cli);
    const { state, windows } = await reportRun(context, id);
    if (state === 'running' || state === 'paused') {
      const warning = `Run ${id} is cancelled for good: ${plural(windows.open, 'window')} will not be loaded by it.`;
      if (!(await confirm(cli, warning, yes))) return;
    }
    await cancelRun(context, id);
    const report = await reportRun(context, id);
    if (json) return printJson(cli, report);
    print(cli, `run ${id} ${report.state}: ${plural(report.windows.cancelled, 'window')} cancelled`);
  },
});

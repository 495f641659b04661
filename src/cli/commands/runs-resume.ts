import { usageError } from '../../core/errors.ts';
import { defineCommand } from '../define-command.ts';
import { numberOf } from '../options.ts';

export default defineCommand({
  path: 'runs resume',
  summary: 'Continue a run: what is left of a stopped one, or what failed.',
  args: { id: numberOf('run') },
  examples: ['eod runs resume 12'],
  async run(cli, { id, json }) {
    const { reopenRun, resumeRun } = await import('../../jobs/runs/run-control.ts');
    const { reportRun } = await import('../../state/runs/reports.ts');
    const { completeContext, openContext } = await import('../open-context.ts');
    const { printEnding, workOnReplay, workOnRun } = await import('../work-on-run.ts');
    const opened = await openContext(cli, { wait: 'short' });
    const { kind } = await reportRun(opened, id);
    if (kind === 'import') {
      throw usageError(
        `run ${id} is an import: import the same files again; those that were loaded are skipped`,
      );
    }
    // A replay makes no calls: it needs neither the queue nor the source's settings.
    if (kind === 'replay') {
      await reopenRun(opened, id);
      return printEnding(cli, await workOnReplay(cli, opened, id), json, opened.config);
    }
    const context = await completeContext(cli, opened, 'short');
    await resumeRun(context, id);
    printEnding(cli, await workOnRun(cli, context, id), json, opened.config);
  },
});

import type { pruneRuns } from '../../jobs/runs/prune-runs.ts';
import { confirm, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { flag, yesOption } from '../options.ts';
import { count, plural } from '../output.ts';

export default defineCommand({
  path: 'prune',
  group: 'Repair',
  summary:
    'Delete runs older than EOD_KEEP_RUNS_DAYS and what they left: windows, alerts, resolved rejects. Rows and kept responses stay.',
  options: { dryRun: flag('only show what would be deleted'), yes: yesOption },
  examples: ['eod prune', 'eod prune --dry-run'],
  async run(cli, { dryRun: isDryRun, yes, json }) {
    const { pruneRuns } = await import('../../jobs/runs/prune-runs.ts');
    const { openContext } = await import('../open-context.ts');
    const context = await openContext(cli);
    const age = plural(context.config.EOD_KEEP_RUNS_DAYS, 'day');
    // What would be deleted is only counted if somebody can confirm.
    if (!isDryRun && !yes && cli.ask !== undefined) {
      const old = deletedText(await pruneRuns(context, true));
      if (old !== null && !(await confirm(cli, `This deletes for good ${old}.`, yes))) return;
    }
    const pruned = await pruneRuns(context, isDryRun);
    if (json) return printJson(cli, { isDryRun, ...pruned });
    const deleted = deletedText(pruned);
    if (deleted === null) return print(cli, `nothing is older than ${age}`);
    print(cli, `${isDryRun ? 'would delete' : 'deleted'} ${deleted}; nothing else was older than ${age}`);
  },
});

/** What is deleted, as a list of those kinds of which there is something; null if there is nothing. */
function deletedText(gone: Awaited<ReturnType<typeof pruneRuns>>): string | null {
  const megabytes = count(Math.round(gone.bytes / 10_000) / 100);
  const parts: readonly (readonly [number, string])[] = [
    [gone.runs, plural(gone.runs, 'run')],
    [gone.windows, plural(gone.windows, 'window')],
    [gone.alerts, plural(gone.alerts, 'alert')],
    [gone.rejects, plural(gone.rejects, 'resolved reject')],
    [gone.withdrawals, plural(gone.withdrawals, 'outdated withdrawal')],
    [gone.findings, plural(gone.findings, 'resolved finding')],
    [gone.hours, `the counts of calls of ${plural(gone.hours, 'hour')}`],
    [gone.bodies, `${plural(gone.bodies, 'unreadable response')} (${megabytes} MB)`],
  ];
  const texts = parts.flatMap(([rows, text]) => (rows === 0 ? [] : [text]));
  return texts.length === 0 ? null : texts.join(', ');
}

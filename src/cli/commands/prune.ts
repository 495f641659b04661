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
      const preview = deletedText(await pruneRuns(context, true));
      if (preview !== null && !(await confirm(cli, `This permanently deletes ${preview}.`, yes))) return;
    }
    const pruned = await pruneRuns(context, isDryRun);
    if (json) return printJson(cli, { isDryRun, ...pruned });
    const deleted = deletedText(pruned);
    if (deleted === null) return print(cli, `nothing is older than ${age}`);
    print(cli, `${isDryRun ? 'would delete' : 'deleted'} ${deleted}; nothing else was older than ${age}`);
  },
});

/** What is deleted, by kind, without the kinds of which there is nothing; null if nothing is. */
function deletedText(pruned: Awaited<ReturnType<typeof pruneRuns>>): string | null {
  const megabytes = count(Math.round(pruned.bytes / 10_000) / 100);
  const parts: readonly (readonly [number, string])[] = [
    [pruned.runs, plural(pruned.runs, 'run')],
    [pruned.windows, plural(pruned.windows, 'window')],
    [pruned.alerts, plural(pruned.alerts, 'alert')],
    [pruned.rejects, plural(pruned.rejects, 'resolved reject')],
    [pruned.withdrawals, plural(pruned.withdrawals, 'outdated withdrawal')],
    [pruned.findings, plural(pruned.findings, 'resolved finding')],
    [pruned.hours, `the call counts of ${plural(pruned.hours, 'hour')}`],
    [pruned.bodies, `${plural(pruned.bodies, 'unreadable response')} (${megabytes} MB)`],
  ];
  const texts = parts.filter(([rows]) => rows > 0).map(([, text]) => text);
  return texts.length === 0 ? null : texts.join(', ');
}

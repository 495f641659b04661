import { pruneRuns } from '../../jobs/runs/prune-runs.ts';
import { type Cli, confirm, type JsonFlag, loadSettings, print, printJson, type YesFlag } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { count, plural } from '../output.ts';

interface Flags extends JsonFlag, YesFlag {
  readonly dryRun?: boolean;
}

export async function pruneAll(cli: Cli, flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const context = await openContext(cli, { config });
  const isDryRun = flags.dryRun === true;
  const textOf = (gone: Awaited<ReturnType<typeof pruneRuns>>) => {
    const megabytes = count(Math.round(gone.bytes / 10_000) / 100);
    return `of more than ${plural(config.EOD_KEEP_RUNS_DAYS, 'day')} ago ${plural(gone.runs, 'run')}, ${plural(gone.windows, 'window')}, ${plural(gone.alerts, 'alert')}, ${plural(gone.rejects, 'resolved reject')}, ${plural(gone.withdrawals, 'outdated withdrawal')}, ${plural(gone.findings, 'resolved finding')} and the calls of ${plural(gone.hours, 'hour')}, and ${count(gone.bodies)} bodies that could not be read (${megabytes} MB)`;
  };
  // What would be deleted is only counted if somebody can confirm.
  if (!isDryRun && flags.yes !== true && cli.ask !== undefined) {
    const what = `This deletes for good ${textOf(await pruneRuns(context, true))}.`;
    if (!(await confirm(cli, what, flags))) return;
  }
  const pruned = await pruneRuns(context, isDryRun);
  if (flags.json === true) printJson(cli, { isDryRun, ...pruned });
  else print(cli, `${isDryRun ? 'would delete' : 'deleted'} ${textOf(pruned)}`);
}

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
  const age = plural(config.EOD_KEEP_RUNS_DAYS, 'day');
  // What would be deleted is only counted if somebody can confirm.
  if (!isDryRun && flags.yes !== true && cli.ask !== undefined) {
    const old = deletedText(await pruneRuns(context, true));
    if (old !== null && !(await confirm(cli, `This deletes for good ${old}.`, flags))) return;
  }
  const pruned = await pruneRuns(context, isDryRun);
  if (flags.json === true) return printJson(cli, { isDryRun, ...pruned });
  const deleted = deletedText(pruned);
  if (deleted === null) return print(cli, `nothing is older than ${age}`);
  print(cli, `${isDryRun ? 'would delete' : 'deleted'} ${deleted}; nothing else was older than ${age}`);
}

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

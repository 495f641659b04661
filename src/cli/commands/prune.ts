import { DAY_MS } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import { type Cli, type Commands, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { confirm, type YesFlag, yesOption } from '../confirm.ts';
import { examples, integerOption, jsonOption } from '../options.ts';
import { count, plural } from '../output.ts';

interface Flags extends JsonFlag, YesFlag {
  readonly days?: number;
  readonly dryRun?: boolean;
}

export const commands: Commands = {
  prune(command, cli) {
    command
      .addOption(
        integerOption('--days <n>', 'older than this many days (default: EOD_KEEP_RAW_DAYS)', {
          least: 0,
          most: 999_999,
        }),
      )
      .option('--dry-run', 'only show what would be deleted')
      .addOption(yesOption())
      .addOption(jsonOption())
      .addHelpText('after', examples('eod prune', 'eod prune --days 400 --dry-run'))
      .action((flags: Flags) => pruneAnswers(cli, flags));
  },
};

async function pruneAnswers(cli: Cli, flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const days = flags.days ?? config.EOD_KEEP_RAW_DAYS;
  if (days === undefined) {
    throw usageError('answers are kept forever: set EOD_KEEP_RAW_DAYS or give --days');
  }
  const { openContext } = await import('../open-context.ts');
  const { pruneRejects } = await import('../../load/state/rejects.ts');
  const { pruneFindings } = await import('../../load/state/findings.ts');
  const { pruneHours } = await import('../../load/state/source/call-budget.ts');
  const { prunable, prune } = await import('../../load/state/answers/answers.ts');
  const { pruneRuns } = await import('../../jobs/runs/prune-runs.ts');
  const context = await openContext(cli, { config });
  const { db, clock } = context;
  const before = new Date(clock.now() - days * DAY_MS);
  const isDryRun = flags.dryRun === true;
  const pruneAll = async (only: boolean) => {
    return {
      ...(only ? await prunable(db.drizzle, before) : await prune(db, before)),
      rejects: await pruneRejects(db.drizzle, before, only),
      findings: await pruneFindings(db.drizzle, before, only),
      hours: await pruneHours(db.drizzle, before, only),
      ...(await pruneRuns(context, only)),
    };
  };
  const textOf = ({
    answers,
    bodies,
    bytes,
    rejects,
    findings,
    hours,
    ...old
  }: Awaited<ReturnType<typeof pruneAll>>) => {
    const megabytes = count(Math.round(bytes / 10_000) / 100);
    return `${plural(answers, 'answer')} older than ${plural(days, 'day')} and ${count(bodies)} bodies (${megabytes} MB), ${plural(rejects, 'reject')} and ${plural(findings, 'finding')} resolved before that, the calls counted in ${plural(hours, 'hour')}, and of more than ${plural(config.EOD_KEEP_RUNS_DAYS, 'day')} ago ${plural(old.runs, 'run')}, ${plural(old.windows, 'window')}, ${plural(old.alerts, 'alert')} and ${plural(old.withdrawals, 'outdated withdrawal')}`;
  };
  // What would be deleted is only counted if somebody can be asked.
  if (!isDryRun && flags.yes !== true && cli.ask !== undefined) {
    const what = `This deletes for good ${textOf(await pruneAll(true))}.`;
    if (!(await confirm(cli, what, flags))) return;
  }
  const pruned = await pruneAll(isDryRun);
  if (flags.json === true) return printJson(cli, { before: before.toISOString(), isDryRun, ...pruned });
  print(cli, `${isDryRun ? 'would delete' : 'deleted'} ${textOf(pruned)}`);
}

import { DAY_MS } from '../../core/days.ts';
import { pruneRuns } from '../../jobs/runs/prune-runs.ts';
import { readServerTime } from '../../load/database/inspect.ts';
import { pruneRejects } from '../../load/state/rejects.ts';
import { prunable, prune } from '../../load/state/responses/responses.ts';
import {
  type Cli,
  confirm,
  type JsonFlag,
  loadSettings,
  logNote,
  print,
  printJson,
  type YesFlag,
} from '../cli.ts';
import { openContext } from '../open-context.ts';
import { count, plural } from '../output.ts';

interface Flags extends JsonFlag, YesFlag {
  readonly days?: number;
  readonly dryRun?: boolean;
}

const NOTHING = { responses: 0, bodies: 0, bytes: 0, rejects: 0 };

export async function pruneAll(cli: Cli, flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const days = flags.days ?? config.EOD_KEEP_RAW_DAYS;
  const context = await openContext(cli, { config });
  const { db } = context;
  const before = days === undefined ? null : new Date((await readServerTime(db.pool)) - days * DAY_MS);
  const isDryRun = flags.dryRun === true;
  const pruneResponses = async (until: Date, only: boolean) => ({
    ...(only ? await prunable(db.drizzle, until) : await prune(db, until)),
    rejects: await pruneRejects(db.drizzle, until, only),
  });
  const pruneBoth = async (only: boolean) => ({
    ...(before === null ? NOTHING : await pruneResponses(before, only)),
    ...(await pruneRuns(context, only)),
  });
  const textOf = (gone: Awaited<ReturnType<typeof pruneBoth>>) => {
    const megabytes = count(Math.round(gone.bytes / 10_000) / 100);
    const responses =
      days === undefined
        ? ''
        : `${plural(gone.responses, 'response')} older than ${plural(days, 'day')} and ${count(gone.bodies)} bodies (${megabytes} MB) and ${plural(gone.rejects, 'reject')} resolved before that, and `;
    return `${responses}of more than ${plural(config.EOD_KEEP_RUNS_DAYS, 'day')} ago ${plural(gone.runs, 'run')}, ${plural(gone.windows, 'window')}, ${plural(gone.alerts, 'alert')}, ${plural(gone.withdrawals, 'outdated withdrawal')}, ${plural(gone.findings, 'resolved finding')} and the calls of ${plural(gone.hours, 'hour')}`;
  };
  // What would be deleted is only counted if somebody can confirm.
  if (!isDryRun && flags.yes !== true && cli.ask !== undefined) {
    const what = `This deletes for good ${textOf(await pruneBoth(true))}.`;
    if (!(await confirm(cli, what, flags))) return;
  }
  const pruned = await pruneBoth(isDryRun);
  if (flags.json === true) {
    printJson(cli, { before: before?.toISOString() ?? null, isDryRun, ...pruned });
  } else {
    print(cli, `${isDryRun ? 'would delete' : 'deleted'} ${textOf(pruned)}`);
  }
  if (before === null) {
    logNote(
      cli,
      'eod: responses, and rejects that are resolved, are kept forever: to delete old ones, set EOD_KEEP_RAW_DAYS or give --days',
    );
  }
}

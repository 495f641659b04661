import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import { prunable, prune } from '../load/state/responses.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { count, plural, print, printJson } from './output.ts';

const DAY_MS = 86_400_000;

interface Flags {
  readonly days?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

export function pruneCommand(program: Command, cli: Cli): Command {
  return program
    .command('prune')
    .description(
      'Delete kept answers and imported files that are older than EOD_KEEP_RAW_DAYS. Tables keep all they hold.',
    )
    .option('--days <n>', 'older than this many days, instead of EOD_KEEP_RAW_DAYS')
    .option('--dry-run', 'only say what would be deleted')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples('eod prune', 'eod prune --days 400 --dry-run'))
    .action((flags: Flags) => pruneAnswers(cli, flags));
}

async function pruneAnswers(cli: Cli, flags: Flags): Promise<void> {
  const config = loadConfig();
  if (flags.days !== undefined && !/^\d{1,6}$/.test(flags.days)) {
    throw usageError(`--days: "${flags.days}" is not a whole number of days`);
  }
  const days = flags.days === undefined ? config.EOD_KEEP_RAW_DAYS : Number(flags.days);
  if (days === undefined) {
    throw usageError('answers are kept forever: set EOD_KEEP_RAW_DAYS or give --days');
  }
  const { db, clock } = await openContext(cli.life, config);
  const before = new Date(clock.now() - days * DAY_MS);
  const dryRun = flags.dryRun === true;
  const pruned = dryRun ? await prunable(db.drizzle, before) : await prune(db, before);
  if (flags.json === true) return printJson({ before: before.toISOString(), dryRun, ...pruned });
  const megabytes = count(Math.round(pruned.bytes / 10_000) / 100);
  print(
    `${dryRun ? 'would delete' : 'deleted'} ${plural(pruned.responses, 'answer')} older than ${plural(days, 'day')} and ${count(pruned.bodies)} bodies (${megabytes} MB)`,
  );
}

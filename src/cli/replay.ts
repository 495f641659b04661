import type { Command } from 'commander';
import { systemClock } from '../core/clock.ts';
import { loadConfig } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import type { Context } from '../jobs/context.ts';
import { planReplay } from '../jobs/replay/plan.ts';
import { openDatabase } from '../load/database/database.ts';
import { schemaState } from '../load/database/migrate.ts';
import { type AnswerFilter, copyAnswers } from '../load/state/responses.ts';
import { parseDay, parseExchanges, parseOperations } from './args.ts';
import { type Cli, examples } from './command.ts';
import { arrivalOf, openContext } from './context.ts';
import { plural, print, printJson, say } from './output.ts';
import { checkPostgres } from './reachable.ts';
import { replayUntilEnd } from './replay-work.ts';
import { exitCodeOf, failuresText, runText } from './run-view.ts';

interface Flags {
  readonly from?: string;
  readonly to?: string;
  readonly exchange?: string;
  readonly rejects?: boolean;
  readonly source?: string;
  readonly json?: boolean;
}

export function replayCommand(program: Command, cli: Cli): Command {
  return program
    .command('replay')
    .description(
      'Read and load kept answers and imported files again with the code of today; nothing is asked of the source.',
    )
    .argument('[operations...]', 'operations to replay, in any case (default: all)')
    .option('--from <day>', 'only answers about days from here, YYYY-MM-DD')
    .option('--to <day>', 'only answers about days to here, YYYY-MM-DD')
    .option('--exchange <list>', 'only these exchanges, e.g. NSE,BSE')
    .option('--rejects', 'only what was refused and is not settled yet')
    .option('--source <url>', 'take the answers from another database: postgres://…')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      examples(
        'eod replay',
        'eod replay GetBhavCopyCM --from 2025-02-20 --to 2025-02-27',
        'eod replay --rejects',
        'DATABASE_URL=postgres://…/fresh eod replay --source postgres://…/eod',
      ),
    )
    .action((names: string[], flags: Flags) => replay(cli, names, flags));
}

async function replay(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = loadConfig();
  const filter = filterOf(names, flags, config);
  const context = await openContext(cli.life, config, { wait: 'short' });
  if (flags.source !== undefined) await copyFrom(cli, context, flags.source, filter);
  const runId = cli.life.signal.aborted
    ? null
    : await planReplay(context, filter, { rejectsOnly: flags.rejects === true });
  if (runId === null) {
    cli.exitCode = cli.life.cutShort() ?? 0;
    if (flags.rejects !== true) throw usageError('no answer is kept that this could replay');
    if (flags.json === true) printJson(null);
    else print('nothing to replay: no reject is open of which anything is kept');
    return;
  }
  await workAndPrint(cli, context, runId, flags);
}

/** Works on a replay to its end, prints its report, and sets an honest exit code. */
export async function workAndPrint(
  cli: Cli,
  context: Context,
  runId: number,
  flags: { readonly json?: boolean },
): Promise<void> {
  const { report, interrupted } = await replayUntilEnd(cli, context, runId);
  if (flags.json === true) printJson(report);
  else print(runText(report));
  const failures = failuresText(report);
  if (failures !== null) say(failures);
  cli.exitCode = (interrupted ? cli.life.cutShort() : null) ?? exitCodeOf(report);
}

function filterOf(names: readonly string[], flags: Flags, config: Context['config']): AnswerFilter {
  const day = (flag: '--from' | '--to', text: string | undefined) =>
    text === undefined ? undefined : parseDay(flag, text, { config, clock: systemClock });
  const filter = {
    operations: names.length === 0 ? undefined : parseOperations(names, false).map((one) => one.name),
    exchanges: parseExchanges(flags.exchange),
    from: day('--from', flags.from),
    to: day('--to', flags.to),
  };
  if (filter.from !== undefined && filter.to !== undefined && filter.from > filter.to) {
    throw usageError(`--from ${filter.from} is after --to ${filter.to}: the range is reversed`);
  }
  return filter;
}

async function copyFrom(cli: Cli, context: Context, url: string, filter: AnswerFilter): Promise<void> {
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url)) {
    throw usageError('--source is not an address that starts with postgres://');
  }
  await cli.life.open(() => checkPostgres(url, arrivalOf(cli.life, context.config, 'short')));
  const source = await cli.life.open(
    async () => openDatabase({ url, connections: 2, log: context.log }),
    (opened) => opened.close(),
  );
  if ((await schemaState(source)) === 'missing') throw usageError('--source holds no tables of eod');
  const copied = await copyAnswers(source.drizzle, context.db, filter, cli.life.signal);
  say(`${plural(copied, 'answer')} taken over`);
}

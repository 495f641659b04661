import { usageError } from '../../core/errors.ts';
import type { withdrawalsHeldBack } from '../../load/state/withdrawals.ts';
import { type Cli, type Commands, type JsonFlag, print, printJson } from '../cli.ts';
import {
  examples,
  integerOption,
  jsonOption,
  limitOption,
  listOf,
  parseId,
  parseListed,
} from '../options.ts';
import { type Column, columnsOf, count, momentText, plural, table } from '../output.ts';

type HeldBack = Awaited<ReturnType<typeof withdrawalsHeldBack>>[number];

interface Flags extends JsonFlag {
  readonly accept?: number;
  readonly limit: number;
}

/** How many rows of each are shown as examples. */
const SAMPLES = 3;

const COLUMNS: readonly Column<HeldBack>[] = [
  { head: 'withdrawal', cell: (one) => one.id },
  ...columnsOf<HeldBack>('operation', 'exchange'),
  { head: 'day', cell: (one) => one.day ?? '' },
  { head: 'not listed', cell: (one) => one.gone },
  { head: 'would be left', cell: (one) => one.left },
  { head: 'most', cell: (one) => one.most },
  { head: 'for example', cell: (one) => one.rows.map(sampleText).join('; ') },
];

/** The key of a row without what other columns of the table show. */
function sampleText(row: HeldBack['rows'][number]): string {
  return Object.entries(row)
    .filter(([column, value]) => column !== 'exchange' && !column.endsWith('_date') && value)
    .map(([, value]) => value)
    .join(' ');
}

/** The older spelling of the verb, which lists nothing. */
const acceptOption = () =>
  integerOption('--accept <id>', 'the same as the verb "accept"', { least: 1 }).hideHelp().conflicts('limit');

export const commands: Commands = {
  withdrawals(command, cli) {
    command.addHelpText(
      'after',
      examples('eod withdrawals', 'eod withdrawals 4', 'eod withdrawals accept 4'),
    );
    listOf(command, 'the number of a withdrawal')
      .argument('[id]', 'number of a withdrawal, to show all its rows')
      .addOption(acceptOption())
      .addOption(limitOption(50))
      .addOption(jsonOption())
      .action((id: string | undefined, flags: Flags) => {
        if (flags.accept !== undefined) return accept(cli, flags.accept, flags);
        return id === undefined ? list(cli, flags) : show(cli, parseListed(command, 'withdrawal', id), flags);
      });
    command
      .command('accept')
      .description('Withdraw the rows of one, because the source is right.')
      .argument('<id>', 'number of the withdrawal', (text) => parseId('withdrawal', text))
      .addOption(jsonOption())
      .action((id: number, flags: JsonFlag) => accept(cli, id, flags));
  },
};

const notFound = (id: number) =>
  usageError(`no withdrawal ${id} is waiting for a decision ("eod withdrawals" lists them)`);

async function show(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const { readHeldBack } = await import('../../load/state/withdrawals.ts');
  const { db, config } = await openContext(cli);
  const found = await readHeldBack(db.drizzle, id);
  if (found === null) throw notFound(id);
  if (flags.json === true) return printJson(cli, found);
  const { table: name, exchange, day, gone, left, most, reason, runId, windowId } = found;
  print(
    cli,
    [
      `withdrawal ${id}: ${[`market.${name}`, exchange, day].filter(Boolean).join(' ')}`,
      `${plural(gone, 'row')} not listed any more, ${count(left)} would be left, of at most ${count(most)}`,
      ...(reason === null ? [] : [reason]),
      `by run ${runId}, window ${windowId}; noted at ${momentText(found.notedAt, config.EOD_TIMEZONE)} (${config.EOD_TIMEZONE})`,
      '',
      ...found.rows.map((row) => `  ${sampleText(row)}`),
    ].join('\n'),
  );
}

async function list(cli: Cli, flags: Flags): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const withdrawals = await import('../../load/state/withdrawals.ts');
  const { db } = await openContext(cli);
  const heldBack = await withdrawals.withdrawalsHeldBack(db.drizzle, flags.limit, SAMPLES);
  if (flags.json === true) return printJson(cli, heldBack);
  print(cli, heldBack.length === 0 ? 'no withdrawal is waiting for a decision' : table(COLUMNS, heldBack));
}

async function accept(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const { acceptWithdrawal } = await import('../../load/market/accept-withdrawal.ts');
  const { requesterName } = await import('../../core/environment.ts');
  const { readToFold } = await import('../../jobs/worker/store-answer.ts');
  const context = await openContext(cli);
  const accepted = await acceptWithdrawal(context.db, id, {
    by: requesterName(),
    readAgain: (answer) => readToFold(context, answer),
    maxWithdrawShare: context.config.EOD_MAX_WITHDRAW_SHARE,
  });
  if (accepted === null) throw notFound(id);
  if (flags.json === true) return printJson(cli, accepted);
  const { table: name, exchange, day, withdrawn, left } = accepted;
  const where = [`market.${name}`, exchange, day].filter(Boolean).join(' ');
  print(cli, `${where}: ${plural(withdrawn, 'row')} withdrawn, ${count(left)} left`);
}

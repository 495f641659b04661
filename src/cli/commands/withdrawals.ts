import { usageError } from '../../core/errors.ts';
import type { refusedWithdrawals } from '../../load/state/withdrawals.ts';
import { type Cli, type Commands, type JsonFlag, print, printJson } from '../cli.ts';
import { examples, jsonOption, limitOption, wholeNumberOption } from '../options.ts';
import { type Column, count, plural, table } from '../output.ts';

type Refused = Awaited<ReturnType<typeof refusedWithdrawals>>[number];

interface Flags extends JsonFlag {
  readonly accept?: number;
  readonly limit: number;
}

/** How many rows of each are shown as examples. */
const SAMPLES = 3;

const COLUMNS: readonly Column<Refused>[] = [
  { head: 'withdrawal', cell: (one) => one.id },
  { head: 'operation', cell: (one) => one.operation },
  { head: 'exchange', cell: (one) => one.exchange },
  { head: 'day', cell: (one) => one.day ?? '' },
  { head: 'not listed', cell: (one) => one.gone },
  { head: 'would be left', cell: (one) => one.left },
  { head: 'most', cell: (one) => one.most },
  { head: 'for example', cell: (one) => one.rows.map(sampleText).join('; ') },
];

/** The key of a row without what other columns of the table show. */
function sampleText(row: Refused['rows'][number]): string {
  return Object.entries(row)
    .filter(([column, value]) => column !== 'exchange' && !column.endsWith('_date') && value)
    .map(([, value]) => value)
    .join(' ');
}

export const commands: Commands = {
  withdrawals(command, cli) {
    command
      .addOption(
        wholeNumberOption('--accept <id>', 'withdraw these rows, because the source is right', {
          least: 1,
        }),
      )
      .addOption(limitOption(50))
      .addOption(jsonOption())
      .addHelpText('after', examples('eod withdrawals', 'eod withdrawals --accept 4'))
      .action((flags: Flags) =>
        flags.accept === undefined ? list(cli, flags) : accept(cli, flags.accept, flags),
      );
  },
};

async function list(cli: Cli, flags: Flags): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const withdrawals = await import('../../load/state/withdrawals.ts');
  const { db } = await openContext(cli);
  const refused = await withdrawals.refusedWithdrawals(db.drizzle, flags.limit, SAMPLES);
  if (flags.json === true) return printJson(cli, refused);
  print(cli, refused.length === 0 ? 'no withdrawal is waiting for a decision' : table(COLUMNS, refused));
}

async function accept(cli: Cli, id: number, flags: Flags): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const { acceptWithdrawal } = await import('../../load/market/accept-withdrawal.ts');
  const { requesterName } = await import('../../core/environment.ts');
  const { readToFold } = await import('../../jobs/worker/store-answer.ts');
  const context = await openContext(cli);
  const accepted = await acceptWithdrawal(context.db, id, {
    by: requesterName(),
    readKept: (kept) => readToFold(context, kept),
    maxWithdrawShare: context.config.EOD_MAX_WITHDRAW_SHARE,
  });
  if (accepted === null)
    throw usageError(`no withdrawal ${id} is waiting for a decision ("eod withdrawals" lists them)`);
  if (flags.json === true) return printJson(cli, accepted);
  const { table: name, exchange, day, withdrawn, left } = accepted;
  const where = [`market.${name}`, exchange, day].filter(Boolean).join(' ');
  print(cli, `${where}: ${plural(withdrawn, 'row')} withdrawn, ${count(left)} left`);
}

import { requesterName } from '../../core/environment.ts';
import { updateDerived } from '../../jobs/events/update-derived.ts';
import { readToFold } from '../../jobs/responses/store-response.ts';
import { acceptWithdrawal } from '../../load/accept-withdrawal.ts';
import { type Cli, type JsonFlag, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { count, plural } from '../output.ts';
import { notFound } from './withdrawals-command.ts';

export async function accept(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const context = await openContext(cli);
  const accepted = await acceptWithdrawal(context.db, id, {
    by: requesterName(),
    readAgain: (response) => readToFold(context, response),
    maxWithdrawShare: context.config.EOD_MAX_WITHDRAW_SHARE,
  });
  if (accepted === null) throw notFound(id);
  await updateDerived(context);
  if (flags.json === true) return printJson(cli, accepted);
  const { table: name, exchange, day, withdrawn, left } = accepted;
  const where = [`market.${name}`, exchange, day].filter(Boolean).join(' ');
  print(cli, `${where}: ${plural(withdrawn, 'row')} withdrawn, ${count(left)} left`);
}

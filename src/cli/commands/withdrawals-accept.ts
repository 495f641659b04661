import { requesterName } from '../../core/environment.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { numberOf } from '../options.ts';
import { count, plural } from '../output.ts';
import { noSuchWithdrawal } from './withdrawals.ts';

export default defineCommand({
  path: 'withdrawals accept',
  summary: 'Withdraw the rows of one: the source is right.',
  args: { id: numberOf('withdrawal') },
  async run(cli, { id, json }) {
    const { updateDerived } = await import('../../jobs/events/update-derived.ts');
    const { buildFoldSettings } = await import('../../jobs/responses/store-response.ts');
    const { acceptWithdrawal } = await import('../../load/accept-withdrawal.ts');
    const { openContext } = await import('../open-context.ts');
    const context = await openContext(cli);
    const settings = buildFoldSettings(context);
    const accepted = await acceptWithdrawal(context.db, id, { by: requesterName(), ...settings });
    if (accepted === null) throw noSuchWithdrawal(id);
    await updateDerived(context);
    if (json) return printJson(cli, accepted);
    const { table: name, exchange, day, withdrawn, left } = accepted;
    const where = [`market.${name}`, exchange, day].filter(Boolean).join(' ');
    print(cli, `${where}: ${plural(withdrawn, 'row')} withdrawn, ${count(left)} left`);
  },
});

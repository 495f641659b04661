import { exampleDays } from '../../core/clock.ts';
import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { optionalNumberOf } from '../options.ts';
import { plural } from '../output.ts';
import { readRejectFilter, rejectFilterOptions } from './rejects.ts';

const { from } = exampleDays();

export default defineCommand({
  path: 'rejects accept',
  summary:
    'Accept that a record cannot be stored, so that it is no longer listed: one, or all that match. The same record stays accepted when it is sent again.',
  args: { id: optionalNumberOf('reject') },
  options: rejectFilterOptions,
  examples: [
    'eod rejects accept 17',
    `eod rejects accept --operation bhavcopy_cm --from ${from} --to ${from}`,
  ],
  async run(cli, { json, ...values }) {
    const { acceptRejects } = await import('../../state/rejects.ts');
    const { openContext } = await import('../open-context.ts');
    const { id } = values;
    if (Object.values(values).every((value) => value === undefined))
      throw usageError('say which: eod rejects accept 17, or --operation, --exchange, --from and --to');
    const filter = { ...readRejectFilter(values), ...(id === undefined ? {} : { ids: [id] }) };
    const { drizzle } = (await openContext(cli)).db;
    const accepted = await acceptRejects(drizzle, filter, requesterName());
    if (id !== undefined && accepted === 0)
      throw usageError(
        `reject ${id} cannot be accepted: it is not open, or nothing of its response was stored ("eod issues" has the command)`,
      );
    if (json) return printJson(cli, { accepted });
    print(
      cli,
      accepted === 0
        ? 'no matching reject is open and part of a response that was stored'
        : `${plural(accepted, 'reject')} accepted: not stored, and no longer listed`,
    );
  },
});

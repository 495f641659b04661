import { exampleDays } from '../../core/clock.ts';
import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { optionalNumberOf } from '../options.ts';
import { plural } from '../output.ts';
import { findingFilterOptions, readFindingFilter } from './findings.ts';

const { from } = exampleDays();

export default defineCommand({
  path: 'findings accept',
  summary:
    'Accept that the data is so: of one finding, or of all that match. They are listed again once either value changes.',
  args: { id: optionalNumberOf('finding') },
  options: findingFilterOptions,
  examples: [
    'eod findings accept 3',
    `eod findings accept --check previous_close --from ${from} --to ${from}`,
  ],
  async run(cli, { json, ...values }) {
    const { acceptFindings } = await import('../../state/findings.ts');
    const { openContext } = await import('../open-context.ts');
    const { id } = values;
    if (Object.values(values).every((value) => value === undefined))
      throw usageError('say which: eod findings accept 3, or --check, --exchange, --from and --to');
    const filter = await readFindingFilter(values);
    const { db } = await openContext(cli);
    const accepted = await acceptFindings(db.drizzle, { ...filter, id }, requesterName());
    if (id !== undefined && accepted === 0)
      throw usageError(`there is no open finding ${id} ("eod findings" lists them)`);
    if (json) return printJson(cli, { accepted });
    print(
      cli,
      accepted === 0
        ? 'no open finding matches'
        : `${plural(accepted, 'finding')} accepted: listed again once either value changes`,
    );
  },
});

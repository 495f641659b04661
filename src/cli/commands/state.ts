import { exampleDays } from '../../core/clock.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { parseMoment, text } from '../options.ts';
import { momentText } from '../output.ts';

export default defineCommand({
  path: 'state',
  group: 'Look',
  summary:
    'Show the number of the current state of the tables, or of a past one. Written down with a report, it finds the same rows again.',
  options: { at: text('<time>', 'the state at that time: a day, or a time with its zone') },
  examples: ['eod state', `eod state --at ${exampleDays().to}T21:00:00+05:30 --json`],
  async run(cli, values) {
    const { readStateNumber } = await import('../../state/loads/state-numbers.ts');
    const { openReadable } = await import('../open-readable.ts');
    const config = await loadSettings(cli);
    const at = values.at === undefined ? null : parseMoment('--at', values.at, { config });
    const { db } = await openReadable(cli, 'tables');
    const { stateNumber, committedAt } = await readStateNumber(db.drizzle, at);
    if (values.json) return printJson(cli, { state: stateNumber, committedAt });
    if (committedAt === null) return print(cli, 'database state 0: nothing has been loaded yet');
    const when = momentText(committedAt, config.EOD_TIMEZONE);
    print(
      cli,
      `database state ${stateNumber}, since ${when} (${config.EOD_TIMEZONE})\nmarket_history.<table>_at(${stateNumber}) shows it`,
    );
  },
});

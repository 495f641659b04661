import { usageError } from '../../core/errors.ts';
import { confirm, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { flag, text, yesOption } from '../options.ts';
import { count, plural, wrap } from '../output.ts';

export default defineCommand({
  path: 'events ignore',
  summary:
    'Ignore all events that need review and move the price by less than a percentage. The move is that of the dividend, or of open and close on the ex-date; events without either are left.',
  options: {
    below: text('<percent>', 'those that move the price by less, e.g. 5'),
    dryRun: flag('only show which'),
    yes: yesOption,
  },
  examples: ['eod events ignore --below 5 --dry-run'],
  async run(cli, { dryRun: isDryRun, yes, json, ...values }) {
    const { ignoreEvents, smallEvents } = await import('../../jobs/events/decide-event.ts');
    const { openContext } = await import('../open-context.ts');
    const below = readPercent(values.below);
    const context = await openContext(cli);
    const { small, large, unknown } = await smallEvents(context, below);
    const number = plural(small.length, 'corporate action');
    const warning = `This ignores ${number} that ${small.length === 1 ? 'moves' : 'move'} the price by less than ${below} %.`;
    if (!isDryRun && small.length > 0 && !(await confirm(cli, warning, yes))) return;
    if (!isDryRun) await ignoreEvents(context, small.flat());
    const ids = small.flatMap(([id]) => id ?? []);
    if (json) return printJson(cli, { below, isDryRun, ignored: ids, large, unknown });
    const reasons = [
      ...(large === 0 ? [] : [`${count(large)} may move the price by ${below} % or more`]),
      ...(unknown === 0 ? [] : [`of ${count(unknown)} that is not known`]),
    ];
    print(
      cli,
      wrap(
        [
          ...(isDryRun ? ids : []),
          `${isDryRun ? 'would ignore' : 'ignored'} ${count(small.length)}; ${large + unknown === 0 ? 'none' : count(large + unknown)} left for review${reasons.length === 0 ? '' : `: ${reasons.join(', ')}`}`,
        ].join('\n'),
      ),
    );
  },
});

/** Reads `5` or `5%`. */
function readPercent(text: string | undefined): number {
  if (text === undefined)
    throw usageError('give --below, such as --below 5: what moves the price by less is ignored');
  const value = Number(text.trim().replace(/ ?%$/, '') || Number.NaN);
  if (value > 0 && value <= 100) return value;
  throw usageError(`--below: "${text}" is not a percentage above 0 and up to 100, such as 5`);
}

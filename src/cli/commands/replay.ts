import { exampleDays, systemClock } from '../../core/clock.ts';
import { usageError } from '../../core/errors.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { exchangeOption, flag, onlyDays, several } from '../options.ts';
import { parseDataSet, parseScope } from '../parse-request.ts';

const { from, to } = exampleDays();

export default defineCommand({
  path: 'replay',
  group: 'Repair',
  summary:
    'Read kept responses and imported files again with the current code, and load them. Makes no call to the source.',
  args: { operations: several('operations, or data sets of imported files, to replay (default: all)') },
  options: {
    ...onlyDays('responses about days'),
    exchange: exchangeOption,
    rejects: flag('only responses with rejects that are not resolved yet'),
  },
  examples: ['eod replay', `eod replay GetBhavCopyCM --from ${from} --to ${to}`, 'eod replay --rejects'],
  async run(cli, values) {
    const { planReplay } = await import('../../jobs/replay/plan-replay.ts');
    const { openContext } = await import('../open-context.ts');
    const { printEnding, workOnReplay } = await import('../work-on-run.ts');
    const config = await loadSettings(cli);
    const filter = parseScope(values, parseDataSet, { config, clock: systemClock });
    const context = await openContext(cli, { config, wait: 'short' });
    const runId = await planReplay(context, filter, { rejectsOnly: values.rejects });
    if (runId !== null) return printEnding(cli, await workOnReplay(cli, context, runId), values.json, config);
    if (!values.rejects) throw usageError('nothing to replay: no kept response matches');
    if (values.json) printJson(cli, null);
    else print(cli, 'nothing to replay: no open reject has a kept response');
  },
});

import { exampleDays, systemClock } from '../../core/clock.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { day, detachOption, dryRunOption, flag, repeatable, several, text } from '../options.ts';
import { backfillRequest, requestOptions } from '../parse-request.ts';

const { from, to } = exampleDays();

export default defineCommand({
  path: 'backfill',
  group: 'Load',
  summary: 'Load a range of past days. Days that are loaded already are skipped.',
  args: {
    operations: several(
      'operations to load, by name or by table, in any case: GetBhavCopyCM, bhavcopy_cm (see: eod operations)',
    ),
  },
  options: {
    from: day('first day: YYYY-MM-DD, today or yesterday'),
    to: day('last day, the same'),
    all: flag('every operation'),
    // Not `exchangeOption`: an operation may have exchanges that EXCHANGE_CODES lacks.
    exchange: text('<list>', 'exchanges to request, e.g. NSE,BSE (default: those of each operation)'),
    instruments: text('<list>', 'only these instruments: A,B or @file, a file with one on each line'),
    force: flag('also request what is loaded already'),
    param: repeatable(
      '<name=value>',
      'a request option by its name, or any parameter of the source, sent as it is; may be given several times',
    ),
    dryRun: dryRunOption,
    detach: detachOption,
    ...requestOptions(),
  },
  examples: [
    `eod backfill GetBhavCopyCM --from ${from} --to ${to} --exchange NSE,BSE`,
    `eod backfill --all --from ${from} --to ${to} --dry-run`,
    `eod backfill GetFinRatioEOD --from ${to} --to ${to} --instruments 'TCS,M&M'`,
    `eod backfill GetCircuitBreakers --from ${from} --to ${to} --band H`,
  ],
  async run(cli, { operations, ...values }) {
    const { runRequest } = await import('../work-on-run.ts');
    const config = await loadSettings(cli);
    const request = backfillRequest(operations, values, { config, clock: systemClock, cwd: cli.cwd });
    await runRequest(cli, values, config, async () => request);
  },
});

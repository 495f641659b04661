import { clockOf, exampleDays } from '../../core/clock.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { day, dryRunOption, parseDay } from '../options.ts';

export default defineCommand({
  path: 'nightly',
  group: 'Load',
  summary:
    'Catch up to today: every operation from its last loaded trading day on, and a few trading days before it for late corrections.',
  options: {
    date: day(
      'the night to plan for: YYYY-MM-DD, today or yesterday (default: the last one whose data is due)',
    ),
    dryRun: dryRunOption,
  },
  examples: ['eod nightly', 'eod nightly --dry-run', `eod nightly --date ${exampleDays().to} --json`],
  async run(cli, values) {
    const { lastNight } = await import('../../declaration/night-times.ts');
    const { nightlyRequest } = await import('../../jobs/runs/nightly-request.ts');
    const { runRequest } = await import('../work-on-run.ts');
    const config = await loadSettings(cli);
    const clock = clockOf(config);
    const date =
      values.date === undefined
        ? lastNight(config, clock)
        : parseDay('--date', values.date, { config, clock });
    await runRequest(cli, values, config, (context) => nightlyRequest(context, { date }));
  },
});

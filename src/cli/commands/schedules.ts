import { systemClock } from '../../core/clock.ts';
import type { NextTick } from '../../jobs/runs/night-schedules.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { type Column, table } from '../output.ts';
import { dataSetColumns } from '../shared-texts.ts';

const COLUMNS: readonly Column<NextTick>[] = [
  ...dataSetColumns<NextTick>(),
  { head: 'cron', cell: (tick) => tick.pattern },
  { head: 'next', cell: (tick) => tick.nextLocal },
];

export default defineCommand({
  path: 'schedules',
  group: 'Look',
  summary: 'Show when "eod up" runs each operation next.',
  json: 'a list of schedules',
  examples: ['eod schedules'],
  async run(cli, { json }) {
    const { nextTicks } = await import('../../jobs/runs/night-schedules.ts');
    const config = await loadSettings(cli);
    const ticks = nextTicks(config, systemClock);
    if (json) return printJson(cli, ticks);
    const times = config.EOD_NIGHT_TIMES?.join(' and ');
    const from = times === undefined ? 'as the operations declare' : `from ${times} on (EOD_NIGHT_TIMES)`;
    print(cli, `${table(COLUMNS, ticks)}\n\ntimes are in ${config.EOD_TIMEZONE}, ${from}`);
  },
});

import { systemClock } from '../../core/clock.ts';
import { type NextTick, nextTicks } from '../../jobs/runs/night-schedules.ts';
import { type Cli, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { type Column, table } from '../output.ts';
import { dataSetColumns } from '../run-output.ts';

const COLUMNS: readonly Column<NextTick>[] = [
  ...dataSetColumns<NextTick>(),
  { head: 'cron', cell: (tick) => tick.pattern },
  { head: 'next', cell: (tick) => tick.nextLocal },
];

export async function listSchedules(cli: Cli, flags: JsonFlag): Promise<void> {
  const config = await loadSettings(cli);
  const ticks = nextTicks(config, systemClock);
  if (flags.json === true) printJson(cli, ticks);
  else {
    const times = config.EOD_NIGHT_TIMES?.join(' and ');
    const from = times === undefined ? 'as the operations declare' : `from ${times} on (EOD_NIGHT_TIMES)`;
    print(cli, `${table(COLUMNS, ticks)}\n\ntimes are in ${config.EOD_TIMEZONE}, ${from}`);
  }
}

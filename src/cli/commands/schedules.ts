import { systemClock } from '../../core/clock.ts';
import type { PlannedSchedule } from '../../jobs/worker/scheduler.ts';
import { type Cli, type Commands, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { examples, jsonOption } from '../options.ts';
import { type Column, momentText, table } from '../output.ts';

interface NextTick extends PlannedSchedule {
  readonly timeZone: string;
  /** ISO 8601, UTC. */
  readonly next: string;
  /** The same on the clocks of `timeZone`. */
  readonly nextLocal: string;
}

const COLUMNS: readonly Column<NextTick>[] = [
  { head: 'operation', cell: (one) => one.operation },
  { head: 'exchange', cell: (one) => one.exchange },
  { head: 'cron', cell: (one) => one.pattern },
  { head: 'next', cell: (one) => one.nextLocal },
];

export const commands: Commands = {
  schedules(command, cli) {
    command
      .addOption(jsonOption('a list of schedules'))
      .addHelpText('after', examples('eod schedules'))
      .action((flags: JsonFlag) => listSchedules(cli, flags));
  },
};

async function listSchedules(cli: Cli, flags: JsonFlag): Promise<void> {
  const { CronExpressionParser } = await import('cron-parser');
  const { plannedSchedules } = await import('../../jobs/worker/scheduler.ts');
  const config = await loadSettings(cli);
  const timeZone = config.EOD_TIMEZONE;
  const currentDate = new Date(systemClock.now());
  const ticks = plannedSchedules(config).map((schedule): NextTick => {
    const next = CronExpressionParser.parse(schedule.pattern, { tz: timeZone, currentDate }).next();
    const iso = next.toDate().toISOString();
    return { ...schedule, timeZone, next: iso, nextLocal: momentText(iso, timeZone) };
  });
  if (flags.json === true) printJson(cli, ticks);
  else print(cli, `${table(COLUMNS, ticks)}\n\ntimes are of ${timeZone}`);
}

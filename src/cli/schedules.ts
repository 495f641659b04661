import type { Command } from 'commander';
import { CronExpressionParser } from 'cron-parser';
import { systemClock } from '../core/clock.ts';
import { type Config, loadConfig } from '../core/config.ts';
import { dayAt, timeAt } from '../core/days.ts';
import { type PlannedSchedule, plannedSchedules } from '../jobs/worker/schedules.ts';
import { type Cli, examples } from './command.ts';
import { type Column, print, printJson, table } from './output.ts';

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

export function schedulesCommand(program: Command, _cli: Cli): Command {
  return program
    .command('schedules')
    .description('When "eod up" starts which operation, and the next time it does.')
    .option('--json', 'print one JSON document: a list of schedules')
    .addHelpText('after', examples('eod schedules'))
    .action((flags: { readonly json?: boolean }) => {
      const config = loadConfig();
      const now = new Date(systemClock.now());
      const ticks = plannedSchedules(config).map((schedule) => nextTick(schedule, config, now));
      if (flags.json === true) printJson(ticks);
      else print(`${table(COLUMNS, ticks)}\n\ntimes are of ${config.EOD_TIMEZONE}`);
    });
}

function nextTick(schedule: PlannedSchedule, { EOD_TIMEZONE }: Config, now: Date): NextTick {
  const next = CronExpressionParser.parse(schedule.pattern, { tz: EOD_TIMEZONE, currentDate: now }).next();
  const seconds = Math.floor(next.getTime() / 1000);
  return {
    ...schedule,
    timeZone: EOD_TIMEZONE,
    next: next.toDate().toISOString(),
    nextLocal: `${dayAt(seconds, EOD_TIMEZONE)} ${timeAt(seconds, EOD_TIMEZONE)}`,
  };
}

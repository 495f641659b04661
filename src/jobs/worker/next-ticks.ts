import { CronExpressionParser } from 'cron-parser';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { momentText } from '../../core/wording.ts';
import { type PlannedSchedule, plannedSchedules } from './scheduler.ts';

/** A schedule with the time of its next tick. */
export interface NextTick extends PlannedSchedule {
  readonly timeZone: string;
  /** ISO 8601, UTC. */
  readonly next: string;
  /** The same in local time of `timeZone`. */
  readonly nextLocal: string;
}

/** The next tick of every schedule, in the order of the operations. */
export function nextTicks(config: Pick<Config, 'EOD_EXCHANGES' | 'EOD_TIMEZONE'>, clock: Clock): NextTick[] {
  const timeZone = config.EOD_TIMEZONE;
  const currentDate = new Date(clock.now());
  return plannedSchedules(config).map((schedule) => {
    const next = CronExpressionParser.parse(schedule.pattern, { tz: timeZone, currentDate }).next();
    const iso = next.toDate().toISOString();
    return { ...schedule, timeZone, next: iso, nextLocal: momentText(iso, timeZone) };
  });
}

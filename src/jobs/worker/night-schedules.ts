import { CronExpressionParser } from 'cron-parser';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import type { Pair } from '../../core/pair.ts';
import { momentText } from '../../core/wording.ts';
import { cronOf, type NightSettings, nightAt, requestMinutes } from '../../operations/night-times.ts';
import { type ExchangeSettings, exchangesOf } from '../../operations/operation.ts';
import { operations } from '../../operations/registry.ts';

// When nightly runs are started by schedules.

/** Each further exchange of an operation is scheduled this many minutes after the one before. */
const STAGGER_MINUTES = 2;

export interface PlannedSchedule extends Pair {
  /**
   * `<Operation>-<exchange>`, followed by `-2` and so on for the further times of EOD_NIGHT_TIMES; also the id of the
   * BullMQ job scheduler.
   */
  readonly id: string;
  /** Cron pattern in EOD_TIMEZONE. */
  readonly pattern: string;
}

type ScheduleSettings = ExchangeSettings & Pick<NightSettings, 'EOD_NIGHT_TIMES'>;

/** The schedules of every operation and exchange, as declared or at the times of EOD_NIGHT_TIMES (pure). */
export function plannedSchedules(config: ScheduleSettings): PlannedSchedule[] {
  return operations.flatMap((operation) =>
    exchangesOf(operation, config).flatMap((exchange, place) =>
      requestMinutes(operation, config).map((minutes, at) => ({
        id: `${operation.name}-${exchange}${at === 0 ? '' : `-${at + 1}`}`,
        operation: operation.name,
        exchange,
        pattern: cronOf(operation, minutes + place * STAGGER_MINUTES),
      })),
    ),
  );
}

/** A schedule with the time of its next tick. */
export interface NextTick extends PlannedSchedule {
  readonly timeZone: string;
  /** ISO 8601, UTC. */
  readonly next: string;
  /** The same in local time of `timeZone`. */
  readonly nextLocal: string;
}

/** The next tick of every schedule, in the order of the operations. */
export function nextTicks(config: ScheduleSettings & Pick<Config, 'EOD_TIMEZONE'>, clock: Clock): NextTick[] {
  const timeZone = config.EOD_TIMEZONE;
  const currentDate = new Date(clock.now());
  return plannedSchedules(config).map((schedule) => {
    const next = CronExpressionParser.parse(schedule.pattern, { tz: timeZone, currentDate }).next();
    const iso = next.toDate().toISOString();
    return { ...schedule, timeZone, next: iso, nextLocal: momentText(iso, timeZone) };
  });
}

/** The name of a tick, of which there is at most one run. */
export const tickName = ({ operation, exchange }: Pair, at: Date): string =>
  `${operation}-${exchange}-${at.toISOString()}`;

/** The time in the name of a tick, in epoch milliseconds. */
const timeOfTick = (tick: string): number => Date.parse(tick.slice(-new Date(0).toISOString().length));

/** A tick whose run is not there so long after its time is not waited for. */
const LATE_MS = 10 * 60_000;

/** The names of the ticks of the same night as a tick that are to come, or came in the last ten minutes. */
export function ticksToCome(
  tick: string,
  config: ScheduleSettings & Pick<Config, 'EOD_TIMEZONE'>,
  clock: Clock,
): string[] {
  const nightOf = (ms: number) => nightAt(Math.floor(ms / 1_000), config.EOD_TIMEZONE);
  const night = nightOf(timeOfTick(tick));
  return nextTicks(config, { now: () => clock.now() - LATE_MS })
    .filter(({ next }) => nightOf(Date.parse(next)) === night)
    .map((one) => tickName(one, new Date(one.next)));
}

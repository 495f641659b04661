import { CronExpressionParser } from 'cron-parser';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import type { Day } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { momentText } from '../../core/wording.ts';
import {
  cronPattern,
  minutesIntoNight,
  type NightSettings,
  nightAt,
  requestMinutes,
} from '../../declaration/night-times.ts';
import { exchangesOf } from '../../declaration/operation.ts';
import { operations } from '../../operations/registry.ts';
import { type RequestSettings, requestedOperations } from '../../operations/requested.ts';

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

type ScheduleSettings = RequestSettings & Pick<NightSettings, 'EOD_NIGHT_TIMES'>;
type TickSettings = ScheduleSettings & Pick<Config, 'EOD_TIMEZONE'>;

/** The schedules of every requested operation and exchange, as declared or at the times of EOD_NIGHT_TIMES (pure). */
export function plannedSchedules(config: ScheduleSettings): PlannedSchedule[] {
  return requestedOperations(config).flatMap((operation) =>
    exchangesOf(operation, config).flatMap((exchange, rank) =>
      requestMinutes(operation, config).map((minutes, at) => ({
        id: `${operation.name}-${exchange}${at === 0 ? '' : `-${at + 1}`}`,
        operation: operation.name,
        exchange,
        pattern: cronPattern(operation, minutes + rank * STAGGER_MINUTES),
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
export function nextTicks(config: TickSettings, clock: Clock): NextTick[] {
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

/**
 * The night whose data a tick requests (pure): that of the time which it follows, also where the exchanges have opened
 * again by then.
 *
 * @param ms its time, in epoch milliseconds.
 */
export function nightOfTick({ operation, exchange }: Pair, ms: number, config: TickSettings): Day {
  const declared = operations.find(({ name }) => name === operation);
  const rank = declared === undefined ? 0 : exchangesOf(declared, config).indexOf(exchange);
  const later = declared === undefined ? 0 : minutesIntoNight(declared, config);
  return nightAt(
    Math.floor(ms / 1_000) - 60 * (later + Math.max(0, rank) * STAGGER_MINUTES),
    config.EOD_TIMEZONE,
  );
}

/** A tick whose run is not there so long after its time is not waited for. */
const LATE_MS = 10 * 60_000;

/** The names of the ticks of the same night as a tick that are to come, or came in the last ten minutes. */
export function ticksToCome(tick: string, config: TickSettings, clock: Clock): string[] {
  const [, operation = '', exchange = '', at = ''] = /^([^-]+)-(.+)-(\d{4}-.+)$/.exec(tick) ?? [];
  const night = nightOfTick({ operation, exchange }, Date.parse(at), config);
  return nextTicks(config, { now: () => clock.now() - LATE_MS })
    .filter((schedule) => nightOfTick(schedule, Date.parse(schedule.next), config) === night)
    .map((schedule) => tickName(schedule, new Date(schedule.next)));
}

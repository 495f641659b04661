import type { Calendar } from '../../calendar/calendar.ts';
import { type Clock, today } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { addDays, type Day, epochOf } from '../../core/days.ts';
import { largest } from '../../core/iterables.ts';
import type { Requested } from '../../declaration/fields.ts';
import { dueMinutes } from '../../declaration/night-times.ts';
import {
  AHEAD,
  exchangesOf,
  isByInstrument,
  type Operation,
  settingFor,
} from '../../declaration/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import { requestedOperations } from '../../operations/requested.ts';
import { nightlyTarget } from './nightly-request.ts';
import { planTargets } from './plan-windows.ts';

// What a night requests, computed from the settings and the calendar alone.

interface NightScope {
  readonly config: Config;
  readonly calendar: Calendar;
  readonly clock: Clock;
}

/**
 * How many calls a night makes if the night before was complete, while the figures of the last quarter are still
 * expected: on an ordinary day, and on the busiest of the week.
 */
export function callsOfNight({ config, calendar, clock }: NightScope) {
  const now = today(clock, config.EOD_TIMEZONE);
  const tradingDay = calendar.lastTradingDays('NSE', now, 1)[0] ?? now;
  const instruments =
    config.EOD_INSTRUMENTS ?? Array.from({ length: config.EOD_INSTRUMENT_LIMIT }, (_, at) => `I${at}`);
  const inputs = requestedOperations(config).flatMap((operation) =>
    exchangesOf(operation, config).map((exchange) => {
      const watermark =
        calendar.lastTradingDays(exchange, addDays(tradingDay, -1), 1)[0] ?? addDays(tradingDay, -1);
      const state = { watermark, awaited: null, date: tradingDay, calendar, config };
      const { to, refetchFrom } = nightlyTarget({ operation, exchange, ...state });
      // Days that were covered the night before are requested again only to catch corrections.
      const from = refetchFrom ?? tradingDay;
      const tradingDays = calendar.tradingDays(exchange, from, to);
      const range = { from, to, tradingDays, refetchFrom, today: tradingDay };
      const windowDays = settingFor(config.EOD_WINDOW_DAYS, operation);
      return { ...buildInput(operation, exchange, instruments), ...range, windowDays };
    }),
  );
  const calls = { daily: 0, friday: 0, saturday: 0, sunday: 0 };
  for (const { state, operation } of planTargets(inputs)) {
    if (state === 'pending') calls[operationNamed(operation).schedule.on] += 1;
  }
  const { daily, ...weekly } = calls;
  return { daily, busiest: daily + largest(Object.values(weekly)) };
}

/** The request of an operation about its last due day. */
export interface LastRequest extends Requested {
  readonly operation: Operation;
  /** Why there is nothing to request; null if there is. */
  readonly reason: string | null;
}

/** A company that every source of this data knows: requested where EOD_INSTRUMENTS names none. */
const INSTRUMENT = 'TCS';

/** The last request of each operation that nights request, for its first exchange and one instrument. */
export function listLastRequests({ config, calendar, clock }: NightScope): LastRequest[] {
  return requestedOperations(config).flatMap((operation): LastRequest[] => {
    const [exchange] = exchangesOf(operation, config);
    if (exchange === undefined) return [];
    const day = lastDueDay(operation, exchange, { config, calendar, clock });
    const range = { from: day, to: day, tradingDays: [day], refetchFrom: null, today: day };
    const instruments = [config.EOD_INSTRUMENTS?.[0] ?? INSTRUMENT];
    const input = { ...buildInput(operation, exchange, instruments), ...range };
    const windows = [...planTargets([input])].filter(({ variant }) => variant !== AHEAD);
    const pending = windows.filter(({ state }) => state === 'pending');
    const window = pending.find(({ variant }) => variant === '') ?? pending[0] ?? windows[0];
    if (window === undefined) return [];
    const { from, to, params, reason } = window;
    const calledOn = today(clock, config.EOD_TIMEZONE);
    return [{ operation, exchange, from, to, instruments: window.instruments, params, calledOn, reason }];
  });
}

/** What all inputs of a night have in common. */
function buildInput(operation: Operation, exchange: string, instruments: readonly string[]) {
  const chosen = isByInstrument(operation) ? instruments : [];
  return { operation, exchange, instruments: chosen, options: {}, covered: new Map(), live: true };
}

/** The last trading day whose data a night has requested. */
function lastDueDay(operation: Operation, exchange: string, { config, calendar, clock }: NightScope): Day {
  const { EOD_TIMEZONE: zone } = config;
  const now = today(clock, zone);
  const isDue = clock.now() >= 1_000 * epochOf(now, dueMinutes(operation, config) * 60, zone);
  const last = isDue ? now : addDays(now, -1);
  return calendar.lastTradingDays(exchange, last, 1)[0] ?? last;
}

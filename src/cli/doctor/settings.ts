import type { Calendar } from '../../calendar/calendar.ts';
import { type Clock, today } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { addDays, zoneOffsetSeconds } from '../../core/days.ts';
import { messageOf } from '../../core/errors.ts';
import { largest } from '../../core/largest.ts';
import { nightlyTarget } from '../../jobs/runs/nightly-request.ts';
import { planTargets } from '../../jobs/runs/plan-windows.ts';
import { severities } from '../../load/market/checks/index.ts';
import { exchangesOf, type Operation } from '../../operations/operation.ts';
import { operations } from '../../operations/registry.ts';
import { checkAccessSettings, isLoopback, isOpenToNetwork } from '../../web/access.ts';
import { count, plural } from '../output.ts';
import { type Check, failed, ok, warning } from './check.ts';

/** The offset of Asia/Kolkata, +05:30: days, and the hours of the quota, begin at other times than in UTC. */
const INDIA_OFFSET_S = 19_800;

/** Trading ends at 15:30. */
const CLOSE = '15:30';

type Rule = (config: Config, clock: Clock) => Check | null;

const settings = (state: 'warning' | 'failed', found: string, remedy: string): Check =>
  ({ warning, failed })[state]('settings', found, remedy);

/** Checks settings that are valid one by one but contradict each other. */
const RULES: readonly Rule[] = [
  ({ EOD_BASE_URL, EOD_TLS_VERIFY }) => {
    if (EOD_BASE_URL === undefined) return null;
    const { protocol, hostname } = new URL(EOD_BASE_URL);
    if (protocol === 'http:' && !isLoopback(hostname)) {
      return settings(
        'warning',
        'EOD_BASE_URL begins with http://: the access key travels in clear text',
        'use https:// where the service offers it',
      );
    }
    if (EOD_TLS_VERIFY) return null;
    return settings(
      'warning',
      protocol === 'http:'
        ? 'EOD_TLS_VERIFY=false has no effect on an address with http://'
        : 'EOD_TLS_VERIFY=false: anybody between here and the source can impersonate it and read the access key',
      'remove EOD_TLS_VERIFY, or set it to true',
    );
  },
  (config) => {
    try {
      checkAccessSettings(config);
    } catch (error) {
      return settings('failed', messageOf(error), 'set EOD_WEB_PASSWORD, or EOD_HTTP_HOST to 127.0.0.1');
    }
    if (!isOpenToNetwork(config)) return null;
    return settings(
      'warning',
      `EOD_HTTP_HOST=${config.EOD_HTTP_HOST} and no EOD_WEB_PASSWORD: whoever can reach the dashboard served from here can read it`,
      'set EOD_WEB_PASSWORD where the role web runs',
    );
  },
  ({ EOD_ALERT_WEBHOOK, EOD_ALERT_SECRET }) =>
    EOD_ALERT_SECRET === undefined || EOD_ALERT_WEBHOOK !== undefined
      ? null
      : settings(
          'warning',
          'EOD_ALERT_SECRET signs what is posted to EOD_ALERT_WEBHOOK, which is not set',
          'set EOD_ALERT_WEBHOOK, or remove EOD_ALERT_SECRET',
        ),
  ...(['EOD_ALERT_WEBHOOK', 'EOD_HEARTBEAT_URL'] as const).map(
    (name): Rule =>
      (config) => {
        const address = config[name] === undefined ? null : new URL(config[name]);
        if (address === null || address.protocol === 'https:' || isLoopback(address.hostname)) return null;
        return settings(
          'warning',
          `${name} begins with http://: its address, which is a secret, travels in clear text`,
          'use https:// where the receiver offers it',
        );
      },
  ),
  ({ REDIS_URL, DATABASE_URL }) =>
    REDIS_URL === undefined || DATABASE_URL !== undefined
      ? null
      : settings(
          'warning',
          'REDIS_URL is set and DATABASE_URL is not: workers on other machines cannot reach the private Postgres',
          'set DATABASE_URL to a server that all machines reach, or remove REDIS_URL',
        ),
  ({ EOD_KEEP_RAW, EOD_KEEP_RAW_DAYS }) =>
    EOD_KEEP_RAW || EOD_KEEP_RAW_DAYS === undefined
      ? null
      : settings(
          'warning',
          `EOD_KEEP_RAW=false keeps no answers, but EOD_KEEP_RAW_DAYS=${EOD_KEEP_RAW_DAYS} says how long they are kept`,
          'remove one of them; without kept answers "eod replay" cannot load anything again',
        ),
  ({ EOD_NIGHTLY_RESERVE }) =>
    EOD_NIGHTLY_RESERVE < 1
      ? null
      : settings(
          'warning',
          'EOD_NIGHTLY_RESERVE=100% keeps all calls for the nights: a backfill can never make one',
          'set it to less, e.g. 30%',
        ),
  ({ EOD_LOCK_TIMEOUT_MS, EOD_STATEMENT_TIMEOUT_MS }) =>
    EOD_LOCK_TIMEOUT_MS < EOD_STATEMENT_TIMEOUT_MS
      ? null
      : settings(
          'warning',
          `EOD_STATEMENT_TIMEOUT_MS (${EOD_STATEMENT_TIMEOUT_MS}) ends a statement before EOD_LOCK_TIMEOUT_MS (${EOD_LOCK_TIMEOUT_MS}) can report who holds the lock it waits for`,
          'set EOD_STATEMENT_TIMEOUT_MS to several times EOD_LOCK_TIMEOUT_MS',
        ),
  ({ EOD_NOT_READY_WAIT_MS, EOD_NOT_READY_BUDGET_MS }) =>
    EOD_NOT_READY_WAIT_MS < EOD_NOT_READY_BUDGET_MS
      ? null
      : settings(
          'warning',
          `EOD_NOT_READY_WAIT_MS (${EOD_NOT_READY_WAIT_MS}) is as long as EOD_NOT_READY_BUDGET_MS (${EOD_NOT_READY_BUDGET_MS}): an answer that is not ready is asked for at most once more`,
          'set EOD_NOT_READY_WAIT_MS to a small part of EOD_NOT_READY_BUDGET_MS',
        ),
  ({ EOD_OUTAGE_PATIENCE_MS, EOD_TIMEOUT_MS }) =>
    EOD_OUTAGE_PATIENCE_MS > EOD_TIMEOUT_MS
      ? null
      : settings(
          'warning',
          `EOD_OUTAGE_PATIENCE_MS (${EOD_OUTAGE_PATIENCE_MS}) is no longer than one call may take (EOD_TIMEOUT_MS, ${EOD_TIMEOUT_MS}): a single call without an answer ends the night`,
          'set EOD_OUTAGE_PATIENCE_MS to several times EOD_TIMEOUT_MS',
        ),
  ({ EOD_LOOKBACK_SESSIONS, EOD_HISTORY_DAYS }) =>
    EOD_LOOKBACK_SESSIONS < EOD_HISTORY_DAYS
      ? null
      : settings(
          'warning',
          `EOD_LOOKBACK_SESSIONS (${EOD_LOOKBACK_SESSIONS}) reaches further back than a night may (EOD_HISTORY_DAYS, ${EOD_HISTORY_DAYS})`,
          'set EOD_LOOKBACK_SESSIONS to a few sessions',
        ),
  ({ EOD_PUBLISHED_AT }) =>
    EOD_PUBLISHED_AT > CLOSE
      ? null
      : settings(
          'warning',
          `EOD_PUBLISHED_AT=${EOD_PUBLISHED_AT} is before the exchanges close at ${CLOSE}: an empty answer counts as a day without data, though the day is not published yet`,
          'set it to the time from which the source has the day, e.g. 21:15',
        ),
  ({ EOD_TIMEZONE }, clock) =>
    zoneOffsetSeconds(EOD_TIMEZONE, Math.floor(clock.now() / 1000)) === INDIA_OFFSET_S
      ? null
      : settings(
          'warning',
          `EOD_TIMEZONE=${EOD_TIMEZONE} is not the zone of the exchanges: days, schedules and the hours of the quota begin at the wrong times`,
          'remove EOD_TIMEZONE, or set it to Asia/Kolkata',
        ),
  ({ EOD_WINDOW_DAYS }) => {
    const inRanges = operations.filter(({ windows }) => windows.per === 'range').map(({ name }) => name);
    const others = Object.keys(EOD_WINDOW_DAYS).filter((name) => !inRanges.includes(name));
    if (others.length === 0) return null;
    return settings(
      'warning',
      `EOD_WINDOW_DAYS names ${others.join(', ')}, which is not asked for in ranges of days: it has no effect on that`,
      `it is for ${inRanges.join(', ')}`,
    );
  },
  ({ EOD_OPERATION_EXCHANGES }) => {
    const names = operations.map(({ name }) => name);
    const others = Object.keys(EOD_OPERATION_EXCHANGES).filter((name) => !names.includes(name));
    if (others.length === 0) return null;
    return settings(
      'warning',
      `EOD_OPERATION_EXCHANGES names ${others.join(', ')}, which is no operation: it has no effect`,
      `the operations are ${names.join(', ')}`,
    );
  },
  (config) => {
    try {
      severities(config);
      return null;
    } catch (error) {
      return settings(
        'failed',
        messageOf(error),
        '"eod reconcile --help" and docs/data-quality.md name the checks',
      );
    }
  },
];

/** Returns a check for each contradiction between settings, or one that says there is none. */
export function settingsChecks(config: Config, clock: Clock): readonly Check[] {
  const problems = RULES.flatMap((rule) => rule(config, clock) ?? []);
  return problems.length > 0 ? problems : [ok('settings', 'no two of them contradict each other')];
}

/** Checks that the calendar has the holidays of this year, and in December those of the next. */
export function calendarCheck(calendar: Calendar, config: Config, clock: Clock): Check {
  const soon = addDays(today(clock, config.EOD_TIMEZONE), 30);
  const years = new Set([today(clock, config.EOD_TIMEZONE), soon].map((day) => Number(day.slice(0, 4))));
  const unknown = config.EOD_EXCHANGES.flatMap((exchange) =>
    [...years].filter((year) => !calendar.knows(exchange, year)).map((year) => `${exchange} ${year}`),
  );
  if (unknown.length === 0) return ok('calendar', `it knows the holidays of ${[...years].join(' and ')}`);
  return warning(
    'calendar',
    `it has no holidays for ${unknown.join(', ')}: every Monday to Friday is assumed to be a session`,
    'list them in a file and set EOD_CALENDAR_FILE (docs/calendar.md), or install a newer version',
  );
}

/**
 * How many calls a night makes if the night before was complete, while the figures of the last quarter are still
 * expected.
 */
export function callsOfNight(
  config: Config,
  calendar: Calendar,
  clock: Clock,
): { readonly daily: number; readonly busiest: number } {
  const now = today(clock, config.EOD_TIMEZONE);
  const session = calendar.lastSessions('NSE', now, 1)[0] ?? now;
  const instruments =
    config.EOD_INSTRUMENTS ?? Array.from({ length: config.EOD_INSTRUMENT_LIMIT }, (_, place) => `I${place}`);
  const callsOn = (on: Operation['schedule']['on']) => {
    const asked = operations.filter(({ schedule }) => schedule.on === on);
    const inputs = asked.flatMap((operation) =>
      exchangesOf(operation, config).map((exchange) => {
        const before = calendar.lastSessions(exchange, addDays(session, -1), 1)[0] ?? addDays(session, -1);
        const state = { watermark: before, awaited: null, date: session, calendar, config };
        const target = nightlyTarget({ operation, exchange, ...state });
        // Days that were answered the night before are asked for again only to catch corrections.
        const from = target.refetchFrom ?? session;
        return {
          ...target,
          from,
          operation,
          sessions: calendar.sessions(exchange, from, target.to),
          instruments:
            operation.request.instruments === 'none' || operation.windows.per !== 'instrument'
              ? []
              : instruments,
          options: {},
          answered: new Map(),
          today: session,
          live: true,
          windowDays: config.EOD_WINDOW_DAYS[operation.name],
        };
      }),
    );
    let calls = 0;
    for (const { state } of planTargets(inputs)) if (state === 'pending') calls += 1;
    return calls;
  };
  const daily = callsOn('daily');
  const weekly = (['friday', 'saturday', 'sunday'] as const).map(callsOn);
  return { daily, busiest: daily + largest(weekly) };
}

/** Hours from the first schedule of an evening to the opening of the exchanges, and to the next evening. */
const BEFORE_OPENING_H = 11;
const BEFORE_NEXT_NIGHT_H = 24;

/** Checks that the calls of an ordinary night can be made before the next night begins. */
export function nightCheck(config: Config, calendar: Calendar, clock: Clock): Check {
  const { daily, busiest } = callsOfNight(config, calendar, clock);
  const perHour = config.EOD_CALLS_PER_HOUR;
  const hours = Math.ceil(daily / perHour);
  const found = `an ordinary night takes up to ${plural(daily, 'call')} (the busiest night of the week ${count(busiest)}): ${plural(hours, 'clock hour')} at ${perHour} calls an hour`;
  const remedy =
    'set EOD_INSTRUMENT_LIMIT lower or name fewer EOD_INSTRUMENTS, or raise EOD_CALLS_PER_HOUR as far as the key allows';
  if (hours > BEFORE_NEXT_NIGHT_H) {
    return failed('night', `${found}; the next one begins before it has ended`, remedy);
  }
  if (hours > BEFORE_OPENING_H) {
    return warning('night', `${found}; it ends after the exchanges have opened again`, remedy);
  }
  return ok('night', found);
}

import type { Calendar } from '../../calendar/calendar.ts';
import { type Clock, today } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { contradictions } from '../../core/consistent-settings.ts';
import { addDays, HOUR_MS } from '../../core/days.ts';
import { messageOf } from '../../core/errors.ts';
import { largest } from '../../core/iterables.ts';
import { type CallGroup, spreadCalls } from '../../jobs/policy/call-pace.ts';
import { classOf, worthOf } from '../../jobs/queue/call-order.ts';
import { nightlyTarget } from '../../jobs/runs/nightly-request.ts';
import { planTargets } from '../../jobs/runs/plan-windows.ts';
import { severities } from '../../load/market/checks/index.ts';
import { exchangesOf, type Operation, settingFor } from '../../operations/operation.ts';
import { operationNamed, operations } from '../../operations/registry.ts';
import { requestedOperations } from '../../operations/requested.ts';
import { count, plural } from '../output.ts';
import { FITTING } from '../run-output.ts';
import { failed, type Outcome, ok, warning } from './check.ts';

/** Returns a check for each contradiction between settings, or one that says there is none. */
export function settingsChecks(config: Config): readonly Outcome[] {
  const problems = [
    ...contradictions(config).map(({ found, remedy }) => warning(found, remedy)),
    ...unknownNames(config),
  ];
  return problems.length === 0 ? [ok('no two of them contradict each other')] : problems;
}

/** A check for each setting with names in it of which some have no effect, or are unknown. */
function unknownNames(config: Config): Outcome[] {
  const inRanges = operations.filter(({ windows }) => windows.per === 'range');
  const problems: Outcome[] = [];
  const allow = (
    name: 'EOD_WINDOW_DAYS' | 'EOD_OPERATION_EXCHANGES',
    known: readonly Operation[],
    why: string,
    remedy: string,
  ) => {
    const isKnown = (typed: string) => known.some((one) => settingFor({ [typed]: true }, one) !== undefined);
    const others = Object.keys(config[name]).filter((typed) => !isKnown(typed));
    if (others.length > 0)
      problems.push(
        warning(
          `${name} names ${others.join(', ')}, ${why}`,
          `${remedy} ${known.map((one) => one.name).join(', ')}`,
        ),
      );
  };
  allow(
    'EOD_WINDOW_DAYS',
    inRanges,
    'which is not requested in ranges of days: it has no effect on that',
    'it applies to',
  );
  allow(
    'EOD_OPERATION_EXCHANGES',
    operations,
    'which is no operation: it has no effect',
    'the operations are',
  );
  try {
    severities(config);
  } catch (error) {
    problems.push(
      failed(messageOf(error), '"eod reconcile --help" and docs/completeness.md name the checks'),
    );
  }
  return problems;
}

/** Variables by which psql and other clients of Postgres find a server. */
const OF_CLIENTS = [
  'PGHOST',
  'PGHOSTADDR',
  'PGPORT',
  'PGDATABASE',
  'PGUSER',
  'PGPASSWORD',
  'PGPASSFILE',
  'PGSERVICE',
  'PGSSLMODE',
];

/** A check if variables of other clients of Postgres are set, which do not choose the server of eod. */
export function postgresVariablesCheck(
  env: Readonly<Record<string, string>>,
  { DATABASE_URL }: Pick<Config, 'DATABASE_URL'>,
): readonly Outcome[] {
  const set = OF_CLIENTS.filter((name) => name in env);
  if (set.length === 0) return [];
  const are = `${set.join(', ')} ${set.length === 1 ? 'is' : 'are'} set, but eod connects to the address in DATABASE_URL`;
  if (DATABASE_URL === undefined) {
    return [
      warning(
        `${are}, which is not set: the data is stored in a private Postgres`,
        'to use that server, set DATABASE_URL=postgres://user:password@host:port/database',
      ),
    ];
  }
  const { hostname, port, username, pathname } = new URL(DATABASE_URL);
  const parts = { PGHOST: hostname, PGPORT: port, PGUSER: username, PGDATABASE: pathname.slice(1) };
  const others = Object.entries(parts).flatMap(([name, part]) =>
    env[name] === undefined || part === '' || decodeURIComponent(part) === env[name] ? [] : [name],
  );
  const found = `${are}, and takes from them only what it leaves out`;
  if (others.length === 0) return [ok(found)];
  return [
    warning(
      `${found}; ${others.join(', ')} ${others.length === 1 ? 'differs' : 'differ'} from it`,
      'correct DATABASE_URL if it names the wrong server; psql does not use it unless it is its argument',
    ),
  ];
}

/** Checks that the calendar has the holidays of this year, and in December those of the next. */
export function calendarCheck(calendar: Calendar, config: Config, clock: Clock): Outcome {
  const soon = addDays(today(clock, config.EOD_TIMEZONE), 30);
  const years = new Set([today(clock, config.EOD_TIMEZONE), soon].map((day) => Number(day.slice(0, 4))));
  const unknown = config.EOD_EXCHANGES.flatMap((exchange) =>
    [...years].filter((year) => !calendar.knows(exchange, year)).map((year) => `${exchange} ${year}`),
  );
  if (unknown.length === 0) return ok(`it knows the holidays of ${[...years].join(' and ')}`);
  return warning(
    `it has no holidays for ${unknown.join(', ')}: every Monday to Friday is assumed to be a session`,
    'list them in a file and set EOD_CALENDAR_FILE (docs/completeness.md), or install a newer version',
  );
}

/**
 * How many calls a night makes if the night before was complete, while the figures of the last quarter are still
 * expected.
 */
export function callsOfNight(config: Config, calendar: Calendar, clock: Clock) {
  const now = today(clock, config.EOD_TIMEZONE);
  const session = calendar.lastSessions('NSE', now, 1)[0] ?? now;
  const instruments =
    config.EOD_INSTRUMENTS ??
    Array.from({ length: config.EOD_INSTRUMENT_LIMIT }, (_, position) => `I${position}`);
  const inputs = requestedOperations(config).flatMap((operation) =>
    exchangesOf(operation, config).map((exchange) => {
      const watermark = calendar.lastSessions(exchange, addDays(session, -1), 1)[0] ?? addDays(session, -1);
      const state = { watermark, awaited: null, date: session, calendar, config };
      const target = nightlyTarget({ operation, exchange, ...state });
      // Days that were covered the night before are requested again only to catch corrections.
      const from = target.refetchFrom ?? session;
      return {
        ...target,
        from,
        operation,
        sessions: calendar.sessions(exchange, from, target.to),
        instruments: operation.windows.per === 'instrument' ? instruments : [],
        options: {},
        covered: new Map(),
        today: session,
        live: true,
        windowDays: settingFor(config.EOD_WINDOW_DAYS, operation),
      };
    }),
  );
  const calls = { daily: 0, friday: 0, saturday: 0, sunday: 0 };
  const groups: CallGroup[] = [];
  for (const { state, operation: name, exchange } of planTargets(inputs)) {
    if (state !== 'pending') continue;
    const operation = operationNamed(name);
    calls[operation.schedule.on] += 1;
    if (operation.schedule.on !== 'daily') continue;
    const found = classOf({ value: worthOf(operation), recency: 'newest' });
    groups.push({ pair: [name, exchange].join(' '), class: found, calls: 1 });
  }
  const { daily, ...weekly } = calls;
  return { daily, busiest: daily + largest(Object.values(weekly)), groups };
}

/** Hours from the first schedule of an evening to the opening of the exchanges, and to the next evening. */
const BEFORE_OPENING_H = 11;
const BEFORE_NEXT_NIGHT_H = 24;

/** Checks that the calls of an ordinary night can be made before the next night begins. */
export function nightCheck(config: Config, calendar: Calendar, clock: Clock): Outcome {
  const { daily, busiest, groups } = callsOfNight(config, calendar, clock);
  const perHour = config.EOD_CALLS_PER_HOUR;
  const hours = Math.ceil(daily / perHour);
  const found = `an ordinary night takes up to ${plural(daily, 'call')} (the busiest night of the week ${count(busiest)}): ${plural(hours, 'clock hour')} at ${perHour} calls an hour`;
  // Computed from the budget of whole hours, not from how fast they are used up.
  const pace = { perHour, leftThisHour: perHour, now: 0, hour: 0, secondsPerCall: 0 };
  const placed = spreadCalls(groups, pace, BEFORE_NEXT_NIGHT_H * HOUR_MS - 1);
  const left = [...placed].filter(([, { leftOver }]) => leftOver > 0);
  if (left.length > 0) {
    const named = left.map(([pair, { leftOver }]) => `${count(leftOver)} of ${pair}`).join(', ');
    return failed(
      `${found}; the next one begins before it has ended: these calls do not fit: ${named}`,
      FITTING,
    );
  }
  if (hours > BEFORE_OPENING_H) {
    return warning(`${found}; it ends after the exchanges have opened again`, FITTING);
  }
  return ok(found);
}

import type { Calendar } from '../../calendar/calendar.ts';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { DAY_MS } from '../../core/days.ts';
import type { Allowance, Limitation } from '../../extract/index.ts';
import { exchangesOf, type Operation } from '../../operations/operation.ts';
import { requestedOperations } from '../../operations/requested.ts';
import { count, momentText, plural } from '../output.ts';
import { type Check, failed, type KeyReport, type Outcome, ok, warning } from './check.ts';
import { callsOfNight } from './settings-checks.ts';

/** How long before its end a key is worth a warning. */
const EXPIRES_SOON_MS = 14 * DAY_MS;

/** The most sessions of a month, and the most weekends. */
const SESSIONS_A_MONTH = 23;
const WEEKS_A_MONTH = 5;

export function keyReport(limitation: Limitation, config: Config): KeyReport {
  const requested = requestedOf(config);
  const listed = limitation.exchanges?.map(({ name }) => name.toUpperCase()) ?? [];
  return {
    ...limitation,
    forbidden: {
      operations: requested.flatMap((operation) =>
        mayCall(limitation, operation) === false ? [operation.name] : [],
      ),
      // An empty list forbids nothing that was not refused.
      exchanges: exchangesRequested(requested, config).filter(
        (exchange) => listed.length > 0 && !listed.includes(exchange),
      ),
    },
  };
}

/** Checks what the key may do against what the nights of this installation request. */
export function limitationChecks(
  report: KeyReport,
  config: Config,
  calendar: Calendar,
  clock: Clock,
): readonly Check[] {
  return [
    { name: 'key limits', ...limitsCheck(report, config, calendar, clock) },
    { name: 'key expiry', ...expiryCheck(report, config, clock) },
    { name: 'key rights', ...rightsCheck(report, config) },
  ];
}

function limitsCheck(report: KeyReport, config: Config, calendar: Calendar, clock: Clock): Outcome {
  const { callsPerHour, callsPerMonth, bandwidthPerHour, bandwidthPerMonth } = report;
  const { EOD_CALLS_PER_HOUR: pace } = config;
  const found = `calls: ${allowed(callsPerHour, callsPerMonth)}; bandwidth: ${allowed(bandwidthPerHour, bandwidthPerMonth)}`;
  if (typeof callsPerHour === 'number' && callsPerHour < pace) {
    return warning(
      `${found}; EOD_CALLS_PER_HOUR is ${count(pace)}`,
      callsPerHour < 1
        ? 'ask the service for a key that may make calls'
        : `set EOD_CALLS_PER_HOUR=${Math.floor(callsPerHour)}`,
    );
  }
  const { daily, busiest } = callsOfNight(config, calendar, clock);
  const month = daily * SESSIONS_A_MONTH + (busiest - daily) * WEEKS_A_MONTH;
  if (typeof callsPerMonth === 'number' && callsPerMonth < month) {
    return warning(
      `${found}; the nights of a month take up to ${plural(month, 'call')}`,
      'set EOD_INSTRUMENT_LIMIT or EOD_LOOKBACK_SESSIONS lower, or ask the service for more calls',
    );
  }
  return ok(found);
}

/** `900 an hour, unlimited a month`. */
function allowed(hour: Allowance, month: Allowance): string {
  if (hour === month && typeof hour !== 'number') return hour ?? 'not stated';
  const text = (allowance: Allowance) =>
    typeof allowance === 'number' ? count(allowance) : (allowance ?? 'not stated');
  return `${text(hour)} an hour, ${text(month)} a month`;
}

function expiryCheck({ expiresAt }: KeyReport, config: Config, clock: Clock): Outcome {
  if (expiresAt === null) return ok('the service states no date');
  const left = Date.parse(expiresAt) - clock.now();
  const at = momentText(expiresAt, config.EOD_TIMEZONE);
  const remedy = 'have the key renewed, or set another EOD_ACCESS_KEY';
  if (left <= 0) return failed(`the key expired at ${at}`, remedy);
  const found = `the key expires at ${at}`;
  if (left > EXPIRES_SOON_MS) return ok(found);
  return warning(`${found}, in ${plural(Math.ceil(left / DAY_MS), 'day')}`, remedy);
}

function rightsCheck(report: KeyReport, config: Config): Outcome {
  const requested = requestedOf(config);
  const { forbidden, exchanges } = report;
  const problems = [
    ...(report.isEnabled === false ? ['the service says that the key is disabled'] : []),
    ...problem('it forbids', forbidden.operations),
    // A list without any of our operations is about another product, and says nothing about them.
    ...problem(
      'it does not list',
      requested.some((one) => mayCall(report, one) !== null) ? unlisted(report, requested) : [],
    ),
    ...problem('it lists no exchange', forbidden.exchanges),
  ];
  if (problems.length > 0) {
    const isAll = requested.length > 0 && forbidden.operations.length === requested.length;
    return (isAll ? failed : warning)(
      `${problems.join('; ')} (${plural(requested.length, 'operation')} of ${exchangesRequested(requested, config).join(', ')} are requested)`,
      'ask the service for what you need; the rest is loaded without it. EOD_EXCHANGES and EOD_OPERATION_EXCHANGES leave exchanges out',
    );
  }
  const known = requested.filter((operation) => mayCall(report, operation) !== null).length;
  const operationsText =
    known === 0
      ? 'the service does not say which operations are allowed'
      : `all ${plural(known, 'operation')} that are requested are allowed`;
  const names = exchanges?.map(({ name, instruments }) =>
    typeof instruments === 'number' ? `${name} (${plural(instruments, 'instrument')})` : name,
  );
  return ok(
    `${operationsText}; exchanges: ${names === undefined || names.length === 0 ? 'not stated' : names.join(', ')}`,
  );
}

const problem = (text: string, names: readonly string[]) =>
  names.length === 0 ? [] : [`${text} ${names.join(', ')}`];

const unlisted = (report: KeyReport, requested: readonly Operation[]) =>
  requested.flatMap((operation) => (mayCall(report, operation) === null ? [operation.name] : []));

/** True if the key may call this operation, or the one that is requested instead. Null: the service does not say. */
function mayCall(limitation: Limitation, { name, instead }: Operation): boolean | null {
  const stated = [name, instead?.operation].map(
    (one) =>
      limitation.operations?.find((listed) => listed.name.toLowerCase() === one?.toLowerCase())?.isEnabled ??
      null,
  );
  return stated.includes(true) ? true : (stated[0] ?? null);
}

/** The operations that nights request. */
const requestedOf = (config: Config) =>
  requestedOperations(config).filter((operation) => exchangesOf(operation, config).length > 0);

const exchangesRequested = (requested: readonly Operation[], config: Config) => [
  ...new Set(requested.flatMap((operation) => exchangesOf(operation, config))),
];

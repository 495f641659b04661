import type { Calendar } from '../../calendar/calendar.ts';
import { systemClock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { contradictions } from '../../core/consistent-settings.ts';
import { messageOf } from '../../core/errors.ts';
import { callsOfNight } from '../../jobs/runs/night-calls.ts';
import { namedBy, operations } from '../../operations/registry.ts';
import { severities } from '../../quality/index.ts';
import { count, plural } from '../output.ts';
import { failed, type Outcome, ok, warning } from './check.ts';

/** Returns a check for each contradiction between settings and each unknown name, or one that says there is none. */
export function settingsChecks(config: Config): readonly Outcome[] {
  const problems = contradictions(config).map(({ problem, remedy }) => warning(problem, remedy));
  for (const setting of ['EOD_WINDOW_DAYS', 'EOD_OPERATION_EXCHANGES'] as const) {
    const unknown = Object.keys(config[setting]).filter((name) => namedBy(operations, name) === undefined);
    if (unknown.length === 0) continue;
    const problem = `${setting} names ${unknown.join(', ')}, which is no operation: it has no effect`;
    problems.push(warning(problem, '"eod operations" lists the operations'));
  }
  try {
    severities(config);
  } catch (error) {
    problems.push(
      failed(messageOf(error), '"eod reconcile --help" and docs/completeness.md name the checks'),
    );
  }
  return problems.length === 0 ? [ok('they fit together, and name only what exists')] : problems;
}

/** What makes a night take fewer hours. */
const SHORTER_NIGHT =
  'raise EOD_CALLS_PER_HOUR as far as the key allows, set EOD_INSTRUMENT_LIMIT lower or name fewer EOD_INSTRUMENTS, or leave operations out (EOD_OPERATIONS=default,-NAME)';

/** Whole hours from 21:15, when the first schedule begins by default, to 09:00, before the exchanges open. */
const HOURS_OF_NIGHT = 11;

/** Checks that the calls of an ordinary night can be made before the next night begins. */
export function nightCheck(config: Config, calendar: Calendar, clock = systemClock): Outcome {
  const { daily, busiest } = callsOfNight({ config, calendar, clock });
  const perHour = config.EOD_CALLS_PER_HOUR;
  const hours = Math.ceil(daily / perHour);
  const nightText = `an ordinary night takes up to ${plural(daily, 'call')} (the busiest night of the week ${count(busiest)}): ${plural(hours, 'clock hour')} at ${perHour} calls an hour`;
  if (hours > 24) return failed(`${nightText}; the next one begins before it has ended`, SHORTER_NIGHT);
  if (hours <= HOURS_OF_NIGHT) return ok(nightText);
  return warning(`${nightText}; it ends after the exchanges have opened again`, SHORTER_NIGHT);
}

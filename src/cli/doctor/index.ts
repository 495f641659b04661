import { loadCalendar } from '../../calendar/calendar.ts';
import { systemClock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { readEnvironment } from '../../core/environment.ts';
import { supportedNode } from '../../core/version.ts';
import { type Cli, environmentRedactor } from '../cli.ts';
import { openCalendar } from '../open-context.ts';
import { bounded, type Check, skipped } from './check.ts';
import {
  checkDatabase,
  checkMigrations,
  checkOperations,
  checkPooler,
  checkRights,
  checkTimeZone,
  connectionsCheck,
} from './database-checks.ts';
import type { Examination, Found, KeyReport, Need } from './examination.ts';
import { diskCheck, nodeCheck } from './machine.ts';
import { checkQueue, evictionCheck, persistenceCheck, queueJobsCheck } from './queue-checks.ts';
import { calendarCheck, nightCheck, postgresVariablesCheck, settingsChecks } from './settings-checks.ts';
import {
  checkKey,
  checkKeyReport,
  checkSource,
  clockCheck,
  formatCheck,
  quotaCheck,
  storageCheck,
} from './source-checks.ts';

/** One line of the table of checks. */
interface Row {
  readonly name: string;
  /** What earlier checks must have found; without it this one is skipped. */
  readonly needs: readonly Need[];
  readonly limitMs: number;
  /** What to do if the check cannot be made. */
  readonly remedy: string;
  readonly run: (found: Examination & Found) => Check | readonly Check[] | Promise<Check | readonly Check[]>;
}

/** Each is longer than the time limits of the queries and calls within. */
const SHORT_MS = 10_000;
const PRIVATE_POSTGRES_MS = 90_000;
const CALL_MS = 40_000;

const SEE_DATABASE = 'see the check of the database';

/** A line of the table. What it needs is there when it is run. */
function row<const Name extends Need = never>(
  name: string,
  needs: readonly Name[],
  run: (found: Examination & Pick<Found, Name>) => ReturnType<Row['run']>,
  remedy = SEE_DATABASE,
  limitMs = SHORT_MS,
): Row {
  return { name, needs, run, remedy, limitMs };
}

/** All checks, in the order in which to look at them. */
const CHECKS: readonly Row[] = [
  row('node', [], () => nodeCheck(process.version, supportedNode())),
  row('settings', [], ({ cli, config }) => [
    ...settingsChecks(config),
    ...(cli.demo === true ? [] : postgresVariablesCheck(readEnvironment(cli.env, cli.cwd), config)),
  ]),
  row('disk', [], ({ cli, config }) => diskCheck(config, cli.cwd), 'see EOD_DATA_DIR'),
  row('database', [], checkDatabase, 'see DATABASE_URL', PRIVATE_POSTGRES_MS),
  row('time zone', ['server'], checkTimeZone),
  row('pooler', ['server'], checkPooler, 'set pool_mode = session in the pooler'),
  row('rights', ['server'], checkRights, 'docs/security.md has the statements for the roles'),
  row(
    'migrations',
    ['server'],
    checkMigrations,
    'let the role read the tables, or run "eod migrate" as their owner',
  ),
  row('connections', ['server'], ({ server, config }) => connectionsCheck(server.facts, config)),
  // Before the checks that look at the operations in use.
  row('operations', ['tables'], checkOperations),
  row('queue', [], checkQueue, 'see REDIS_URL, and the checks of the database'),
  row('queue eviction', ['redis'], ({ redis }) => evictionCheck(redis)),
  row('queue persistence', ['redis'], ({ redis }) => persistenceCheck(redis)),
  row('queue jobs', ['tables', 'queue'], queueJobsCheck, 'see the check of the queue'),
  row(
    'calendar',
    [],
    (found) => {
      // If the user's file cannot be read, the other checks use the built-in calendar alone.
      found.calendar = openCalendar(found.cli, found.config);
      return calendarCheck(found.calendar, found.config, systemClock);
    },
    'correct or remove EOD_CALENDAR_FILE',
  ),
  row(
    'night',
    [],
    ({ config, calendar }) => nightCheck(config, calendar, systemClock),
    'correct the settings',
  ),
  row('source', [], checkSource, 'see EOD_BASE_URL', CALL_MS),
  row('access key', ['call'], checkKey),
  row('key limits', ['acceptedKey'], checkKeyReport, 'see EOD_BASE_URL', CALL_MS),
  row('clock', [], clockCheck),
  row('quota', ['tables'], quotaCheck),
  row('storage', ['tables'], storageCheck),
  row('format', ['tables'], formatCheck),
];

/**
 * Checks everything the pipeline needs. A server that is down or silent, or a wrong setting, becomes the result of one
 * check; the others are still made, and each has a time limit.
 *
 * @param offline makes no call to the source.
 * @returns the checks, and what the key may do, if the service says so; no text holds a secret.
 */
export async function examine(
  cli: Cli,
  config: Config,
  offline: boolean,
): Promise<{ readonly checks: readonly Check[]; readonly key: KeyReport | null }> {
  const found: Examination = {
    cli,
    config,
    offline,
    calendar: loadCalendar(),
    checks: [],
    key: null,
    lacks: {
      server: 'the database does not answer',
      tables: 'see the checks of the database',
      redis: 'there is no Redis that answers',
      queue: 'see the check of the queue',
      call: 'see the check of the source',
      acceptedKey: 'not asked, since the key was not seen to be accepted',
    },
  };
  for (const one of CHECKS) for (const check of await made(one, found)) found.checks.push(check);
  const redact = environmentRedactor(cli);
  return {
    // Remedies are our own words, of which a password such as `eod` must not make riddles.
    checks: found.checks.map((check) => ({ ...check, found: redact(check.found) })),
    key: found.key,
  };
}

/** Makes a check, if there is all that it needs. */
async function made(
  { name, needs, limitMs, remedy, run }: Row,
  found: Examination,
): Promise<readonly Check[]> {
  const missing = needs.find((need) => found[need] === undefined);
  if (missing !== undefined) return [skipped(name, found.lacks[missing])];
  return bounded(name, limitMs, remedy, async () => run(found as Examination & Found));
}

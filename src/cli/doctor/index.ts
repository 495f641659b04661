import { readFileSync } from 'node:fs';
import { type Calendar, loadCalendar } from '../../calendar/index.ts';
import { systemClock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { readEnvironment } from '../../core/environment.ts';
import { type Cli, environmentRedactor } from '../cli.ts';
import { openCalendar } from '../open-context.ts';
import { bounded, type Check } from './check.ts';
import {
  coverageCheck,
  type DatabaseChecks,
  databaseChecks,
  lostDaysCheck,
  operationsCheck,
  placesCheck,
} from './database-checks.ts';
import type { KeyReport } from './limitation-checks.ts';
import { diskCheck, nodeCheck } from './machine.ts';
import { postgresQueueChecks, queueJobsCheck, redisChecks } from './queue-checks.ts';
import { calendarCheck, nightCheck, postgresVariablesCheck, settingsChecks } from './settings-checks.ts';
import { formatCheck, quotaCheck, sourceChecks, storageCheck } from './source-checks.ts';

/** Time limits of the groups of checks, each longer than those of the queries within. */
const SHORT_MS = 10_000;
const PRIVATE_POSTGRES_MS = 90_000;
const SOURCE_MS = 45_000;

/**
 * Checks everything the pipeline needs. A server that is down or silent, or a wrong setting, becomes the result of one
 * check; the others are still made, and each has a time limit.
 *
 * @param offline makes no call to the source.
 * @returns the checks in the order in which to look at them, and what the key may do, if the service says so; no text
 *   holds a secret.
 */
export async function examine(
  cli: Cli,
  config: Config,
  offline: boolean,
): Promise<{ readonly checks: readonly Check[]; readonly key: KeyReport | null }> {
  let key: KeyReport | null = null;
  let database: DatabaseChecks = { checks: [], usable: null, clockAheadMs: null };
  const databaseDone = bounded('database', PRIVATE_POSTGRES_MS, 'see DATABASE_URL', async () => {
    database = await databaseChecks(cli, config);
    return database.checks;
  });
  const { REDIS_URL } = config;
  const redisDone =
    REDIS_URL === undefined
      ? null
      : bounded('queue', SHORT_MS, 'see REDIS_URL', () => redisChecks(REDIS_URL));
  const diskDone = bounded('disk', SHORT_MS, 'see EOD_DATA_DIR', () => diskCheck(config, cli.cwd));
  // If the user's calendar file cannot be read, the other checks use the built-in calendar alone.
  let calendar: Calendar = loadCalendar();
  const calendarChecks = await bounded(
    'calendar',
    SHORT_MS,
    'correct or remove EOD_CALENDAR_FILE',
    async () => {
      calendar = openCalendar(cli, config);
      return calendarCheck(calendar, config, systemClock);
    },
  );
  const databaseGroup = await databaseDone;
  const { usable: db, clockAheadMs } = database;
  const queueGroup = await (redisDone ??
    bounded('queue', SHORT_MS, 'see the checks of the database', () => postgresQueueChecks(db, config)));
  // Before the checks that look at the operations in use.
  const operationsGroup = await bounded('operations', SHORT_MS, 'see the check of the database', () =>
    operationsCheck(db, config),
  );
  const isQueueUsable = queueGroup.some(({ name, state }) => name === 'queue' && state === 'ok');
  const ofDatabase = (name: string, work: () => Promise<Check>) =>
    bounded(name, SHORT_MS, 'see the check of the database', work);
  const redact = environmentRedactor(cli);
  const checks = [
    nodeCheck(process.version, engines()),
    ...settingsChecks(config),
    ...(cli.demo === true ? [] : postgresVariablesCheck(readEnvironment(cli.env, cli.cwd), config)),
    await diskDone,
    databaseGroup,
    operationsGroup,
    queueGroup,
    await bounded('queue jobs', SHORT_MS, 'see the check of the queue', () =>
      queueJobsCheck(isQueueUsable ? db : null, config),
    ),
    await bounded('rows', SHORT_MS, 'run "eod reconcile", which may take longer', () => lostDaysCheck(db)),
    await ofDatabase('coverage', () => coverageCheck(db)),
    await ofDatabase('places', () => placesCheck(db)),
    calendarChecks,
    nightCheck(config, calendar, systemClock),
    await bounded('source', SOURCE_MS, 'see EOD_BASE_URL', async () => {
      const asked = await sourceChecks(cli, { config, calendar, db, clockAheadMs }, offline);
      key = asked.key;
      return asked.checks;
    }),
    await ofDatabase('quota', () => quotaCheck(config, db)),
    await ofDatabase('storage', () => storageCheck(config, db)),
    await ofDatabase('format', () => formatCheck(config, db)),
  ]
    .flat()
    .map((check) => ({
      ...check,
      // Remedies are our own words, of which a password such as `eod` must not make riddles.
      found: redact(check.found),
    }));
  return { checks, key };
}

function engines(): string {
  const file = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { engines: { node: string } }).engines.node;
}

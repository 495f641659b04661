import { existsSync, readFileSync, statSync } from 'node:fs';
import { access, constants, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { loadCalendar } from '../../calendar/calendar.ts';
import { systemClock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { readEnvironment } from '../../core/environment.ts';
import { messageOf } from '../../core/errors.ts';
import { supportedNode } from '../../core/version.ts';
import { clusterLocation } from '../../load/database/embedded/account.ts';
import type { ServerFacts } from '../../load/database/inspect.ts';
import { type Cli, environmentRedactor } from '../cli.ts';
import { openCalendar } from '../open-context.ts';
import {
  bounded,
  type Check,
  type Examination,
  type Found,
  failed,
  isBelow,
  type KeyReport,
  type Outcome,
  ok,
  type Row,
  row,
  skipped,
  warning,
} from './check.ts';
import { databaseChecks } from './database-checks.ts';
import { queueChecks } from './queue-checks.ts';
import { calendarCheck, nightCheck, postgresVariablesCheck, settingsChecks } from './settings-checks.ts';
import { sourceChecks } from './source-checks.ts';

const GB = 1024 ** 3;
/** A year of all operations takes about this much with its kept responses; with less there is no room for a rebuild. */
const ROOMY_BYTES = 5 * GB;
/** Postgres stops when it cannot write its log (WAL). */
const LEAST_BYTES = 0.5 * GB;

/** All checks, in the order in which to look at them. */
const CHECKS: readonly Row[] = [
  row('node', [], () => nodeCheck(process.version, supportedNode())),
  row('settings', [], ({ cli, config }) => [
    ...settingsChecks(config),
    ...(cli.demo === true ? [] : postgresVariablesCheck(readEnvironment(cli.env, cli.cwd), config)),
  ]),
  ...databaseChecks,
  row(
    'disk',
    [],
    ({ cli, config, server }) => diskCheck(config, cli.cwd, server?.facts ?? null),
    'see EOD_DATA_DIR',
  ),
  ...queueChecks,
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
  ...sourceChecks,
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
      server: 'the database does not respond',
      tables: 'see the checks of the database',
      redis: 'Redis does not respond',
      queue: 'see the check of the queue',
      call: 'see the check of the source',
      acceptedKey: 'not requested, because no call has shown that the key is accepted',
    },
  };
  for (const one of CHECKS) for (const check of await made(one, found)) found.checks.push(check);
  const redact = environmentRedactor(cli);
  return {
    // Remedies are our own words: a password such as `eod` must not be replaced in them.
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
  if (missing !== undefined) return [{ name, ...skipped(found.lacks[missing]) }];
  return bounded(name, limitMs, remedy, () => run(found as Examination & Found));
}

/** Checks the version of Node against `engines` of package.json, e.g. `>=20.19`. */
export function nodeCheck(running: string, engines: string): Outcome {
  const [least, own] = [engines.replace(/^\D+/, ''), running.replace(/^v/, '')];
  const needed = `${least} or newer is needed`;
  return isBelow(own, least)
    ? failed(`Node ${own}; ${needed}`, 'install the current LTS release of Node')
    : ok(`Node ${own} (${needed})`);
}

/** The folder of the data of a server that runs on this machine; null if it runs elsewhere, or cannot be seen. */
function dataOnThisMachine({ dataDirectory, pid }: ServerFacts): string | null {
  if (dataDirectory === null || !existsSync(dataDirectory)) return null;
  try {
    // An address of this machine may be a tunnel or a container, whose processes have other numbers.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('postgres') ? dataDirectory : null;
  } catch {
    return null;
  }
}

/** Checks the free space where Postgres keeps its data, or on the disk of this machine if it runs on another. */
async function diskCheck(
  { EOD_DATA_DIR, DATABASE_URL }: Config,
  cwd: string,
  facts: ServerFacts | null,
): Promise<Outcome> {
  const isPrivate = DATABASE_URL === undefined;
  const ofServer = isPrivate || facts === null ? null : dataOnThisMachine(facts);
  const folder = resolve(cwd, EOD_DATA_DIR);
  const cluster = isPrivate ? clusterLocation(resolve(folder, 'postgres')) : null;
  let seen = ofServer ?? (cluster === null || cluster.why === null ? folder : cluster.path);
  while (!existsSync(seen) && dirname(seen) !== seen) seen = dirname(seen);
  const what = isPrivate
    ? `the private Postgres${cluster?.why ? `, because ${cluster.why}` : ''}`
    : ofServer === null
      ? 'files of this machine; the disk of Postgres cannot be seen from here'
      : 'the data of Postgres';
  try {
    if (!statSync(seen).isDirectory()) {
      return failed(
        `${seen} is not a folder`,
        'set EOD_DATA_DIR to a folder, or remove the file instead of it',
      );
    }
    const { bavail, bsize } = await statfs(seen);
    const free = bavail * bsize;
    const found = `${(free / GB).toFixed(1)} GB are free in ${seen} (${what})`;
    const more = `free some room, or ${isPrivate ? 'set EOD_DATA_DIR to' : 'move the data of Postgres to'} a larger disk`;
    if (isPrivate) {
      const isWritable = await access(seen, constants.W_OK).then(
        () => true,
        () => false,
      );
      if (!isWritable) return failed(`${seen} cannot be written`, 'set EOD_DATA_DIR to a folder of yours');
    }
    if (isPrivate || ofServer !== null) {
      if (free < LEAST_BYTES) return failed(found, more);
      if (free < ROOMY_BYTES) return warning(found, more);
    }
    return ok(found);
  } catch (error) {
    return warning(`${seen} cannot be checked: ${messageOf(error)}`, 'set EOD_DATA_DIR to a folder of yours');
  }
}

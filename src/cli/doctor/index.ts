import { loadCalendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import { supportedNode } from '../../core/version.ts';
import type { ObservedDate } from '../../extract/types.ts';
import { type Cli, environmentRedactor } from '../cli.ts';
import { openCalendar } from '../open-context.ts';
import { alertCheck } from './alert-check.ts';
import { bounded, type Check, failed, type Outcome, ok, skipped } from './check.ts';
import {
  diskCheck,
  migrationsCheck,
  openServer,
  queueChecks,
  replayChecks,
  rightsCheck,
  type Server,
  serverCheck,
} from './server-checks.ts';
import { nightCheck, settingsChecks } from './settings-checks.ts';
import { clockCheck, sourceChecks } from './source-checks.ts';

/** The private Postgres may have to be started. */
const CHECK_MS = 60_000;

const NO_SERVER =
  'start the server, or correct host, port, database, user and password in DATABASE_URL; a pooler in front of it must use pool_mode = session';

/**
 * Checks everything the pipeline needs. A server that is down or silent, or a wrong setting, becomes the result of one
 * check; the others are still made, but for those that need that server, and each has a time limit.
 *
 * @param isOffline makes no call to the source.
 * @param alertAddress where to post a test alert; null to post none.
 * @returns the checks in the order in which to look at them; no text holds a secret.
 */
export async function examine(
  cli: Cli,
  config: Config,
  { isOffline, alertAddress }: { readonly isOffline: boolean; readonly alertAddress: string | null },
): Promise<readonly Check[]> {
  const checks: Check[] = [];
  const check = async (name: string, remedy: string, work: Parameters<typeof bounded>[3]) => {
    for (const outcome of await bounded(name, CHECK_MS, remedy, work)) checks.push(outcome);
  };
  // If the user's file cannot be read, the other checks use the built-in calendar alone.
  let calendar = loadCalendar();
  const observed: { server: Server | null; date: ObservedDate | null } = { server: null, date: null };

  await check('node', '', () => nodeCheck(process.version, supportedNode()));
  await check('settings', '', () => settingsChecks(config));
  await check('database', NO_SERVER, async () => {
    observed.server = await openServer(cli, config);
    return serverCheck(cli, config, observed.server);
  });
  const { server } = observed;
  if (server !== null) {
    await check('rights', 'docs/security.md has the statements', () => rightsCheck(server, config));
    await check('migrations', 'run "eod migrate" as the owner', () => migrationsCheck(server, config));
  }
  const isMigrated = checks.some(({ name, state }) => name === 'migrations' && state === 'ok');
  if (server !== null && isMigrated) await check('replay', '', () => replayChecks(server));
  const isReady = checks.filter(({ name, state }) => /^(rights|migrations)$/.test(name) && state === 'ok');
  const tables = isReady.length === 2 ? (server?.db ?? null) : null;
  await check('disk', 'set EOD_DATA_DIR to a folder of yours', () => diskCheck(cli, config, server));
  await check('queue', 'see REDIS_URL', () => queueChecks(config.REDIS_URL));
  await check('night', 'correct or remove EOD_CALENDAR_FILE', () => {
    calendar = openCalendar(cli, config);
    return nightCheck(config, calendar);
  });
  await check('source', '"eod init" writes a .env with all settings', async () => {
    if (cli.demo === true) return skipped('the demo starts a simulated source of its own');
    if (isOffline) return skipped('--offline: no call was made');
    const { checks: sourceOutcomes, date } = await sourceChecks(cli, config, calendar, tables);
    observed.date = date;
    return sourceOutcomes;
  });
  await check('clock', '', () => clockCheck(config, server, observed.date));
  if (alertAddress !== null)
    await check('alert', '', () => alertCheck(config, alertAddress, cli.life.signal));
  const redact = environmentRedactor(cli);
  // Remedies are our own words: a password such as `eod` must not be replaced in them.
  return checks.map((outcome) => ({ ...outcome, found: redact(outcome.found) }));
}

/** Checks the version of Node against `engines` of package.json, e.g. `>=20.19`. */
export function nodeCheck(running: string, engines: string): Outcome {
  const [least, own] = [engines.replace(/^\D+/, ''), running.replace(/^v/, '')];
  const sentence = `Node ${own} (${least} or newer is needed)`;
  const isOld = own.localeCompare(least, 'en', { numeric: true }) < 0;
  return isOld ? failed(sentence, 'install the current LTS release of Node') : ok(sentence);
}

import { loadCalendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import { supportedNode } from '../../core/version.ts';
import { within } from '../../core/waits.ts';
import { postAlert } from '../../jobs/alerts/send-alerts.ts';
import type { Cli } from '../cli.ts';
import { environmentRedactor } from '../load-settings.ts';
import { openCalendar } from '../open-context.ts';
import { describeFailure } from '../reachable.ts';
import { type Check, failed, type Outcome, ok, skipped } from './check.ts';
import {
  diskCheck,
  migrationsCheck,
  openServer,
  queueCheck,
  rightsCheck,
  type Server,
  serverCheck,
} from './server-checks.ts';
import { nightCheck, settingsChecks } from './settings-checks.ts';
import { sourceChecks } from './source-checks.ts';

const NO_SERVER =
  'start the server, or correct host, port, database, user and password in DATABASE_URL; a pooler in front of it must use pool_mode = session';

/** The private Postgres may have to be started. */
const CHECK_MS = 60_000;

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
  type Outcomes = Outcome | readonly Outcome[];
  // What a check throws is its outcome, so that no check hides another; the remedy is for that case.
  const check = async (name: string, remedy: string, work: () => Promise<Outcomes> | Outcomes) => {
    const outcomes = await within(Promise.resolve().then(work), CHECK_MS).catch((error) =>
      failed(describeFailure(error), remedy),
    );
    for (const outcome of [outcomes].flat()) checks.push({ name, ...outcome });
  };
  // If the user's file cannot be read, the other checks use the built-in calendar alone.
  let calendar = loadCalendar();
  const opened: { server: Server | null } = { server: null };

  await check('node', '', () => nodeCheck(process.versions.node, supportedNode()));
  await check('settings', '', () => settingsChecks(config));
  await check('database', NO_SERVER, async () => {
    opened.server = await openServer(cli, config);
    return serverCheck(cli, config, opened.server);
  });
  const { server } = opened;
  if (server !== null) {
    await check('rights', 'docs/security.md has the statements', () => rightsCheck(server, config));
    await check('migrations', 'run "eod migrate" as the owner', () => migrationsCheck(server, config));
  }
  const isOk = (wanted: string) => checks.some(({ name, state }) => name === wanted && state === 'ok');
  const tables = isOk('rights') && isOk('migrations') ? (server?.db ?? null) : null;
  await check('disk', 'set EOD_DATA_DIR to a folder of yours', () => diskCheck(cli, config, server));
  await check('queue', 'see REDIS_URL', () => queueCheck(config.REDIS_URL));
  await check('night', 'correct or remove EOD_CALENDAR_FILE', () => {
    calendar = openCalendar(cli, config);
    return nightCheck(config, calendar);
  });
  await check('source', '"eod init" writes a .env with all settings', async () => {
    if (cli.demo === true) return skipped('the demo starts a simulated source of its own');
    if (isOffline) return skipped('--offline: no call was made');
    return sourceChecks(cli, config, calendar, tables);
  });
  if (alertAddress !== null)
    await check('alert', 'correct EOD_ALERT_WEBHOOK', () => alertCheck(cli, config, alertAddress));
  const redact = environmentRedactor(cli);
  // Remedies are our own words: a password such as `eod` must not be replaced in them.
  return checks.map((outcome) => ({ ...outcome, found: redact(outcome.found) }));
}

/** Checks the version of Node against `engines` of package.json, e.g. `>=20.19`. */
export function nodeCheck(running: string, engines: string): Outcome {
  const least = engines.replace(/^\D+/, '');
  const sentence = `Node ${running} (${least} or newer is needed)`;
  const isOld = running.localeCompare(least, 'en', { numeric: true }) < 0;
  return isOld ? failed(sentence, 'install the current LTS release of Node') : ok(sentence);
}

/** Posts a test alert to an address. @throws Error if it is not accepted. */
async function alertCheck({ life }: Cli, config: Config, address: string): Promise<Outcome> {
  const alert = {
    kind: 'test',
    subject: 'test',
    message: 'this is a test alert; nothing is wrong',
    facts: {},
    raisedAt: new Date().toISOString(),
  };
  await postAlert(config, alert, life.signal);
  return ok(`${new URL(address).host} accepted the test alert`);
}

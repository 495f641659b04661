import { setTimeout as sleep } from 'node:timers/promises';
import type { Calendar } from '../../calendar/calendar.ts';
import { clockOf, systemClock } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { type ErrorKind, messageOf, PipelineError } from '../../core/errors.ts';
import { countRule } from '../../extract/envelope.ts';
import { createSource } from '../../extract/index.ts';
import type { ObservedDate, RawResponse, Source } from '../../extract/types.ts';
import { assessEvidence } from '../../jobs/policy/failure-policy.ts';
import { computeCallLimit, fullHourWait } from '../../jobs/policy/quota.ts';
import { type LastRequest, listLastRequests } from '../../jobs/runs/night-calls.ts';
import type { Database } from '../../postgres/database.ts';
import { readServerTime } from '../../postgres/inspect.ts';
import { returnCall, takeCall } from '../../state/source/call-budget.ts';
import { noteSourceResponded } from '../../state/source/source-state.ts';
import type { Cli } from '../cli.ts';
import { count, duration } from '../output.ts';
import { sourceSettings } from '../source-settings.ts';
import { failed, type Outcome, ok, skipped, warning } from './check.ts';

/** The operation with the shortest response: a few figures about one trading day. */
const CHEAPEST = 'GetTotalTradeHighlights';

/** Time limit of a call: somebody is waiting for the result. */
const CALL_MS = 15_000;

export const USED_UP = 'the calls of this hour are used up, so none was made: try again in the next hour';

/** Opens the source for calls of the doctor. @throws PipelineError `usage` if a setting is missing. */
export function openSource({ life }: Cli, config: Config): Promise<Source> {
  const timeoutMs = Math.min(config.EOD_TIMEOUT_MS, CALL_MS);
  const settings = { ...sourceSettings(config), connections: 1, timeoutMs };
  return life.open(async () => createSource(settings));
}

/**
 * Counts a call that is about to be made, where calls can be counted. Waits for the full hour if it is near: a call sent
 * at the end of one hour and received in the next would count against the wrong one.
 *
 * @returns what it was counted against; null if no call may be made.
 */
async function takeCountedCall({ life }: Cli, config: Config, db: Database | null) {
  // The hour is that of the workers' calls, whatever the clock of this machine says.
  const readTime = () => (db === null ? systemClock.now() : readServerTime(db.pool));
  await sleep(fullHourWait(await readTime(), config.EOD_TIMEZONE), undefined, { signal: life.signal });
  const now = await readTime();
  const callLimit = computeCallLimit(config, { now: () => now });
  return db === null || (await takeCall(db.drizzle, callLimit)) ? callLimit : null;
}

/**
 * Makes a call that is counted where calls can be counted, stores for the workers that the source responded, and reads its
 * response.
 *
 * @returns null if the hour has no call left. That there is no data is no error.
 */
export async function call(
  cli: Cli,
  { config, db }: { readonly config: Config; readonly db: Database | null },
  source: Source,
  { operation, ...requested }: LastRequest,
) {
  const callLimit = await takeCountedCall(cli, config, db);
  if (callLimit === null) return null;
  let response: RawResponse | null = null;
  let extracted: ReturnType<Source['read']> | null = null;
  let failure: PipelineError | null = null;
  try {
    response = await source.fetch(operation, requested, cli.life.signal);
    extracted = source.read(operation, requested, response, countRule(config.EOD_COUNT, false));
  } catch (error) {
    if (!(error instanceof PipelineError) || error.kind === 'aborted') throw error;
    failure = error;
  }
  const { source: state, key } =
    failure === null ? { source: 'success', key: 'accepted' } : assessEvidence(failure, 1);
  if (db !== null && failure?.isUnsent === true) await returnCall(db.drizzle, callLimit);
  // A refused key is left to a worker, which sends the alert.
  if (db !== null && state === 'success' && key !== 'refused')
    await noteSourceResponded(db.drizzle, callLimit.keyHash, key === 'accepted');
  const body = response?.body ?? failure?.response ?? null;
  return { body, extracted, error: failure?.kind === 'no_data' ? null : failure, key };
}

const UNREACHABLE =
  'check EOD_BASE_URL, the network, the TLS certificate, and a firewall or proxy on the way (HTTPS_PROXY, NO_PROXY); a proxy must allow CONNECT to the port';
const USED = 'wait until the quota is renewed; EOD_CALLS_PER_HOUR should be what the key is granted';

const REMEDIES: Partial<Readonly<Record<ErrorKind, string>>> = {
  wrong_address: UNREACHABLE,
  network: UNREACHABLE,
  timeout: UNREACHABLE,
  http_status: 'check the path in EOD_BASE_URL; a status of 5xx is the service itself, try again later',
  credential: 'correct EOD_ACCESS_KEY, or have the key renewed',
  hourly_quota: USED,
  monthly_quota: USED,
  not_ready: 'the source is still preparing the response: try again in a minute',
  operation_blocked: 'ask the service for access if you need it; nights load the others',
  exchange_blocked: 'ask the service for access, or leave the exchange out of EOD_EXCHANGES',
  instrument_blocked: 'set EOD_INSTRUMENTS to instruments that the key may request',
};

/** What to do about a failure of a call. */
export const remedyFor = (kind: ErrorKind): string =>
  REMEDIES[kind] ?? 'check EOD_BASE_URL, EOD_FORMAT, EOD_DATE_DIALECT and EOD_COUNT: it has no known form';

/** Makes one call to check whether the source can be reached, whether it accepts the access key, and what its clock shows. */
export async function sourceChecks(
  cli: Cli,
  config: Config,
  calendar: Calendar,
  db: Database | null,
): Promise<readonly Outcome[]> {
  const source = await openSource(cli, config);
  const requests = listLastRequests({ config, calendar, clock: clockOf(config) });
  const request =
    requests.find(({ operation }) => operation.name === CHEAPEST) ?? (requests[0] as LastRequest);
  const started = performance.now();
  const response = await call(cli, { config, db }, source, request);
  if (response === null) return [skipped(USED_UP)];
  const ms = count(Math.round(performance.now() - started));
  const budget = db === null ? 'one call, not counted: the database cannot be used' : 'one call of the hour';
  const { error, extracted, key } = response;
  const [doubt] = extracted?.doubts ?? [];
  // Whatever it says of this request, a source that accepts the key works.
  const report = key === 'accepted' ? warning : failed;
  const sourceCheck =
    doubt !== undefined
      ? warning(`it responds with something else than was requested (${budget})`, doubt.message)
      : error === null || key === 'refused'
        ? ok(`it responds to ${request.operation.name} in ${ms} ms (${budget})`)
        : report(`${error.kind}: ${messageOf(error)} (${budget})`, remedyFor(error.kind));
  const keyCheck =
    key === 'refused' ? failed(messageOf(error), remedyFor('credential')) : ok('it was accepted');
  const date = source.lastDate();
  return [
    sourceCheck,
    ...(key === 'unknown' ? [] : [{ name: 'access key', ...keyCheck }]),
    ...(date === null ? [] : [{ name: 'clock', ...clockCheck(config, date) }]),
  ];
}

/** Differences between clocks that are worth a warning, or harmful: the hours of the quota begin by the source's. */
const NOTICEABLE_MS = 5_000;
const HARMFUL_MS = 60_000;

/** Compares our clock with that of the source. */
function clockCheck({ EOD_TIMEZONE }: Config, date: ObservedDate): Outcome {
  const zone = `EOD_TIMEZONE is ${EOD_TIMEZONE}`;
  const lead = certainLead(date);
  const difference = Math.abs(lead);
  if (difference < NOTICEABLE_MS) return ok(`ours agrees with the source's; ${zone}`);
  const leadText = `ours is ${duration(difference / 1000)} ${lead > 0 ? 'ahead of' : 'behind'} the source's; ${zone}`;
  const remedy = 'let the machine set its clock by NTP (timedatectl set-ntp true)';
  return (difference < HARMFUL_MS ? warning : failed)(leadText, remedy);
}

/**
 * By how many milliseconds our clock is certainly ahead of the source's (negative: behind), which wrote its time in whole
 * seconds at some moment of the call.
 */
export const certainLead = ({ sentAt, receivedAt, statedAt }: ObservedDate): number =>
  Math.max(0, sentAt - (statedAt + 999)) + Math.min(0, receivedAt - statedAt);

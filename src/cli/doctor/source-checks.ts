import type { Calendar } from '../../calendar/calendar.ts';
import { certainLead, clockOf } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { type ErrorKind, messageOf, PipelineError } from '../../core/errors.ts';
import { countRule } from '../../extract/envelope.ts';
import { createSource } from '../../extract/index.ts';
import type { ObservedDate, RawResponse, Source } from '../../extract/types.ts';
import { assessEvidence } from '../../jobs/policy/failure-policy.ts';
import { type LastRequest, lastRequests } from '../../jobs/runs/night-calls.ts';
import type { Database } from '../../postgres/database.ts';
import type { Cli } from '../cli.ts';
import { countedCall, storeEvidence } from '../counted-call.ts';
import { sourceSettings } from '../open-context.ts';
import { count, duration } from '../output.ts';
import { failed, type Outcome, ok, skipped, warning } from './check.ts';
import type { Server } from './server-checks.ts';

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
 * Makes a call that is counted where calls can be counted, and reads its response.
 *
 * @returns null if the hour has no call left. That there is no data is no error.
 */
export async function call(
  cli: Cli,
  { config, db }: { readonly config: Config; readonly db: Database | null },
  source: Source,
  { operation, ...requested }: LastRequest,
) {
  const callLimit = await countedCall(cli, config, db);
  if (callLimit === null) return null;
  let response: RawResponse | null = null;
  try {
    response = await source.fetch(operation, requested, cli.life.signal);
    const extracted = source.read(operation, requested, response, countRule(config.EOD_COUNT, false));
    if (db !== null) await storeEvidence(db, callLimit, null);
    return { body: response.body, extracted, error: null };
  } catch (error) {
    if (!(error instanceof PipelineError) || error.kind === 'aborted') throw error;
    if (db !== null) await storeEvidence(db, callLimit, error);
    const body = response?.body ?? error.response ?? null;
    return { body, extracted: null, error: error.kind === 'no_data' ? null : error };
  }
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

/**
 * Makes one call to check whether the source can be reached, and whether it accepts the access key.
 *
 * @returns the checks, and the clock of the source.
 */
export async function sourceChecks(
  cli: Cli,
  config: Config,
  calendar: Calendar,
  db: Database | null,
): Promise<{ readonly checks: readonly Outcome[]; readonly date: ObservedDate | null }> {
  const source = await openSource(cli, config);
  const requests = lastRequests({ config, calendar, clock: clockOf(config) });
  const request =
    requests.find(({ operation }) => operation.name === CHEAPEST) ?? (requests[0] as LastRequest);
  const started = performance.now();
  const response = await call(cli, { config, db }, source, request);
  if (response === null) return { checks: [skipped(USED_UP)], date: null };
  const ms = count(Math.round(performance.now() - started));
  const budget = db === null ? 'one call, not counted: the database cannot be used' : 'one call of the hour';
  const { error, extracted } = response;
  const [doubt] = extracted?.doubts ?? [];
  const key = error === null ? 'accepted' : assessEvidence(error, 1).key;
  const isDown = error !== null && (REMEDIES[error.kind] === UNREACHABLE || error.kind === 'http_status');
  const sourceCheck =
    doubt !== undefined
      ? warning(`it responds with something else than was requested (${budget})`, doubt.message)
      : error === null || key === 'refused'
        ? ok(`it responds to ${request.operation.name} in ${ms} ms (${budget})`)
        : (isDown ? failed : warning)(
            `${error.kind}: ${messageOf(error)} (${budget})`,
            remedyFor(error.kind),
          );
  const refusal = failed(messageOf(error), remedyFor('credential'));
  const keyCheck = { name: 'access key', ...(key === 'refused' ? refusal : ok('it was accepted')) };
  return { checks: key === 'unknown' ? [sourceCheck] : [sourceCheck, keyCheck], date: source.lastDate() };
}

/**
 * Differences between clocks that are worth a warning, or harmful: nights and the hours of the quota begin by the
 * clock.
 */
const NOTICEABLE_MS = 5_000;
const HARMFUL_MS = 60_000;

/** Compares our clock with that of the source, and that of the database. */
export function clockCheck(config: Config, server: Server | null, date: ObservedDate | null): Outcome {
  const zone = `EOD_TIMEZONE is ${config.EOD_TIMEZONE}`;
  const leads = [
    // The header has whole seconds, so on average it is half a second behind.
    ...(date === null ? [] : [{ whose: "the source's", ahead: certainLead(date, date.statedAt + 500) }]),
    ...(server === null ? [] : [{ whose: "the database's", ahead: -server.clockAheadMs }]),
  ];
  const [worst] = leads.toSorted((a, b) => Math.abs(b.ahead) - Math.abs(a.ahead));
  if (worst === undefined) return skipped(`there is no other clock to compare ours with; ${zone}`);
  const off = Math.abs(worst.ahead);
  if (off < NOTICEABLE_MS) {
    return ok(`ours agrees with ${leads.map(({ whose }) => whose).join(' and ')}; ${zone}`);
  }
  const leadText = `ours is ${duration(off / 1000)} ${worst.ahead > 0 ? 'ahead of' : 'behind'} ${worst.whose}; ${zone}`;
  const remedy = 'let the machine set its clock by NTP (timedatectl set-ntp true)';
  return off < HARMFUL_MS ? warning(leadText, remedy) : failed(leadText, remedy);
}

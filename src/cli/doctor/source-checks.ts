import { clockOf, systemClock, today } from '../../core/clock.ts';
import { addDays, zoneOffsetSeconds } from '../../core/days.ts';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { decodeText } from '../../extract/body.ts';
import { createSource, type Source } from '../../extract/index.ts';
import { trialAddressText } from '../../extract/read.ts';
import { evidenceOf } from '../../jobs/policy/failure-policy.ts';
import { callLimitOf, callsOf } from '../../jobs/policy/quota.ts';
import { readKeptResponse } from '../../load/state/responses/responses.ts';
import { newestResponses } from '../../load/state/responses/to-replay.ts';
import { readKeyRefusal } from '../../load/state/source/access-keys.ts';
import { closeHour, readHour } from '../../load/state/source/call-budget.ts';
import { readWorkers } from '../../load/state/workers.ts';
import { LIMITATION } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import { countedCall, storeEvidence } from '../counted-call.ts';
import { sourceSettings } from '../open-context.ts';
import { cannotStoreText, count, duration } from '../output.ts';
import {
  type CallMade,
  certainLead,
  type Examination,
  failed,
  type Outcome,
  ok,
  type Row,
  row,
  skipped,
  type With,
  warning,
} from './check.ts';
import { keyReport, limitationChecks } from './limitation-checks.ts';

/** The operation with the shortest response: a few figures about one session. */
const CHEAPEST = 'GetTotalTradeHighlights';

/** Time limit of the call: somebody is waiting for the result of the check. */
export const CALL_MS = 15_000;

export const USED_UP = 'the calls of this hour are used up, so none was made: try again in the next hour';

/**
 * Makes one call to check whether the source can be reached, whether it accepts the access key, and what its clock
 * says. It counts in the hour's budget like any other, and is not made if nothing is left of that.
 */
async function checkSource(found: Examination): Promise<Outcome> {
  const { cli, config, tables: db = null } = found;
  const none = (why: string) => {
    found.lacks.call = found.lacks.acceptedKey = why;
    return skipped(why);
  };
  if (cli.demo === true) return none('the demo starts a simulated source of its own');
  if (config.EOD_BASE_URL === undefined || config.EOD_ACCESS_KEY === undefined) {
    none('no call can be made');
    const missing = (['EOD_BASE_URL', 'EOD_ACCESS_KEY'] as const).filter(
      (name) => config[name] === undefined,
    );
    const remedy =
      'set them in the environment or in .env ("eod init" writes one); "eod sandbox" starts a simulated source and prints what to set';
    return failed(`${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not set`, remedy);
  }
  if (found.offline) return none('--offline: no call was made');
  const callLimit = await countedCall(cli, config, db);
  if (callLimit === null) return none(USED_UP);
  const settings = {
    ...sourceSettings(config),
    connections: 1,
    timeoutMs: Math.min(config.EOD_TIMEOUT_MS, CALL_MS),
  };
  const source = await cli.life.open(async () => createSource(settings));
  found.call = await call(source, found);
  if (db !== null) await storeEvidence(db, callLimit, found.call.error);
  return sourceCheck(found.call);
}

/**
 * Requests the limits of the key, with another call of the hour's budget, and checks them. One line reports a service
 * that does not state them.
 */
async function checkKeyReport(found: With<'acceptedKey'>): Promise<Outcome | readonly Outcome[]> {
  const { cli, config, calendar, acceptedKey: source, tables: db = null } = found;
  const callLimit = await countedCall(cli, config, db);
  if (callLimit === null) return skipped(USED_UP);
  const silent = `the service does not say what the key may do (${LIMITATION}`;
  try {
    const limitation = await source.limitation(cli.life.signal);
    if (limitation === null) return skipped(`${silent}: a response of unknown form)`);
    found.key = keyReport(limitation, config);
    return limitationChecks(found.key, config, calendar, systemClock);
  } catch (error) {
    if (db !== null && evidenceOf(error, 1).hour === 'closed')
      await closeHour(db.drizzle, callLimit, messageOf(error));
    return skipped(`${silent}: ${messageOf(error)})`);
  }
}

async function call(source: Source, { cli, calendar, config, tables }: Examination): Promise<CallMade> {
  const operation = operationNamed(CHEAPEST);
  const exchange = operation.exchanges[0] as string;
  const { EOD_TRIAL_DAY: trial } = config;
  const now = today(clockOf(config), config.EOD_TIMEZONE);
  const day = trial ?? calendar.lastSessions(exchange, addDays(now, -1), 1)[0] ?? addDays(now, -1);
  const started = performance.now();
  let error: unknown = null;
  let trialDay: string | undefined;
  try {
    const params: Record<string, string> = trial === undefined ? {} : { trialDay: trial };
    const requested = { exchange, from: day, to: day, instruments: [], params, calledOn: now };
    ({ trialDay } = source.read(
      operation,
      requested,
      await source.fetch(operation, requested, cli.life.signal),
    ));
  } catch (caught) {
    error = caught;
  }
  const ms = Math.round(performance.now() - started);
  return { source, error, ms, date: source.lastDate(), counted: tables !== undefined, trialDay };
}

function sourceCheck({ error, ms, counted, trialDay }: CallMade): Outcome {
  const budget = counted ? 'one call of the hour' : 'one call, not counted: the database cannot be used';
  if (trialDay !== undefined) {
    return warning(
      `it serves ${trialDay}, whatever day is requested (${budget})`,
      trialAddressText(trialDay),
    );
  }
  if (error === null) return ok(`it sent ${CHEAPEST} in ${count(ms)} ms (${budget})`);
  const kind = error instanceof PipelineError ? error.kind : 'internal';
  const found = `${kind}: ${messageOf(error)} (${budget})`;
  if (kind === 'credential') return ok(`it responds, in ${count(ms)} ms (${budget})`);
  if (kind === 'not_ready') return ok(`it responds: ${found}`);
  const [state, remedy] = FAILURES[kind] ?? [warning, UNKNOWN_FORM];
  return state(found, remedy);
}

const UNREACHABLE =
  'check EOD_BASE_URL, the network, the TLS certificate, and a firewall or proxy on the way (HTTPS_PROXY, NO_PROXY); a proxy must allow CONNECT to the port';
const USED = 'wait until the quota is renewed; EOD_CALLS_PER_HOUR should be what the key is granted';
const NO_RIGHT = `ask the service for access, if you need ${CHEAPEST}; others may work`;
const UNKNOWN_FORM = 'check EOD_BASE_URL, EOD_FORMAT and EOD_DATE_DIALECT: the response has no known form';

/** What a failure of the call means for the pipeline, and what to do about it, by its kind. */
const FAILURES: Readonly<Record<string, readonly [state: typeof failed, remedy: string]>> = {
  wrong_address: [failed, UNREACHABLE],
  network: [failed, UNREACHABLE],
  timeout: [failed, UNREACHABLE],
  http_status: [
    failed,
    'check the path in EOD_BASE_URL; a status of 5xx is the service itself, try again later',
  ],
  hourly_quota: [warning, USED],
  monthly_quota: [warning, USED],
  operation_blocked: [warning, NO_RIGHT],
  exchange_blocked: [warning, NO_RIGHT],
  instrument_blocked: [warning, NO_RIGHT],
};

/** What to do about a failure of a call, by its kind. */
export const remedyFor = (kind: string): string => REMEDIES[kind] ?? FAILURES[kind]?.[1] ?? UNKNOWN_FORM;

const REMEDIES: Readonly<Record<string, string>> = {
  credential: 'correct EOD_ACCESS_KEY, or have the key renewed',
  not_ready: 'the source is still preparing the response: try again in a minute',
  operation_blocked: 'ask the service for access if you need it; nights load the others',
  exchange_blocked: 'ask the service for access, or leave the exchange out of EOD_EXCHANGES',
  instrument_blocked: 'set EOD_INSTRUMENTS to instruments that the key may request',
  range_refused: 'the source does not serve this day any more, or not yet',
};

function checkKey(found: With<'call'>): Outcome {
  const check = keyCheck(found.call);
  if (check.state === 'ok') found.acceptedKey = found.call.source;
  return check;
}

function keyCheck({ error }: CallMade): Outcome {
  if (error === null) return ok('it was accepted');
  const { key } = evidenceOf(error, 1);
  if (key === 'refused') {
    return failed(messageOf(error), 'correct EOD_ACCESS_KEY, or have the key renewed');
  }
  if (key === 'accepted') return ok('it was accepted');
  return skipped('the call did not show it');
}

/**
 * Differences between clocks that are worth a warning, or harmful: nights and the hours of the quota begin by the
 * clock.
 */
const NOTICEABLE_MS = 5_000;
const HARMFUL_MS = 60_000;

function clockCheck({ call: made, server, config }: Examination): Outcome {
  const date = made?.date ?? null;
  const databaseAheadMs = server?.clockAheadMs ?? null;
  const remedy = 'let the machine set its clock by NTP (timedatectl set-ntp true)';
  const zone = `EOD_TIMEZONE is ${config.EOD_TIMEZONE}`;
  // The header has whole seconds, so on average it is half a second behind.
  const ahead = date === null ? null : certainLead(date, date.said + 500);
  const seen = [
    ...(ahead === null ? [] : [{ who: "the source's", ahead }]),
    ...(databaseAheadMs === null ? [] : [{ who: "the database's", ahead: -databaseAheadMs }]),
  ];
  if (seen.length === 0) return skipped(`there is no other clock to compare ours with; ${zone}`);
  const [worst] = seen.toSorted((a, b) => Math.abs(b.ahead) - Math.abs(a.ahead)) as [(typeof seen)[0]];
  const off = Math.abs(worst.ahead);
  if (off < NOTICEABLE_MS) return ok(`ours agrees with ${seen.map(({ who }) => who).join(' and ')}; ${zone}`);
  const found = `ours is ${duration(off / 1000)} ${worst.ahead > 0 ? 'ahead of' : 'behind'} ${worst.who}; ${zone}`;
  if (off < HARMFUL_MS) return warning(found, remedy);
  const offsets = [config.EOD_TIMEZONE, Intl.DateTimeFormat().resolvedOptions().timeZone].map((name) =>
    Math.abs(zoneOffsetSeconds(name, Math.floor(Date.now() / 1000)) * 1000),
  );
  const isZone = offsets.some((offset) => offset !== 0 && Math.abs(offset - off) < HARMFUL_MS);
  return failed(
    isZone
      ? `${found}; that is the offset of a time zone: the clock was set to local time while it should hold UTC`
      : found,
    remedy,
  );
}

/** Checks that responses are requested in the format of the newest kept one: the source prints digits by format. */
async function formatCheck({ config, tables: db }: With<'tables'>): Promise<Outcome> {
  const [newest] = await newestResponses(db.drizzle, null, 1);
  const response = newest === undefined ? null : await readKeptResponse(db.drizzle, newest);
  if (response === null) return skipped('no response is kept to compare with');
  const before = formatOf(decodeText(response.body));
  const requested = config.EOD_FORMAT === 'CsvContent' ? 'Csv' : config.EOD_FORMAT;
  if (before === requested) return ok(`responses are requested in the format of the newest one, ${before}`);
  return warning(
    `EOD_FORMAT is ${config.EOD_FORMAT}, the newest kept response is ${before}: the source may print numbers with other digits, and each row whose digits differ gets a revision when it is requested again`,
    `set EOD_FORMAT=${before}, unless the change is meant`,
  );
}

/** The format of a response that was read before. */
function formatOf(text: string): 'Json' | 'Xml' | 'Csv' {
  const start = text.trimStart().slice(0, 4);
  if (start.startsWith('<')) return 'Xml';
  return /^[[{]|^null$/.test(start) ? 'Json' : 'Csv';
}

/** Checks how many of the hour's calls are left, as counted in the database. */
async function quotaCheck({ config, tables: db }: With<'tables'>): Promise<Outcome> {
  if (config.EOD_ACCESS_KEY === undefined) return skipped('EOD_ACCESS_KEY is not set');
  const callLimit = callLimitOf(config, systemClock);
  const hour = await readHour(db.drizzle, callLimit);
  const refusal = await readKeyRefusal(db.drizzle, callLimit.keyHash);
  if (refusal !== null) {
    return failed(
      `no calls are made: the source refused the key ("${refusal}")`,
      'correct EOD_ACCESS_KEY, or have the key renewed, then "eod runs resume" what was blocked',
    );
  }
  const [nightly, backfill] = (['nightly', 'backfill'] as const).map(
    (queue) => callsOf(queue, callLimit, hour).left,
  );
  if (hour.refused !== null) {
    return warning(
      `the source has closed this hour after ${count(hour.calls)} calls: "${hour.refused}"`,
      'wait for the next clock hour; if this happens again, set EOD_CALLS_PER_HOUR lower',
    );
  }
  const found = `${count(nightly ?? 0)} of ${count(callLimit.limit)} calls of this hour are left, ${count(backfill ?? 0)} of them for backfills`;
  return nightly === 0 ? warning(found, 'wait for the next clock hour') : ok(found);
}

/** Checks whether Postgres stores the responses that workers have. */
async function storageCheck({ config, tables: db }: With<'tables'>): Promise<Outcome> {
  const found = cannotStoreText(await readWorkers(db.drizzle), config.EOD_TIMEZONE);
  return found === null
    ? ok('no worker has a response that Postgres does not store')
    : failed(found, 'see the disk and the log of Postgres; the responses are kept and stored then');
}

/** Longer than the time limits of the call and the queries. */
const CHECK_MS = 40_000;

/** The checks of the source, in the order in which to look at them. */
export const sourceChecks: readonly Row[] = [
  row('source', [], checkSource, 'see EOD_BASE_URL', CHECK_MS),
  row('access key', ['call'], checkKey),
  row('key limits', ['acceptedKey'], checkKeyReport, 'see EOD_BASE_URL', CHECK_MS),
  row('clock', [], clockCheck),
  row('quota', ['tables'], quotaCheck),
  row('storage', ['tables'], storageCheck),
  row('format', ['tables'], formatCheck),
];

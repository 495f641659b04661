import { access, constants, mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { today } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { addDays, type Day, epochOf } from '../../core/days.ts';
import { messageOf, PipelineError, usageError } from '../../core/errors.ts';
import { countRule } from '../../extract/envelope.ts';
import { createSource } from '../../extract/index.ts';
import { trialAddressText } from '../../extract/read.ts';
import type { Extracted, RawResponse, Source } from '../../extract/types.ts';
import type { Context } from '../../jobs/context.ts';
import { outcomeOf } from '../../jobs/responses/store-response.ts';
import { planTargets } from '../../jobs/runs/plan-windows.ts';
import type { Requested } from '../../operations/fields.ts';
import { dueMinutes } from '../../operations/night-times.ts';
import {
  AHEAD,
  exchangesOf,
  isDated as hasDays,
  isByInstrument,
  type Operation,
} from '../../operations/operation.ts';
import { requestedOperations } from '../../operations/requested.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { countedCall, storeEvidence } from '../counted-call.ts';
import { openContext, sourceSettings } from '../open-context.ts';
import { type Column, columnsOf, plural, table } from '../output.ts';
import { CALL_MS, remedyFor, USED_UP } from './source-checks.ts';

/** Requested of operations by instrument where EOD_INSTRUMENTS names none: every source of this data knows it. */
const INSTRUMENT = 'TCS';

type Dialect = Config['EOD_DATE_DIALECT'];

type OperationReport = ReturnType<typeof reportOf>;

interface SourceFlags extends JsonFlag {
  /** A folder for the bodies of the responses, which do not hold the access key. */
  readonly save?: string;
}

/**
 * Requests each operation once about its last due day, as a night would, and shows what the reader makes of the
 * responses. Each call is counted in the budget of the hour.
 */
export async function examineOperations(cli: Cli, flags: SourceFlags): Promise<void> {
  const { save, json } = flags;
  const config = await loadSettings(cli);
  const timeoutMs = Math.min(config.EOD_TIMEOUT_MS, CALL_MS);
  const settings = { ...sourceSettings(config), connections: 1, timeoutMs };
  const folder = save === undefined ? null : await openFolder(resolve(cli.cwd, save));
  const context = await openContext(cli, { config });
  const openSource = (dateDialect: Dialect) =>
    cli.life.open(async () => createSource({ ...settings, dateDialect }, context.log));

  let dialect = config.EOD_DATE_DIALECT;
  let source = await openSource(dialect);
  let isDialectKnown = false;
  let stopped: string | null = null;
  const reports: OperationReport[] = [];
  for (const request of requestsOfNight(context)) {
    const reason = stopped ?? request.reason;
    const isDated = hasDays(request.operation, request);
    let response = reason === null ? await call(cli, context, source, request) : null;
    if (response !== null && isRefusal(response.error) && isDated && !isDialectKnown) {
      // The days may have other names at this source.
      const other = dialect === 'epoch' ? 'iso-date' : 'epoch';
      const otherSource = await openSource(other);
      const again = await call(cli, context, otherSource, request);
      if (again?.error === null) [response, dialect, source] = [again, other, otherSource];
    }
    if (response === null && reason === null) stopped = USED_UP;
    if (ENDS_ALL.includes(response?.error?.kind ?? '')) stopped = 'not requested, as it would fail likewise';
    isDialectKnown ||= isDated && response?.error === null;
    const file = await saveBody(folder, request, response?.body ?? null);
    reports.push(reportOf(request, response, config, stopped ?? reason, file));
  }

  const isOtherDialect = dialect !== config.EOD_DATE_DIALECT;
  const isOk = stopped === null && !isOtherDialect && reports.every(({ isReadable }) => isReadable !== false);
  if (!isOk) cli.exitCode = EXIT.failed;
  if (json === true) return printJson(cli, { isOk, dateDialect: dialect, operations: reports });
  print(cli, reportText(reports, isOtherDialect ? dialect : null));
}

/** @throws PipelineError `usage` if files cannot be written there, before any call is made. */
async function openFolder(folder: string): Promise<string> {
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    return folder;
  } catch (error) {
    throw usageError(`--save: files cannot be written in ${folder}: ${messageOf(error)}`);
  }
}

/** The request of an operation about its last due day. */
interface OperationRequest extends Requested {
  readonly operation: Operation;
  /** Why there is nothing to request; null if there is. */
  readonly reason: string | null;
}

/** The request of each operation that nights request, of its first exchange, as they would be planned. */
function requestsOfNight({ config, calendar, clock }: Context): OperationRequest[] {
  return requestedOperations(config).flatMap((operation): OperationRequest[] => {
    const [exchange] = exchangesOf(operation, config);
    if (exchange === undefined) return [];
    const day = lastDueDay(operation, exchange, { config, calendar, clock });
    const input = {
      operation,
      exchange,
      from: day,
      to: day,
      sessions: [day],
      instruments: isByInstrument(operation) ? [config.EOD_INSTRUMENTS?.[0] ?? INSTRUMENT] : [],
      options: {},
      covered: new Map(),
      refetchFrom: null,
      today: day,
      trialDay: clock.trialDay,
      live: true,
    };
    const windows = [...planTargets([input])].filter(({ variant }) => variant !== AHEAD);
    const pending = windows.filter(({ state }) => state === 'pending');
    const window = pending.find(({ variant }) => variant === '') ?? pending[0] ?? windows[0];
    if (window === undefined) return [];
    const { from, to, params, reason } = window;
    const calledOn = today(clock, config.EOD_TIMEZONE);
    return [{ operation, exchange, from, to, instruments: window.instruments, params, calledOn, reason }];
  });
}

/** The last trading day whose data a night has requested, or the day that a trial address serves. */
function lastDueDay(
  operation: Operation,
  exchange: string,
  { config, calendar, clock }: Pick<Context, 'config' | 'calendar' | 'clock'>,
): Day {
  const { EOD_TIMEZONE: zone } = config;
  const now = today(clock, zone);
  if (clock.trialDay !== undefined) return now;
  const isDue = clock.now() >= 1_000 * epochOf(now, dueMinutes(operation, config) * 60, zone);
  const last = isDue ? now : addDays(now, -1);
  return calendar.lastSessions(exchange, last, 1)[0] ?? last;
}

interface CallResult {
  readonly body: Buffer | null;
  readonly extracted: Extracted | null;
  readonly error: PipelineError | null;
}

/** Makes a call, and reads its response. @returns null if the hour has no call left. */
async function call(
  cli: Cli,
  { config, db }: Context,
  source: Source,
  { operation, ...requested }: OperationRequest,
): Promise<CallResult | null> {
  const callLimit = await countedCall(cli, config, db);
  if (callLimit === null) return null;
  let response: RawResponse | null = null;
  try {
    response = await source.fetch(operation, requested, cli.life.signal);
    const extracted = source.read(operation, requested, response, countRule(config.EOD_COUNT, false));
    await storeEvidence(db, callLimit, null);
    return { body: response.body, extracted, error: null };
  } catch (error) {
    if (!(error instanceof PipelineError) || error.kind === 'aborted') throw error;
    await storeEvidence(db, callLimit, error);
    // That there is no data is a response as well.
    const isEmpty = error.kind === 'no_data';
    return { body: response?.body ?? error.response ?? null, extracted: null, error: isEmpty ? null : error };
  }
}

/** After these no other call is served. */
const ENDS_ALL: readonly string[] = [
  'credential',
  'monthly_quota',
  'hourly_quota',
  'wrong_address',
  'network',
];

/** True if the source refuses the request itself. */
const isRefusal = (error: PipelineError | null): boolean =>
  error?.kind === 'bad_request' || error?.kind === 'unknown_diagnostic' || error?.status === 400;

async function saveBody(
  folder: string | null,
  { operation, exchange, from }: OperationRequest,
  body: Buffer | null,
): Promise<string | null> {
  if (folder === null || body === null) return null;
  const file = join(folder, `${operation.name}-${exchange}-${from}.txt`);
  await writeFile(file, body);
  return file;
}

/** What a call has shown; the tables that its records fill show their form. @param problem why no call was made. */
function reportOf(
  { operation, exchange, from, to, instruments }: OperationRequest,
  response: CallResult | null,
  config: Config,
  problem: string | null,
  file: string | null,
) {
  const { batches = [], rejects = [], fetched = 0, unknownFields = [], trialDay } = response?.extracted ?? {};
  const error = response?.error ?? null;
  const isStored =
    response?.extracted == null ||
    outcomeOf(response.extracted, config.EOD_MAX_REJECT_SHARE).state !== 'failed';
  const [{ path = '', message = '' } = {}] = rejects[0]?.problems ?? [];
  return {
    ...{ operation: operation.name, exchange, from, to, instruments },
    isReadable: response === null ? null : error === null && isStored,
    rows: fetched - rejects.length,
    rejects: rejects.length,
    tables: batches.filter(({ rows }) => rows.length > 0).map(({ table }) => table.name),
    unknownFields,
    problem:
      error !== null
        ? `${error.kind}: ${messageOf(error)}`
        : rejects.length > 0
          ? `${rejects.length} of ${plural(fetched, 'record')} are rejected, the first: ${path} ${message}`
          : problem,
    remedy:
      error !== null ? remedyFor(error.kind) : trialDay === undefined ? null : trialAddressText(trialDay),
    file,
  };
}

const COLUMNS: readonly Column<OperationReport>[] = [
  {
    head: 'state',
    cell: ({ isReadable }) => (isReadable === null ? 'skipped' : isReadable ? 'ok' : 'failed'),
  },
  ...columnsOf<OperationReport>('operation', 'exchange'),
  { head: 'day', cell: ({ to }) => to },
  ...columnsOf<OperationReport>('rows', 'rejects'),
  { head: 'fills', cell: ({ tables }) => tables.join(', ') },
];

/** @param dialect the one in which the source reads days, if it is not the one that is set. */
function reportText(reports: readonly OperationReport[], dialect: Dialect | null): string {
  const notes = reports.flatMap(({ operation, unknownFields, problem, remedy }) => [
    ...(unknownFields.length === 0 ? [] : [`${operation}: no column reads ${unknownFields.join(', ')}`]),
    ...(problem === null ? [] : [`${operation}: ${[problem, remedy ?? []].flat().join('; ')}`]),
  ]);
  if (dialect !== null)
    notes.push(`the source names days otherwise than they are requested: set EOD_DATE_DIALECT=${dialect}`);
  const readable = reports.filter(({ isReadable }) => isReadable === true).length;
  const saved = reports.flatMap(({ file }) => file ?? []);
  return [
    table(COLUMNS, reports),
    ...(notes.length === 0 ? [] : ['', ...notes]),
    ...(saved.length === 0
      ? []
      : ['', `Saved in ${dirname(saved[0] ?? '')}: ${saved.map((file) => basename(file)).join(', ')}`]),
    '',
    `${readable} of ${plural(reports.length, 'operation')} ${readable === 1 ? 'is' : 'are'} readable.`,
  ].join('\n');
}

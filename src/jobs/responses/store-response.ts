import type { Day } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import type { Position } from '../../core/position.ts';
import { printable } from '../../extract/sanitize.ts';
import type { Extracted } from '../../extract/types.ts';
import { databaseError } from '../../load/database/database-errors.ts';
import type { ResponseReading } from '../../load/market/fold/fold.ts';
import { loadWindow, type ReceivedResponse } from '../../load/market/load-window.ts';
import type { FullSet } from '../../load/market/merge/merge.ts';
import type { CoverageEntry } from '../../load/state/registers.ts';
import type { KeptResponse, ResponseToKeep } from '../../load/state/responses/responses.ts';
import type { DataSet } from '../../operations/operation.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { countValues } from '../../operations/rows.ts';
import type { Context } from '../context.ts';
import { settleConflicts } from './conflicting-records.ts';
import { createResponseReader } from './read-response.ts';
import { type CoveredWindow, coverageOf } from './response-coverage.ts';
import type { ReadResponse } from './session-response.ts';
import { observeSessions, sessionDaysOf } from './sync-sessions.ts';

/** A window with its response, which has been read. */
export interface ReceivedWindow extends ReadResponse {
  readonly window: CoveredWindow & Pair & { readonly id: number; readonly runId: number };
  /** Where the response stands in the order of responses. */
  readonly position: Position;
  readonly positionAmongFiles?: ReceivedResponse['positionAmongFiles'];
  /** Time of the call in epoch milliseconds: it decides what an empty response means. */
  readonly calledAt: number;
  /** Size of the body as it was sent. */
  readonly bytes: number;
  /** From `digestOf`, if the response has just come from the source. */
  readonly digest?: string;
  /** The response as it is noted, and kept for replay. */
  readonly response: ResponseToKeep;
  /** Reads kept responses to fold them; of a file, the function that has read those that it is compared with. */
  readonly readKept?: ReturnType<typeof createResponseReader>;
  /** True if it was computed from stored data. Then it may withdraw any number of rows. */
  readonly trusted?: boolean;
}

/** A response that was stored, the state in which its window ended, and why. */
type StoredResponse = NonNullable<Awaited<ReturnType<typeof loadWindow>>> & { readonly outcome: Outcome };

/**
 * Stores a response: its rows, rejects and coverage, and the end of its window. Kept responses are treated like those
 * just fetched.
 *
 * @returns null if the window had already ended.
 */
export async function storeResponse(
  context: Context,
  received: ReceivedWindow,
): Promise<StoredResponse | null> {
  const { window, calledAt, response, readKept, trusted } = received;
  const reading = await asStored(context, window, received, { calledAt, calledOn: response.calledOn });
  const stored = await loadWindow(context.db, {
    ...responseOf(received),
    ...reading,
    response,
    readAgain: (response) => readToFold(context, response, readKept),
    maxWithdrawShare: trusted === true ? 1 : context.config.EOD_MAX_WITHDRAW_SHARE,
  });
  return stored && { ...stored, outcome: reading.outcome };
}

/** A response as it is stored, read or not. */
export function responseOf({
  window,
  calledAt,
  position,
  positionAmongFiles,
  bytes,
  digest,
}: Omit<ReceivedWindow, 'extracted' | 'response'>): ReceivedResponse {
  const { id: windowId, runId, operation, exchange, from, to } = window;
  const requested = { windowId, runId, operation, exchange, from, to };
  return { ...requested, position, positionAmongFiles, fetchedAt: new Date(calledAt), bytes, digest };
}

/** The part of a response that is stored: no rows if too many records were rejected. */
function storablePart({ config }: Pick<Context, 'config'>, extracted: Extracted, calledAt: number) {
  const outcome = outcomeOf(extracted, config.EOD_MAX_REJECT_SHARE);
  const { batches, warnings } = limitSavedAt(extracted, calledAt);
  const failed = outcome.state === 'failed';
  return {
    outcome,
    warnings,
    extracted: {
      ...extracted,
      batches: failed ? [] : batches,
      fetched: failed ? extracted.rejects.length : extracted.fetched,
    },
  };
}

/** When a response was requested. */
interface CallTime {
  /** In epoch milliseconds. */
  readonly calledAt: number;
  /** The trading day of the call. */
  readonly calledOn: Day;
}

/** What a response means for the coverage of its days, and what it lists in full. */
function daysOfResponse(
  { config, calendar }: Pick<Context, 'config' | 'calendar'>,
  window: CoveredWindow & Pair,
  { extracted, calledAt, calledOn }: Pick<ReceivedWindow, 'extracted'> & CallTime,
) {
  const dataSet = dataSetNamed(window.operation);
  const suspicions = extracted.doubts.map(({ message }) => message);
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  const when = { calledAt, calledOn, calendar, config };
  const requested = coverageOf(dataSet, window, sessions, extracted, when);
  const coverage = requested.map((entry) =>
    // Some records are not what was requested, so the others cannot be trusted to be complete.
    suspicions.length === 0
      ? entry
      : { ...entry, state: 'failed' as const, diagnostic: suspicions.join('; ') },
  );
  return {
    coverage,
    fullSets: extracted.listsAll ? fullSetsOf(dataSet, window, extracted, coverage, calledOn) : [],
    suspicions,
    suspicionsWithoutReject: unsettledDoubts(extracted),
    warnings: otherInstrumentsText(dataSet, window, extracted),
  };
}

/**
 * Which names an instrument has is a guess, as a requested one may have been renamed: records of instruments that were
 * not requested by any name they have are stored, with this warning.
 */
function otherInstrumentsText(
  dataSet: DataSet,
  { instruments }: CoveredWindow,
  { batches }: Extracted,
): string[] {
  if (instruments.length === 0) return [];
  const requested = new Set(instruments.map((one) => one.trim().toUpperCase()));
  const others = new Map<string, number>();
  for (const { table, rows } of batches) {
    const { symbolColumn } = dataSet.shapes.find((one) => one.table === table) ?? {};
    if (symbolColumn === undefined) continue;
    const columns = [symbolColumn, ...table.names.flatMap((one) => [one.symbol, one.isin, one.scripCode])];
    for (const row of rows) {
      const names = columns.flatMap((column) => (column === undefined ? [] : (row[column] ?? [])));
      if (names.length === 0 || names.some((one) => requested.has(String(one).toUpperCase()))) continue;
      others.set(String(names[0]), (others.get(String(names[0])) ?? 0) + 1);
    }
  }
  if (others.size === 0) return [];
  const records = [...others.values()].reduce((sum, count) => sum + count, 0);
  const named = [...others.keys()].slice(0, 3).map((name) => printable(name.slice(0, 40)));
  return [
    `${records === 1 ? 'a record names an instrument that was' : `${records} records name instruments that were`} not requested (${named.join(', ')}${others.size > 3 ? ', …' : ''}); stored, because a requested instrument may have been renamed`,
  ];
}

/**
 * Reads a kept response to apply it again together with others (`load/market/fold/merge-or-fold.ts`).
 *
 * @throws PipelineError `unreadable`
 */
export async function readToFold(
  context: Context,
  response: KeptResponse,
  read = createResponseReader(context),
): Promise<ResponseReading> {
  const { calledOn, fetchedAt } = response;
  return asStored(context, response, await read(response), { calledOn, calledAt: fetchedAt.getTime() });
}

/** What of a response is stored, and what it says of its days. */
async function asStored(
  context: Context,
  window: CoveredWindow & Pair,
  { extracted, preserved }: ReadResponse,
  call: CallTime,
) {
  const read = settleConflicts(extracted, dataSetNamed(window.operation).shapes);
  const { outcome, extracted: storable, warnings } = storablePart(context, read, call.calledAt);
  await noteSessions(context, window, storable);
  const days = daysOfResponse(context, window, { extracted: storable, ...call });
  const { batches, rejects } = storable;
  return {
    ...days,
    batches,
    rejects,
    outcome,
    preserved,
    warnings: [...read.warnings, ...warnings, ...days.warnings],
  };
}

/** Called before the coverage is determined, so that it includes days that the calendar wrongly lists as closed. */
async function noteSessions(
  context: Context,
  window: CoveredWindow & Pair,
  extracted: Extracted,
): Promise<void> {
  const proven = sessionDaysOf(window.operation, window, extracted);
  await observeSessions(context, window.exchange, proven).catch((error) => {
    throw databaseError(error);
  });
}

/** The source's clock may be this far ahead of ours. */
const CLOCK_TOLERANCE_MS = 3_600_000;

/**
 * Replaces times at which records were saved by the time of the call if they are later than that: they must be wrong,
 * and would make every later correction look older than the record.
 */
function limitSavedAt(
  { batches }: Extracted,
  calledAt: number,
): { readonly batches: Extracted['batches']; readonly warnings: readonly string[] } {
  const latest = calledAt + CLOCK_TOLERANCE_MS;
  const call = new Date(calledAt).toISOString();
  const tooLate = new Map<unknown, number>();
  for (const { rows } of batches) {
    for (const [saved, records] of countValues(rows, 'source_saved_at')) {
      if (typeof saved !== 'string' || Date.parse(saved) <= latest) continue;
      tooLate.set(saved, (tooLate.get(saved) ?? 0) + records);
    }
  }
  if (tooLate.size === 0) return { batches, warnings: [] };
  const [first] = tooLate.keys();
  const all = [...tooLate.values()].reduce((sum, records) => sum + records, 0);
  return {
    batches: batches.map(({ table, rows }) => ({
      table,
      rows: Array.from(rows, (row) =>
        tooLate.has(row.source_saved_at) ? { ...row, source_saved_at: call } : row,
      ),
    })),
    warnings: [
      `${all} records say they were saved after they were sent, e.g. ${first}: taken as saved at the time of the call`,
    ],
  };
}

/** What no reject shows: it is settled only by another response. */
const unsettledDoubts = ({ doubts }: Pick<Extracted, 'doubts'>): string[] =>
  doubts.flatMap(({ isShownByRejects, message }) => (isShownByRejects ? [] : [message]));

/** The state in which a covered window ends. */
export interface Outcome {
  readonly state: 'loaded' | 'empty' | 'failed';
  readonly error: string | null;
}

/**
 * Decides the state of a covered window. If more records than the allowed share were rejected, the window fails and
 * no row is stored, so that half a day cannot look like a whole one.
 */
export function outcomeOf(extracted: Extracted, allowedShare: number): Outcome {
  const { fetched, rejects } = extracted;
  if (fetched === 0) {
    const [error = null] = unsettledDoubts(extracted);
    return { state: error === null ? 'empty' : 'failed', error };
  }
  if (rejects.length / fetched <= allowedShare && rejects.length < fetched)
    return { state: 'loaded', error: null };
  const percent = Math.round(allowedShare * 100);
  return {
    state: 'failed',
    error: `${rejects.length} of ${fetched} records were rejected (allowed: ${percent} %, EOD_MAX_REJECT_SHARE); none was stored, and each is kept as a reject${firstProblem(rejects)}`,
  };
}

/** What is wrong with the first of some rejects, which is often what is wrong with all. */
function firstProblem([first]: Extracted['rejects']): string {
  const { path, message } = first?.problems[0] ?? { path: '', message: '' };
  return message === '' ? '' : `: ${path === '' ? '' : `${path} `}${message}`;
}

/**
 * What a response lists in full, so that stored rows that it does not list can be withdrawn (pure). That is nothing if
 * the request named instruments or filters, if records were rejected (a missing row may be among them), or if the data
 * of a day may still be published.
 */
export function fullSetsOf(
  dataSet: DataSet,
  window: CoveredWindow & { readonly exchange: string },
  extracted: Pick<Extracted, 'batches' | 'rejects'>,
  coverage: readonly CoverageEntry[],
  calledOn: Day,
): FullSet[] {
  if (window.instruments.length > 0 || window.filtered || extracted.rejects.length > 0) return [];
  if (coverage.some(({ state, day }) => state === 'not_published' && day >= calledOn)) return [];
  const filled = extracted.batches.filter((batch) => batch.rows.length > 0).map((batch) => batch.table);
  return (
    dataSet.shapes
      // A response in one shape does not list the rows that came in another.
      .filter((shape) => shape.fullSet !== 'none' && (filled.length === 0 || filled.includes(shape.table)))
      .map((shape) => ({
        table: shape.table,
        exchange: window.exchange,
        days: shape.fullSet === 'days' ? { from: window.from, to: window.to } : null,
        mayBeEmpty: dataSet.emptyIsNormal,
      }))
  );
}

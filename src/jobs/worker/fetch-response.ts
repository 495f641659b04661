import { tradingDayAt } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { windowFacts } from '../../core/log.ts';
import type { RecordCounts } from '../../core/record-counts.ts';
import { sha256 } from '../../core/sha256.ts';
import { type StepTimes, timeStep } from '../../core/steps.ts';
import { hashCode } from '../../core/version.ts';
import type { Requested } from '../../declaration/fields.ts';
import type { RawResponse } from '../../extract/types.ts';
import { repeatLoad } from '../../load/repeat-load.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { NewWindow } from '../../state/windows/plan.ts';
import { describeResponse } from '../responses/store-response.ts';
import { afterCall } from './after-call.ts';
import type { ClaimedCall, WorkerContext } from './claim-call.ts';

/** A response of the source that is not stored yet. */
export interface FetchedResponse {
  readonly requested: Requested & { readonly calledOn: Day };
  /** A response is read as of the time of its call, so that reading it again later gives the same result. */
  readonly calledAt: number;
  /** From `digestResponse`. */
  readonly digest: string | undefined;
  readonly bytes: number;
  /** Null if it repeats the one that was loaded last: then it is not read. */
  readonly body: RawResponse | null;
  /** What became of its records, if it repeats another one. */
  readonly repeated: RecordCounts | null;
}

/**
 * Makes the call of a window. A response that repeats the last one is stored here, which ends the window; any other one
 * is checked, and `storeFetched` reads and stores it.
 *
 * @throws PipelineError what the call failed with, or what the response says instead of data.
 */
export async function fetchResponse(
  context: WorkerContext,
  call: ClaimedCall,
  times: StepTimes,
): Promise<FetchedResponse> {
  const { config, source, signal } = context;
  const { window } = call;
  const calledAt = context.clock.now();
  const operation = operationNamed(window.operation);
  const { exchange, from, to } = window;
  const requested = {
    exchange,
    from,
    to,
    instruments: window.instruments,
    params: window.params,
    calledOn: tradingDayAt(context.clock, calledAt, config.EOD_TIMEZONE),
  };
  const sentAt = performance.now();
  let receivedAt: number | undefined;
  const secondsOfCall = () => ((receivedAt ?? performance.now()) - sentAt) / 1_000;
  let response: FetchedResponse;
  try {
    const received = await timeStep(times, 'fetch', () => source.receive(operation, requested, signal));
    receivedAt = performance.now();
    const digest = digestResponse(context, window, received.hash);
    const fetched = { requested, calledAt, digest, bytes: received.bytes };
    const repeated = await endIfRepeated(context, call, fetched, times);
    response = { ...fetched, repeated, body: repeated === null ? received.check() : null };
  } catch (error) {
    await afterCall(context, call, error, secondsOfCall());
    throw error;
  }
  await afterCall(context, call, null, secondsOfCall());
  return response;
}

/** Ends the window of a response that repeats the last one, before anything is looked for in it; null for any other. */
async function endIfRepeated(
  { db, log }: WorkerContext,
  { window }: ClaimedCall,
  { requested, calledAt, digest, bytes }: Omit<FetchedResponse, 'body' | 'repeated'>,
  times: StepTimes,
): Promise<RecordCounts | null> {
  if (digest === undefined) return null;
  const response = describeResponse({ window, position: window.position, calledAt, bytes });
  const repeating = () => repeatLoad(db, { ...response, digest }, requested.calledOn);
  return timeStep(times, 'load', repeating).catch((err) => {
    // The response is read, then, and the failure policy decides about the next failure of Postgres.
    log.warn({ ...windowFacts(window), err }, 'could not compare a response with the last one');
    return null;
  });
}

/**
 * Identifies a response: its bytes and its request, and the code, the time zone and the trading days with which it is read.
 * Undefined if it may not be known without reading it that its rows are all of the days requested.
 */
export function digestResponse(
  { calendar, config }: Pick<WorkerContext, 'calendar' | 'config'>,
  window: NewWindow,
  hash: string,
): string | undefined {
  const { operation, exchange, from, to, params, instruments, variant, filtered } = window;
  const { shapes } = operationNamed(operation);
  const isOfDays = shapes.every((shape) => shape.fullSet === 'days' && shape.dated);
  if (!isOfDays || instruments.length > 0 || variant !== '' || filtered) return undefined;
  const tradingDays = calendar.tradingDays(exchange, from, to);
  const read = [hashCode(), config.EOD_TIMEZONE, operation, exchange, from, to, params, tradingDays, hash];
  return sha256(JSON.stringify(read));
}

import { tradingDayAt } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { windowFacts } from '../../core/log.ts';
import type { RecordCounts } from '../../core/record-counts.ts';
import { type StepTimes, timeStep } from '../../core/steps.ts';
import type { Requested } from '../../declaration/fields.ts';
import type { RawResponse, ReceivedResponse } from '../../extract/types.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { ClaimedWindow } from '../../state/windows/claim.ts';
import { digestBody, repeatResponse } from '../responses/repeat-response.ts';
import { afterCall } from './after-call.ts';
import type { ClaimedCall, WorkerContext } from './claim-call.ts';

/** A response of the source that is not stored yet. */
export interface FetchedResponse {
  readonly requested: Requested & { readonly calledOn: Day };
  /** A response is read as of the time of its call, so that reading it again later gives the same result. */
  readonly calledAt: number;
  /** Identifies its bytes, and the code that they are read with. */
  readonly digest: string;
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
    response = await endIfRepeated(context, { window, requested, calledAt }, received, times);
  } catch (error) {
    await afterCall(context, call, error, secondsOfCall());
    throw error;
  }
  await afterCall(context, call, null, secondsOfCall());
  return response;
}

/** Ends the window of a response that repeats the last one, before anything is looked for in it; checks any other one. */
async function endIfRepeated(
  context: WorkerContext,
  call: Pick<FetchedResponse, 'requested' | 'calledAt'> & { readonly window: ClaimedWindow },
  received: ReceivedResponse,
  times: StepTimes,
) {
  const { window, requested, calledAt } = call;
  const { bytes, hash } = received;
  const digest = digestBody(context, hash);
  const { position } = window;
  const response = { window, position, calledAt, calledOn: requested.calledOn, bytes, digest };
  const repeat = timeStep(times, 'load', () => repeatResponse(context, response));
  const repeated = await repeat.catch((err) => {
    // The response is read, then, and the failure policy decides about the next failure of Postgres.
    context.log.warn({ ...windowFacts(window), err }, 'could not compare a response with the last one');
    return null;
  });
  return { requested, calledAt, digest, bytes, repeated, body: repeated === null ? received.check() : null };
}

import { windowEnded } from '../../core/events.ts';
import { limitHeapGrowthFor } from '../../core/heap-growth.ts';
import { windowFacts } from '../../core/log.ts';
import { type StepTimes, timeStep } from '../../core/steps.ts';
import type { Requested } from '../../declaration/fields.ts';
import { incomplete } from '../../extract/diagnostics.ts';
import { countRule } from '../../extract/envelope.ts';
import type { RawResponse } from '../../extract/types.ts';
import { operationNamed } from '../../operations/registry.ts';
import { packBody, readKeptResponse } from '../../state/responses/responses.ts';
import { listNewestResponses } from '../../state/responses/to-replay.ts';
import type { ClaimedWindow } from '../../state/windows/claim.ts';
import type { WorkContext } from '../context.ts';
import { storeResponse } from '../responses/store-response.ts';
import type { ClaimedCall, WorkerContext } from './claim-call.ts';
import type { FetchedResponse } from './fetch-response.ts';

/**
 * Reads and stores a response. May be repeated until it succeeds.
 *
 * @returns whether the window is loaded by it: not if too many records were rejected, or it had ended already.
 */
export async function storeFetched(
  context: WorkerContext,
  { window }: ClaimedCall,
  response: FetchedResponse,
  times: StepTimes,
): Promise<boolean> {
  const operation = operationNamed(window.operation);
  const { exchange } = window;
  const { bytes, body, repeated } = response;
  // What is repeated was loaded, with records.
  const { counts, state, hasUnknownFields } =
    body === null
      ? { counts: repeated, state: 'loaded' as const, hasUnknownFields: false }
      : await readAndStore(context, window, { ...response, body }, times);
  const line = { ...windowFacts(window), attempt: window.failedAttempts + 1, bytes, ms: times };
  if (counts === null) {
    context.log.info(line, 'window had ended already');
    return false;
  }
  const { fetched: _, ...rows } = counts;
  windowEnded.publish({
    operation: operation.name,
    exchange,
    state: state === 'failed' ? 'failed' : 'loaded',
    rows,
    hasUnknownFields,
  });
  context.log[state === 'failed' ? 'error' : 'info'](
    { ...line, state, counts },
    `window ${END_TEXTS[state]}`,
  );
  return state !== 'failed';
}

/** Reads a response with the code of today and stores it. */
async function readAndStore(
  context: WorkerContext,
  window: ClaimedWindow,
  { requested, calledAt, digest, bytes, body }: FetchedResponse & { readonly body: RawResponse },
  times: StepTimes,
) {
  const { config, source, db } = context;
  const operation = operationNamed(window.operation);
  limitHeapGrowthFor(body.body.length);
  const packed = await packBody(db.drizzle, body.body, body.hash);
  const count = countRule(config.EOD_COUNT, window.unreadableHash === packed.hash);
  const extracted = await timeStep(times, 'read', () => source.read(operation, requested, body, count));
  if (extracted.lastLine === 'open') await checkLastLineEnd(context, window.operation, requested);
  const { position } = window;
  const response = { packed, contentType: body.contentType, calledOn: requested.calledOn };
  const received = { window, position, calledAt, bytes, digest, response, extracted };
  const stored = await timeStep(times, 'load', () => storeResponse(context, received));
  for (const warning of extracted.warnings) context.log.warn(windowFacts(window), warning);
  return {
    counts: stored?.counts ?? null,
    state: stored?.outcome.state ?? ('loaded' as const),
    hasUnknownFields: extracted.unknownFields.length > 0,
  };
}

/** The state of a window whose response is stored, in words. */
const END_TEXTS = {
  loaded: 'loaded',
  empty: 'is empty',
  failed: 'failed: too many of its records were rejected',
};

/** How many kept responses are read to learn whether the source ends the last line of its CSV. */
const COMPARED_RESPONSES = 5;

/**
 * Checks a response in CSV whose last line has no line end: it may have been cut off. It is taken as complete only if the
 * newest kept responses of the operation have none either.
 *
 * @throws PipelineError `unreadable` if one of them has.
 */
async function checkLastLineEnd(
  { db, source }: WorkContext,
  name: string,
  requested: Requested,
): Promise<void> {
  for (const id of await listNewestResponses(db.drizzle, name, COMPARED_RESPONSES)) {
    const response = await readKeptResponse(db.drizzle, id);
    if (response === null) continue;
    const { lastLine } = source.read(operationNamed(name), requested, { ...response, bytes: 0 }, 'ignore');
    if (lastLine === 'ended') {
      throw incomplete('its CSV has no end of the last line, which other responses of the operation have');
    }
  }
}

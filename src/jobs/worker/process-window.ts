import { tradingDayAt } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import { windowEnded } from '../../core/events.ts';
import { windowFacts } from '../../core/log.ts';
import type { RecordCounts } from '../../core/record-counts.ts';
import { type StepTimes, timeStep } from '../../core/steps.ts';
import { incomplete } from '../../extract/diagnostics.ts';
import { countRule } from '../../extract/envelope.ts';
import type { RawResponse, ReceivedResponse } from '../../extract/types.ts';
import { isSharedSession } from '../../load/database/database-errors.ts';
import { keepFailedResponse, packBody, readKeptResponse } from '../../load/state/responses/responses.ts';
import { newestResponses } from '../../load/state/responses/to-replay.ts';
import { readRunAge } from '../../load/state/runs/runs.ts';
import { readSourceOutage } from '../../load/state/source/source-state.ts';
import type { ClaimedWindow } from '../../load/state/windows/claim.ts';
import type { Requested } from '../../operations/fields.ts';
import { AHEAD } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { WorkContext } from '../context.ts';
import { decideFailure, failureOf, OPENING_FAILURES, type Situation } from '../policy/failure-policy.ts';
import { callLimitOf } from '../policy/quota.ts';
import type { WindowJob } from '../queue/queue.ts';
import { digestOf, repeatResponse } from '../responses/repeat-response.ts';
import { storeResponse } from '../responses/store-response.ts';
import { afterCall } from './after-call.ts';
import { applyFailure } from './apply-failure.ts';
import {
  type ClaimedCall,
  type ClaimResult,
  claimCall,
  hourLeft,
  pause,
  splittableDays,
  type WorkerContext,
} from './claim-call.ts';
import type { QueueAction } from './hand-to-queue.ts';

/** What BullMQ is to do with the job of a window that has not ended well. */
export interface QueueVerdict {
  readonly action: QueueAction;
  readonly error: unknown;
  /** Whether the queue waits because the hour's budget had no call left, which may have changed since. */
  readonly isForBudget?: boolean;
}

/** What became of a window. */
interface WorkedWindow {
  /** Undefined: its job is done. */
  readonly verdict?: QueueVerdict;
  /** The runs of which windows have ended, which are to be advanced. */
  readonly runs: readonly number[];
  /** Whether its response was stored now, and its records were accepted. */
  readonly isLoaded: boolean;
}

/**
 * Does the work of one window: claims it, fetches outside any transaction, reads, and loads in one transaction. After a
 * failure, the failure policy decides what is done, and that is stored.
 */
export async function processWindow(context: WorkerContext, job: WindowJob): Promise<WorkedWindow> {
  let waitMs = 0;
  let call: ClaimedCall | null = null;
  let response: FetchedResponse | null = null;
  let storeFailures = 0;
  let times: StepTimes = {};
  for (;;) {
    try {
      if (waitMs > 0) await pause(waitMs, context.signal);
      if (response === null) {
        call = null;
        times = {};
        const claimed = await timeStep(times, 'claim', () => claimCall(context, job));
        if (claimed.outcome === 'wait') return waiting(claimed);
        call = claimed.outcome === 'claimed' ? claimed : null;
      }
      if (call === null) return { runs: [job.runId], isLoaded: false };
      response ??= await fetchResponse(context, call, times);
      const isLoaded = await storeFetched(context, call, response, times);
      response = null;
      await context.storage.settled(job.windowId);
      return { runs: [job.runId], isLoaded };
    } catch (error) {
      const { config, clock, storage } = context;
      if (isSharedSession(error)) await storage.sessionShared(failureOf(error));
      const window: ClaimedWindow | null = call?.window ?? null;
      const callLimit = call?.callLimit ?? callLimitOf(config, clock, context.sourceClock);
      storeFailures = response === null ? 0 : storeFailures + 1;
      const situation = await situationOf(context, job, window, storeFailures);
      const action = decideFailure(error, situation, config);
      await keepUnreadable(context, job.windowId, error, response);
      const runs = await applyFailure(context, { job, window, callLimit, error, action, times });
      if (action.act === 'keep_response') {
        if (action.stopsCalls) await storage.refused(job.windowId, failureOf(error));
        waitMs = action.delayMs;
        continue;
      }
      response = null;
      await storage.settled(job.windowId);
      if (action.act === 'split') return { runs, isLoaded: false };
      if (action.act !== 'await_data' || !action.waitInWorker)
        return { verdict: { action, error }, runs, isLoaded: false };
      waitMs = action.delayMs;
    }
  }
}

/** What becomes of a window that could not be claimed yet. */
function waiting(wait: Extract<ClaimResult, { outcome: 'wait' }>): WorkedWindow {
  const { delayMs } = wait;
  const action: QueueAction =
    wait.for === 'window' ? { act: 'postpone', delayMs } : { act: 'rate_limit', delayMs, closeHour: false };
  return { verdict: { action, error: null, isForBudget: wait.for === 'hour' }, runs: [], isLoaded: false };
}

/**
 * Notes which response cannot be read, so that it is recognized if it comes again, and keeps its body, so that people
 * can see what the source has sent. Never throws.
 */
async function keepUnreadable(
  { db, log }: WorkerContext,
  windowId: number,
  error: unknown,
  response: FetchedResponse | null,
): Promise<void> {
  if (!(error instanceof PipelineError) || error.kind !== 'unreadable') return;
  const body = error.response ?? response?.body?.body;
  if (body === undefined) return;
  try {
    await keepFailedResponse(db, windowId, await packBody(db.drizzle, body));
  } catch (err) {
    log.warn({ windowId, err }, 'could not keep a response that cannot be read');
  }
}

async function situationOf(
  context: WorkerContext,
  job: WindowJob,
  window: ClaimedWindow | null,
  storeFailures: number,
): Promise<Situation> {
  const { kind, sourceClock } = context;
  return {
    attempt: (window?.failedAttempts ?? 0) + 1,
    storeFailures,
    notReadyMs: window?.notReadyMs ?? 0,
    days: window === null ? 1 : splittableDays(window),
    isAhead: window?.variant === AHEAD,
    intoHourMs: sourceClock.intoHour(),
    nextHourMs: hourLeft(context),
    outageMs: await readOutageMs(context, job.runId).catch(() => null),
    queue: kind,
    chance: Math.random(),
  };
}

/** For how long a run has waited for a source that is down, in milliseconds; null while it responds. */
async function readOutageMs({ config, clock, db }: WorkerContext, runId: number): Promise<number | null> {
  const { keyHash, now } = callLimitOf(config, clock);
  const outage = await readSourceOutage(db.drizzle, keyHash, OPENING_FAILURES);
  return outage === null
    ? null
    : Math.min(now - Date.parse(outage.since), await readRunAge(db.drizzle, runId));
}

/** A response of the source that is not stored yet. */
interface FetchedResponse {
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

async function fetchResponse(
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
  const after = (error: unknown) =>
    afterCall(context, call, error, ((receivedAt ?? performance.now()) - sentAt) / 1_000);
  const fetched = timeStep(times, 'fetch', () => source.receive(operation, requested, signal));
  const looked = fetched.then((received) => {
    receivedAt = performance.now();
    return repeatOrCheck(context, { window, requested, calledAt }, received, times);
  });
  const response = await looked.catch(async (error) => {
    await after(error);
    throw error;
  });
  await after(null);
  return response;
}

/** Ends the window of a response that repeats the last one, before anything is looked for in it; checks any other one. */
async function repeatOrCheck(
  context: WorkerContext,
  call: Pick<FetchedResponse, 'requested' | 'calledAt'> & { readonly window: ClaimedWindow },
  received: ReceivedResponse,
  times: StepTimes,
) {
  const { window, requested, calledAt } = call;
  const { bytes, hash } = received;
  const digest = digestOf(context, hash);
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

/**
 * Reads and stores a response. May be repeated until it succeeds.
 *
 * @returns whether the window is loaded by it: not if too many records were rejected, or it had ended already.
 */
async function storeFetched(
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
  const packed = await packBody(db.drizzle, body.body, body.hash);
  const count = countRule(config.EOD_COUNT, window.failedHash === packed.hash);
  const extracted = await timeStep(times, 'read', () => source.read(operation, requested, body, count));
  if (extracted.lineEnd === false) await checkLastLineEnd(context, window.operation, requested);
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
  for (const id of await newestResponses(db.drizzle, name, COMPARED_RESPONSES)) {
    const response = await readKeptResponse(db.drizzle, id);
    if (response === null) continue;
    const { lineEnd } = source.read(operationNamed(name), requested, { ...response, bytes: 0 }, 'ignore');
    if (lineEnd === true) {
      throw incomplete('its CSV has no end of the last line, which other responses of the operation have');
    }
  }
}

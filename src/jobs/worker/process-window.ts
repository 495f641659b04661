import { isPipelineError } from '../../core/errors.ts';
import { type StepTimes, timeStep } from '../../core/steps.ts';
import { databaseError, isSharedSession } from '../../postgres/database-errors.ts';
import { keepUnreadableResponse, packBody } from '../../state/responses/responses.ts';
import type { ClaimedWindow } from '../../state/windows/claim.ts';
import { decideFailure } from '../policy/failure-policy.ts';
import { computeCallLimit } from '../policy/quota.ts';
import type { WindowJob } from '../queue/queue.ts';
import { applyFailure } from './apply-failure.ts';
import { type ClaimedCall, claimCall, pause, type WorkerContext } from './claim-call.ts';
import { type FetchedResponse, fetchResponse } from './fetch-response.ts';
import type { QueueAction } from './hand-to-queue.ts';
import { readSituation } from './situation.ts';
import { storeFetched } from './store-fetched.ts';

/** What BullMQ is to do with the job of a window that has not ended well. */
export interface QueueVerdict {
  readonly action: QueueAction;
  readonly error: unknown;
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
 * failure, the failure policy decides what is done, and that is stored. This is repeated in two cases: the response at
 * hand could not be stored (`keep_response`), or its data is not ready and this worker waits for it (`await_data`).
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
        if (claimed.outcome === 'wait')
          return { verdict: { action: claimed.action, error: null }, runs: [], isLoaded: false };
        call = claimed.outcome === 'claimed' ? claimed : null;
      }
      // Nothing is left to do for the window.
      if (call === null) return { runs: [job.runId], isLoaded: false };
      response ??= await fetchResponse(context, call, times);
      const isLoaded = await storeFetched(context, call, response, times);
      response = null;
      await context.storage.released(job.windowId);
      return { runs: [job.runId], isLoaded };
    } catch (thrown) {
      const { config, clock, storage } = context;
      const error = databaseError(thrown);
      if (isSharedSession(error)) await storage.sessionShared(error);
      const window: ClaimedWindow | null = call?.window ?? null;
      const callLimit = call?.callLimit ?? computeCallLimit(config, clock, context.sourceClock);
      storeFailures = response === null ? 0 : storeFailures + 1;
      const situation = await readSituation(context, job, window, storeFailures);
      const action = decideFailure(error, situation, config);
      await keepUnreadable(context, job.windowId, error, response);
      const runs = await applyFailure(context, { job, window, callLimit, error, action, times });
      if (action.act === 'keep_response') {
        if (action.isStoppingCalls) await storage.refused(job.windowId, error);
        waitMs = action.delayMs;
        continue;
      }
      response = null;
      await storage.released(job.windowId);
      if (action.act === 'split') return { runs, isLoaded: false };
      if (action.act !== 'await_data' || !action.isWaitedInWorker)
        return { verdict: { action, error }, runs, isLoaded: false };
      waitMs = action.delayMs;
    }
  }
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
  if (!isPipelineError(error, 'unreadable')) return;
  const body = error.response ?? response?.body?.body;
  if (body === undefined) return;
  try {
    await keepUnreadableResponse(db, windowId, await packBody(db.drizzle, body));
  } catch (err) {
    log.warn({ windowId, err }, 'could not keep a response that cannot be read');
  }
}

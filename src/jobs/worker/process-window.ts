import { setTimeout as sleep } from 'node:timers/promises';
import { DelayedError, type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import { today } from '../../core/clock.ts';
import { type Day, dayAt, daysBetween } from '../../core/days.ts';
import { type ErrorKind, messageOf, PipelineError } from '../../core/errors.ts';
import { sourceCallEnded, windowEnded } from '../../core/events.ts';
import { windowFacts } from '../../core/log.ts';
import { runStep, type StepFacts, type StepTimes, timeStep } from '../../core/steps.ts';
import { incomplete } from '../../extract/index.ts';
import type { Extracted } from '../../extract/types.ts';
import { databaseError } from '../../load/database/errors.ts';
import { endKeyTrial, markKeyAccepted } from '../../load/state/access-keys.ts';
import { openHour, type Permit } from '../../load/state/call-budget.ts';
import { learnRangeLimit, noteAnsweredRange } from '../../load/state/range-limits.ts';
import { hashBody, packBody, readKeptAnswer } from '../../load/state/responses/kept.ts';
import { newestAnswers } from '../../load/state/responses/to-replay.ts';
import { readRunAge } from '../../load/state/runs.ts';
import {
  type Claim,
  type ClaimedWindow,
  claimWindow,
  isOvertaken,
  readWaitingNight,
  unclaimWindow,
} from '../../load/state/windows/claim.ts';
import { skipWindow } from '../../load/state/windows/windows.ts';
import type { AskedFor } from '../../operations/fields.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { WorkContext } from '../context.ts';
import { advanceRun } from '../runs/advance.ts';
import { type CoveredWindow, dependsOnDays, questionsOf } from './answer-coverage.ts';
import { applyFailure, cutWindow } from './apply-failure.ts';
import type { Breaker } from './breaker.ts';
import { PRIORITY } from './enqueue.ts';
import {
  decideDuringOutage,
  decideFailure,
  evidenceOf,
  type FailureAction,
  lostTooManyWorkers,
  NotItsTurn,
  type Outage,
  PROBE_LOOK_MS,
  RateLimited,
  type Situation,
  WorkersLost,
} from './failure-policy.ts';
import type { JobQueue, WindowJob, WindowQueue } from './queue.ts';
import { hourStart, permitOf, type SourceClock, turnWait, untilNextHour } from './quota.ts';
import { digestOf, repeatAnswer } from './repeat-answer.ts';
import { type Outcome, outcomeOf, storeAnswer } from './store-answer.ts';

/** What the work on the windows of one queue needs. */
interface WorkerContext extends WorkContext {
  /** The queue the jobs come from: long waits are announced there. */
  readonly queue: JobQueue<WindowJob>;
  readonly kind: WindowQueue;
  readonly breaker: Breaker;
  readonly sourceClock: SourceClock;
  /** Ends calls and waits when the worker stops. */
  readonly signal: AbortSignal;
}

/** A window that was claimed, with the permission to make one call. */
interface ClaimedCall {
  readonly claim: Extract<Claim, { outcome: 'claimed' }>;
  readonly permit: Permit;
}

/**
 * Does the work of one window: claim, fetch outside any transaction, read, load in one transaction,
 * then move the run on. What is done about a failure is decided by the failure policy, written down,
 * and handed to BullMQ.
 */
export async function processWindow(
  context: WorkerContext,
  job: Job<WindowJob>,
  token: string | undefined,
): Promise<void> {
  const { runId, windowId } = job.data;
  const facts: StepFacts = { database: context.queues.databaseId, run: runId, window: windowId };
  return runStep('window', facts, () => workOnWindow(context, job, token, facts));
}

async function workOnWindow(
  context: WorkerContext,
  job: Job<WindowJob>,
  token: string | undefined,
  facts: StepFacts,
): Promise<void> {
  for (let waitMs = 0; ; ) {
    let call: ClaimedCall | null = null;
    const times: StepTimes = {};
    try {
      if (waitMs > 0) await pause(waitMs, context.signal);
      call = await timeStep(times, 'claim', () => claimCall(context, job.data));
      if (call !== null) await fetchAndLoad(context, call, times, facts);
      return await advanceRun(context, job.data.runId);
    } catch (error) {
      const { config, clock } = context;
      const window = call?.claim.window ?? null;
      const permit = call?.permit ?? permitOf(config, clock, context.sourceClock);
      const action = decideFailure(error, await situationOf(context, job, window), config);
      facts.outcome = action.act === 'end' ? action.state : action.act;
      await applyFailure(context, { job: job.data, window, permit, error, action, times });
      // The windows that take its place move the run on.
      if (action.act === 'split') return;
      if (action.act !== 'await_data' || !action.waitInWorker)
        await handToQueue(context.queue, job, token, action, error);
      else waitMs = action.delayMs;
    }
  }
}

async function situationOf(
  context: WorkerContext,
  job: Job<WindowJob>,
  window: ClaimedWindow | null,
): Promise<Situation> {
  const { config, kind, sourceClock } = context;
  return {
    attempt: (window?.failedAttempts ?? 0) + 1,
    notReadyMs: window?.notReadyMs ?? 0,
    days: window === null ? 1 : splittableDays(window),
    intoHourMs: sourceClock.intoHour(),
    nextHourMs: untilNextHour(sourceClock.now(), config.EOD_TIMEZONE),
    // A run whose age cannot be read has waited as long as the source has been down.
    outage: await outageFor(context, job.data.runId).catch(() => outageOf(context, Number.POSITIVE_INFINITY)),
    queue: kind,
    chance: Math.random(),
  };
}

/** What the source's outage means to a run; null while the source answers. */
async function outageFor(context: WorkerContext, runId: number): Promise<Outage | null> {
  if (context.breaker.outage() === null) return null;
  return outageOf(context, await readRunAge(context.db.drizzle, runId));
}

function outageOf({ breaker }: WorkerContext, runAgeMs: number): Outage | null {
  const outage = breaker.outage();
  return outage === null ? null : { ...outage, runAgeMs };
}

/** Only windows that ask for a range of days can be asked in parts. */
function splittableDays({ operation, from, to }: ClaimedWindow): number {
  return operationNamed(operation).windows.per === 'range' ? daysBetween(from, to) + 1 : 1;
}

/**
 * The one place that translates an action for BullMQ. Always throws: the error says what BullMQ is to do
 * with the job.
 */
export async function handToQueue(
  queue: Pick<JobQueue<unknown>, 'rateLimit'>,
  job: Job,
  token: string | undefined,
  action: Exclude<FailureAction, { act: 'split' }>,
  error: unknown,
): Promise<never> {
  switch (action.act) {
    case 'retry':
    case 'postpone':
      return postponeJob(job, action.delayMs, token);
    case 'await_data':
      await job.changePriority({ priority: PRIORITY.prepared });
      return postponeJob(job, action.delayMs, token);
    case 'put_back':
      await job.moveToWait(token);
      throw new WaitingError();
    case 'rate_limit':
      await queue.rateLimit(Math.max(1, Math.ceil(action.delayMs)));
      throw Worker.RateLimitError();
    case 'end':
      throw new UnrecoverableError(messageOf(error));
  }
}

/** Puts a job off without counting an attempt. Always throws, as BullMQ asks. */
async function postponeJob(job: Job, delayMs: number, token: string | undefined): Promise<never> {
  await job.moveToDelayed(Date.now() + delayMs, token);
  throw new DelayedError();
}

/**
 * Claims a window once a call may start: not at the turn of the hour, not while the source is down or
 * another worker tries the key, not beyond the hour's budget. Waits of seconds are waited for here;
 * the wait for the next hour is the queue's.
 *
 * @returns null when there is nothing left to do for the window.
 * @throws RateLimited when the hour's budget is spent; NotItsTurn when others are to be asked first; WorkersLost when too many workers have ended with
 *   it; PipelineError when the key is refused, the source is down for too long, Postgres is away, or the
 *   worker is stopping.
 */
async function claimCall(
  context: WorkerContext,
  { runId, windowId }: WindowJob,
): Promise<ClaimedCall | null> {
  const { config, clock, sourceClock, db, breaker, signal } = context;
  if (context.kind === 'nightly' && (await skipOvertaken(context, windowId))) return null;
  for (;;) {
    const permit = permitOf(config, clock, sourceClock);
    const wait = turnWait(sourceClock.now(), config.EOD_TIMEZONE) || (await outageWait(context, runId));
    if (wait > 0) {
      await pause(wait, signal);
      continue;
    }
    const claim = await claimWindow(db.drizzle, windowId, permit).catch((error) => {
      breaker.abandoned();
      throw databaseError(error);
    });
    const lostWorkers = claim.outcome === 'claimed' ? claim.window.lostWorkers : 0;
    const poisoned = lostTooManyWorkers(lostWorkers);
    const isUsable = claim.outcome === 'claimed' && !poisoned && stillCounts(context, permit);
    if (isUsable && !(await isAnsweredByNow(context, claim.window))) return { claim, permit };
    breaker.abandoned();
    switch (claim.outcome) {
      case 'claimed':
        await unclaimWindow(db.drizzle, windowId).catch((error) => {
          throw databaseError(error);
        });
        if (claim.probe) await endKeyTrial(db.drizzle, permit.keyHash);
        if (poisoned) throw new WorkersLost(lostWorkers);
        if (context.kind === 'nightly' && (await skipOvertaken(context, windowId))) return null;
        // Postgres kept us waiting until the hour turned: the call would count against the next one.
        break;
      case 'gone':
        return null;
      case 'refused':
        throw keyRefusedError(claim.diagnostic);
      case 'spent':
        // Unless the hour turned while Postgres answered: what was spent was the old one.
        if (hourStart(sourceClock.now(), config.EOD_TIMEZONE) === permit.hour) throw new RateLimited();
        break;
      case 'waits':
        throw new NotItsTurn(claim.ahead);
      case 'out_of_reach': {
        const { window, lastDay, diagnostic } = claim;
        if (window.to <= lastDay) throw outOfReachError(lastDay, diagnostic);
        await cutWindow(context, window, lastDay).catch((error) => {
          throw databaseError(error);
        });
        return null;
      }
      case 'probing':
        await pause(PROBE_LOOK_MS, signal);
    }
  }
}

/** Nights pile up while the key is refused: what is known by now, or asked by a later night, is not asked again. */
async function skipOvertaken(context: WorkContext, windowId: number): Promise<boolean> {
  const { db } = context;
  const window = await readWaitingNight(db.drizzle, windowId);
  if (window === null || !(await isKnown(context, { ...window, id: windowId }))) return false;
  return skipWindow(context.db.drizzle, windowId, 'known by now, or asked for by a later night');
}

/** Another night may have been answered between the look at what is known and the claim: from then on none can be. */
async function isAnsweredByNow(context: WorkerContext, window: ClaimedWindow): Promise<boolean> {
  return context.kind === 'nightly' && window.runKind === 'nightly' && isKnown(context, window);
}

async function isKnown(
  { db, calendar, clock, config }: WorkContext,
  window: CoveredWindow & Pick<ClaimedWindow, 'id' | 'operation' | 'exchange'>,
): Promise<boolean> {
  const operation = operationNamed(window.operation);
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  const questions = questionsOf(operation, window, sessions, today(clock, config.EOD_TIMEZONE));
  return isOvertaken(db.drizzle, window.id, questions, dependsOnDays(operation, window)).catch((error) => {
    throw databaseError(error);
  });
}

/** Is it still the hour whose budget holds the call, and not its very end? */
function stillCounts({ config, sourceClock }: WorkerContext, permit: Permit): boolean {
  const now = sourceClock.now();
  return hourStart(now, config.EOD_TIMEZONE) === permit.hour && turnWait(now, config.EOD_TIMEZONE) === 0;
}

/**
 * Milliseconds until a call may start, as far as the source's health goes. After 0 a call to a source that is
 * down counts as the one that tries it: its outcome must be told.
 *
 * @throws PipelineError when the source has been down for too long.
 */
async function outageWait(context: WorkerContext, runId: number): Promise<number> {
  const outage = await outageFor(context, runId).catch((error) => {
    throw databaseError(error);
  });
  if (outage === null) return 0;
  const next = decideDuringOutage(outage, context.kind, context.config);
  if (next.act === 'wait') return next.delayMs;
  if (next.act === 'give_up') {
    throw new PipelineError(
      `the source has answered with errors, or not at all, for ${Math.round(outage.downMs / 1000)} s; nothing more is asked of it`,
      { kind: 'network' },
    );
  }
  context.breaker.beginProbe();
  return 0;
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {
    throw new PipelineError('the worker is stopping', { kind: 'aborted' });
  });
}

function keyRefusedError(diagnostic: string): PipelineError {
  return new PipelineError(`the access key was refused: ${diagnostic}`, {
    kind: 'credential',
    diagnostic,
  });
}

function outOfReachError(lastDay: Day, diagnostic: string): PipelineError {
  return new PipelineError(`the source has no data up to ${lastDay}, as it answered before: ${diagnostic}`, {
    kind: 'range_refused',
    diagnostic,
  });
}

async function fetchAndLoad(
  context: WorkerContext,
  { claim, permit }: ClaimedCall,
  times: StepTimes,
  facts: StepFacts,
): Promise<void> {
  const { config, source, db, breaker, signal } = context;
  // An answer is read as of its call: so it can be read again at any time, with the same result.
  const calledAt = context.clock.now();
  const { window } = claim;
  const operation = operationNamed(window.operation);
  const attempt = window.failedAttempts + 1;
  const { exchange, from, to } = window;
  Object.assign(facts, { operation: operation.name, exchange, from, to, attempt });
  const asked = {
    exchange,
    from,
    to,
    instruments: window.instruments,
    params: window.params,
    calledOn: dayAt(Math.floor(calledAt / 1000), config.EOD_TIMEZONE),
  };
  const sentAt = performance.now();
  const tellEnd = (outcome: 'success' | ErrorKind) =>
    sourceCallEnded.publish({
      operation: operation.name,
      exchange,
      seconds: (performance.now() - sentAt) / 1_000,
      outcome,
    });
  const fetched = timeStep(times, 'fetch', () => source.fetch(operation, asked, signal));
  const answer = await fetched.catch(async (error) => {
    tellEnd(error instanceof PipelineError ? error.kind : 'network');
    await recordEvidence(context, { claim, permit }, error);
    throw error;
  });
  tellEnd('success');
  breaker.succeeded();
  // Compressed while the answer is read: a load that waited for it could come after another call has shown that the key is refused.
  const [packed] = await Promise.all([
    config.EOD_KEEP_RAW ? packBody(db.drizzle, answer.body) : null,
    markKeyAccepted(db.drizzle, permit, claim),
  ]);
  if (claim.triesHour) await reopenHour(context, permit);
  if (claim.wasRefused) await noteAnsweredRange(db.drizzle, permit.keyHash, window);
  const answered = {
    window,
    calledAt,
    bytes: answer.bytes,
    preview: window.runKind === 'preview',
    digest: digestOf(context, packed?.hash ?? hashBody(answer.body)),
    answer:
      packed === null
        ? undefined
        : {
            packed,
            contentType: answer.contentType,
            calledOn: asked.calledOn,
            fetchedAt: new Date(calledAt),
          },
  };
  let counts = await timeStep(times, 'load', () => repeatAnswer(context, answered));
  let state: Outcome['state'] = counts?.fetched === 0 ? 'empty' : 'loaded';
  if (counts === null) {
    const extracted = await timeStep(times, 'read', () => source.read(operation, asked, answer));
    if (extracted.lineEnd === false) await checkLastLineEnd(context, window.operation, asked);
    logWarnings(context, window, extracted);
    ({ state } = outcomeOf(extracted, config.EOD_MAX_REJECT_SHARE));
    counts = await timeStep(times, 'load', () => storeAnswer(context, { ...answered, extracted }));
  }
  if (operation.windows.per === 'range') {
    await learnRangeLimit(db.drizzle, { keyHash: permit.keyHash, windowId: window.id });
  }
  const { bytes } = answer;
  const line = { ...windowFacts(window), attempt, bytes, ms: times };
  if (counts === null) {
    context.log.info(line, 'window had ended already');
    return;
  }
  const { fetched: _, ...rows } = counts;
  windowEnded.publish({
    operation: operation.name,
    exchange,
    state: state === 'failed' ? 'failed' : 'loaded',
    rows,
  });
  Object.assign(facts, { outcome: state, bytes }, counts);
  context.log[state === 'failed' ? 'error' : 'info']({ ...line, state, counts }, `window ${ENDS[state]}`);
}

/** How a window that was answered ends, in words. */
const ENDS = { loaded: 'loaded', empty: 'is empty', failed: 'failed: too many of its records were rejected' };

/** Kept answers that are looked at to learn how the source ends its CSV. */
const COMPARED_ANSWERS = 5;

/**
 * A CSV that ends without a line end may lack rows, or the end of a number. It is taken for whole only where
 * the newest kept answers of its operation do not end their last line either.
 *
 * @throws PipelineError `unreadable` where one of them does.
 */
async function checkLastLineEnd({ db, source }: WorkContext, name: string, asked: AskedFor): Promise<void> {
  for (const id of await newestAnswers(db.drizzle, name, COMPARED_ANSWERS)) {
    const kept = await readKeptAnswer(db.drizzle, id);
    if (kept === null) continue;
    const { lineEnd } = source.read(operationNamed(name), asked, { ...kept, bytes: 0 });
    if (lineEnd === true) {
      throw incomplete('its CSV has no end of the last line, which other answers of the operation have');
    }
  }
}

/** The source answers in an hour that it had closed: the others need not wait. */
async function reopenHour({ db, queue }: WorkerContext, permit: Permit): Promise<void> {
  await openHour(db.drizzle, permit);
  await queue.removeRateLimitKey();
}

/** Passes on what a failed call says of the source's health and hour, and of the key where this call tried it. */
async function recordEvidence(
  context: WorkerContext,
  { claim, permit }: ClaimedCall,
  error: unknown,
): Promise<void> {
  const { db, breaker, sourceClock } = context;
  const evidence = evidenceOf(error, splittableDays(claim.window));
  if (evidence.source === 'failure') breaker.failed();
  else if (evidence.source === 'success') breaker.succeeded();
  else breaker.abandoned();
  if (evidence.hour === 'closed') sourceClock.hourRefused();
  else if (evidence.hour === 'open' && claim.triesHour) await reopenHour(context, permit);
  if (!claim.probe) return;
  if (evidence.key === 'accepted') await markKeyAccepted(db.drizzle, permit, claim);
  // A refused key stays marked as being tried: see `markKeyRefused`.
  else if (evidence.key === 'unknown') await endKeyTrial(db.drizzle, permit.keyHash);
}

/** Source keys that were logged already, per run and operation of a database: once is enough. */
const reported = new WeakMap<WorkContext['db'], Set<string>>();

function logWarnings({ db, log }: WorkContext, window: ClaimedWindow, extracted: Extracted): void {
  const { runId, operation } = window;
  for (const warning of extracted.warnings) log.warn(windowFacts(window), warning);
  const before = reported.get(db) ?? new Set();
  reported.set(db, before);
  const unknown = extracted.unknownFields.filter((field) => !before.has(`${runId}|${operation}|${field}`));
  if (unknown.length === 0) return;
  for (const field of unknown) before.add(`${runId}|${operation}|${field}`);
  log.warn(
    { runId, operation, fields: unknown },
    'the source sends fields nobody declared; they are not stored',
  );
}
